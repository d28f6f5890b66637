//! Continues tokens with a family that the build script compiled: `from-build-rs DIR 1,2,3`.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use specc_runtime::{LoadOptions, Model, Options};

mod compiled {
    include!(concat!(env!("OUT_DIR"), "/families.rs"));
}

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
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, ids] = args.as_slice() else {
        return Err("usage: from-build-rs DIR ID,ID,...".into());
    };
    let prompt = ids.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    let model = Model::load(compiled::families(), Path::new(folder), LoadOptions::default())?;
    let options = Options { max_tokens: 12, text: false, ..Options::default() };
    let mut continued = Vec::new();
    for piece in model.generate(&prompt, options)? {
        continued.extend(piece?.id.map(|id| id.to_string()));
    }
    Ok(continued)
}
