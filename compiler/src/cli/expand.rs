//! `specc expand`

use specc::compile;
use specc::expr::{ConfigValues, LayerValues, evaluate, evaluate_layers};
use specc::library::Library;
use specc::show;
use specc_checkpoint::config::ConfigFile;

use super::{ExpandArgs, Failure, Format, Outcome, Stage, output};

pub fn run(args: &ExpandArgs) -> Outcome {
    let library = output::library(&args.specs)?;
    output::known(&library, &args.family)?;
    if let [Stage::Ast] = args.emit.as_slice() {
        return ast(&library, &args.family);
    }
    let checked = match compile::check(&library, &args.family) {
        Ok(checked) => checked,
        Err(found) => return output::report(&library.sources, &found, Format::Text),
    };
    let model = match &args.config {
        None => None,
        Some(path) => {
            let config =
                ConfigFile::read(path).map_err(|error| Failure::Message(error.to_string()))?;
            let read =
                || -> Result<(ConfigValues, Vec<LayerValues>), Vec<specc::diag::Diagnostic>> {
                    let values = evaluate(&checked.manifest, &config)?;
                    let layers = evaluate_layers(&checked.manifest, &values)?;
                    Ok((values, layers))
                };
            match read() {
                Ok(model) => Some(model),
                Err(found) => return output::report(&library.sources, &found, Format::Text),
            }
        }
    };
    let config = model.as_ref().map(|(config, _)| config);
    let single = args.emit.len() == 1;
    for stage in &args.emit {
        let (title, text) = match stage {
            Stage::Spec => ("spec", spec(&library, &args.family, config)?),
            Stage::Graph => ("graph", show::graph(&checked.program, config)),
            Stage::Tensors => {
                let model = model.as_ref().map(|(config, layers)| (config, layers.as_slice()));
                ("tensors", show::tensors(&checked.program, model))
            }
            Stage::Caches => {
                let layers = model.as_ref().map(|(_, layers)| layers.as_slice());
                ("caches", show::caches(&library, &checked.manifest, layers))
            }
            Stage::Ast => {
                ast(&library, &args.family)?;
                continue;
            }
            Stage::Ir => ("ir", format!("{:#?}\n", checked.program)),
            Stage::Rust => (
                "rust",
                compile::generate(&library, &checked)
                    .map_err(|error| Failure::Message(error.to_string()))?,
            ),
        };
        if !single {
            output::print(&format!("# {title}\n\n"))?;
        }
        output::print(&text)?;
        if !single {
            output::print("\n")?;
        }
    }
    Ok(())
}

/// The merged manifest, and the values of its keys where a config is at hand.
fn spec(library: &Library, family: &str, config: Option<&ConfigValues>) -> Result<String, Failure> {
    let table = match library.resolved(family) {
        Ok(table) => table,
        Err(found) => {
            output::report(&library.sources, &found, Format::Text)?;
            return Err(Failure::Found);
        }
    };
    let mut text =
        toml::to_string(&table).map_err(|error| Failure::Message(format!("{family}: {error}")))?;
    if let Some(config) = config {
        text.push_str("\n# values for this config\n");
        for (name, value) in &config.keys {
            text.push_str(&format!("# {name} = {value}\n"));
        }
    }
    Ok(text)
}

fn ast(library: &Library, family: &str) -> Outcome {
    match library.load_family(family) {
        Ok((_, graphs)) => output::print(&format!("{graphs:#?}\n")),
        Err(found) => output::report(&library.sources, &found, Format::Text),
    }
}
