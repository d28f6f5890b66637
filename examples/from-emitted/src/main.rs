//! Continues tokens with crates that `specc emit` wrote: `from-emitted [--specialised] DIR 1,2,3`.
//!
//! With `--specialised` the graph is the one for a single config, which refuses every other.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use specc_runtime::{LoadOptions, Model, Options};

fn main() -> ExitCode {
    match run() {
        Ok(ids) => {
            println!("{}", ids.join(","));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Vec<String>, Box<dyn Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let specialised = args.first().is_some_and(|word| word == "--specialised");
    if specialised {
        args.remove(0);
    }
    let [folder, ids] = args.as_slice() else {
        return Err("usage: from-emitted [--specialised] DIR ID,ID,...".into());
    };
    let families = if specialised { tiny_llama::families() } else { families::families() };
    let prompt = ids.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    let model = Model::load(families, Path::new(folder), LoadOptions::default())?;
    let options = Options { max_tokens: 12, text: false, ..Options::default() };
    let mut continued = Vec::new();
    for piece in model.generate(&prompt, options)? {
        continued.extend(piece?.id.map(|id| id.to_string()));
    }
    Ok(continued)
}
