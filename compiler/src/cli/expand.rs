//! `specc expand`

use std::path::Path;

use specc::compile;
use specc::diag::Diagnostic;
use specc::expr::{ConfigValues, LayerValues, evaluate, evaluate_layers};
use specc::library::Library;
use specc::manifest::Manifest;
use specc::show::{self, Numbers};
use specc_checkpoint::config::{ConfigFile, Key};

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
        Some(path) => match read(&checked.manifest, path)? {
            Ok(model) => Some(model),
            Err(found) => return output::report(&library.sources, &found, Format::Text),
        },
    };
    let numbers = model.as_ref().map(Model::numbers);
    let config = model.as_ref().map(|model| &model.config);
    let single = args.emit.len() == 1;
    for stage in &args.emit {
        let (title, text) = match stage {
            Stage::Spec => ("spec", spec(&library, &args.family, config)?),
            Stage::Graph => ("graph", show::graph(&checked.program, config)),
            Stage::Tensors => {
                let model = numbers.as_ref().map(|numbers| (numbers.config, numbers.layers));
                ("tensors", show::tensors(&checked.program, model))
            }
            Stage::Caches => {
                let (manifest, program) = (&checked.manifest, &checked.program);
                match show::caches(&library, manifest, program, numbers.as_ref()) {
                    Ok(text) => ("caches", text),
                    Err(found) => return output::report(&library.sources, &found, Format::Text),
                }
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

/// What a config.json makes of a family.
struct Model {
    config: ConfigValues,
    layers: Vec<LayerValues>,
    dtype: String,
}

impl Model {
    fn numbers(&self) -> Numbers<'_> {
        let width = match self.dtype.as_str() {
            "float32" => 4,
            _ => 2,
        };
        Numbers { config: &self.config, layers: &self.layers, dtype: &self.dtype, width }
    }
}

/// The model of a config.json; within, what the family finds wrong with it.
fn read(manifest: &Manifest, path: &Path) -> Result<Result<Model, Vec<Diagnostic>>, Failure> {
    let file = ConfigFile::read(path).map_err(|error| Failure::Message(error.to_string()))?;
    // Checkpoints are stored in bfloat16 where they do not say otherwise.
    let dtype =
        file.under(&["text_config", ""]).json(Key::new("dtype").paths(&["dtype", "torch_dtype"]));
    let dtype = dtype.and_then(|word| word.as_str()).unwrap_or("bfloat16").to_owned();
    let values = || {
        let config = evaluate(manifest, &file)?;
        let layers = evaluate_layers(manifest, &config)?;
        Ok(Model { config, layers, dtype })
    };
    Ok(values())
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
