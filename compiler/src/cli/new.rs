//! `specc new`

use std::path::Path;

use specc::diag::Diagnostic;
use specc::library::Library;
use specc::model::Model;
use specc::propose::{self, Proposal};

use super::{Failure, Format, NewArgs, Outcome, output, program};

pub fn run(args: &NewArgs) -> Outcome {
    let name = &args.name;
    let valid = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !valid {
        return Err(Failure::Usage(format!(
            "{name:?} cannot name a family: names are lower-case letters, digits and `_`"
        )));
    }
    let path = args.specs.join(format!("{name}.toml"));
    if path.exists() {
        return Err(Failure::Message(format!("{} exists already", path.display())));
    }
    let folders = if args.specs.is_dir() { vec![args.specs.clone()] } else { Vec::new() };
    let library = output::library(&folders)?;
    if library.families().any(|known| known == name) {
        return Err(Failure::Message(format!(
            "`{name}` is the name of a family already; choose another, and `--from {name}` to start from it"
        )));
    }
    if let Some(from) = &args.from {
        output::known(&library, from)?;
    }
    match &args.model {
        Some(folder) => with_model(&library, args, folder, &path),
        None => {
            let Some(from) = args.from.as_deref().or_else(|| library.generic()) else {
                let message = "the library holds no family to start from".to_owned();
                return Err(Failure::Message(message));
            };
            let text = propose::plain(name, from);
            program::write(&path, &text)?;
            output::print(&format!("{} extends {from}\n", path.display()))
        }
    }
}

fn with_model(library: &Library, args: &NewArgs, folder: &Path, path: &Path) -> Outcome {
    let model =
        Model::open(folder).map_err(|problems| Failure::Message(problems.join("\nerror: ")))?;
    let Proposal { text, from, findings, sources } =
        propose::from_model(library, &args.name, args.from.as_deref(), &model).ok_or_else(
            || Failure::Message("the library holds no family to start from".to_owned()),
        )?;
    program::write(path, &text)?;
    let errors =
        findings.iter().filter(|one| specc::diag::has_errors(std::slice::from_ref(one))).count();
    let next = format!("specc check --model {} --family {}", folder.display(), args.name);
    if errors == 0 {
        return output::print(&format!(
            "{} extends {from}, and takes this model: {next}\n",
            path.display()
        ));
    }
    let errors: Vec<Diagnostic> = findings;
    // What is left to do is no failure of this command.
    let _ = output::report(&sources, &errors, Format::Text);
    output::print(&format!(
        "{} extends {from}, which comes nearest; what is left is above. Then: {next}\n",
        path.display()
    ))
}

/// A family's name for people: `my_model` is My Model.
pub fn label(name: &str) -> String {
    propose::label(name)
}
