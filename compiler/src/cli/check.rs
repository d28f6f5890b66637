//! `specc check`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use specc::checks::{Checks, check_among, check_families, manifests};
use specc::diag::{Code, Diagnostic};
use specc::library::Library;
use specc::manifest::Manifest;
use specc::model::{self, Model};
use specc::source::{FileId, Span};
use specc_checkpoint::config::ConfigFile;

use super::{CheckArgs, Failure, Format, Outcome, output};

pub fn run(args: &CheckArgs) -> Outcome {
    let (folders, only) = split(&args.paths)?;
    let mut library = output::library(&folders)?;
    let names: Vec<String> = match only.is_empty() {
        true => library.families().map(str::to_owned).collect(),
        false => only,
    };
    match &args.model {
        Some(folder) => against(&mut library, args, folder),
        None => specs(&library, &names, args.format),
    }
}

/// Folders to read, and the families named by single files.
fn split(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<String>), Failure> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut only = Vec::new();
    for path in paths {
        if path.is_dir() {
            folders.push(path.clone());
            continue;
        }
        let end = path.extension().and_then(|end| end.to_str());
        if !path.is_file() || !matches!(end, Some("toml" | "graph")) {
            return Err(Failure::Usage(format!(
                "{} is neither a folder nor a spec",
                path.display()
            )));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        if !folders.contains(&folder) {
            folders.push(folder);
        }
        only.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    Ok((folders, only))
}

fn specs(library: &Library, names: &[String], format: Format) -> Outcome {
    for name in names {
        output::known(library, name)?;
    }
    let Checks { families, diagnostics } = check_families(library, names);
    output::report(&library.sources, &diagnostics, format)?;
    match format {
        Format::Text => {
            let plural = if families.len() == 1 { "family" } else { "families" };
            let warnings = match diagnostics.len() {
                0 => String::new(),
                1 => ", 1 warning".to_owned(),
                many => format!(", {many} warnings"),
            };
            output::print(&format!("{} {plural}: no errors{warnings}\n", families.len()))
        }
        Format::Json => Ok(()),
    }
}

fn against(library: &mut Library, args: &CheckArgs, folder: &Path) -> Outcome {
    let at = library.sources.add(folder.join("config.json").display().to_string(), "");
    let model = match Model::open(folder) {
        Ok(model) => model,
        Err(problems) => {
            let shown = Span { file: at, start: 0, end: 0 };
            let diags: Vec<Diagnostic> = problems
                .into_iter()
                .map(|problem| Diagnostic::error(Code::ModelFiles, shown, problem))
                .collect();
            return output::report(&library.sources, &diags, args.format);
        }
    };
    let (manifests, broken) = manifests(library);
    let name = match &args.family {
        Some(name) => {
            output::known(library, name)?;
            name.clone()
        }
        None => picked(library, (&manifests, broken), &model.config, at, args.format)?,
    };
    let Checks { families, mut diagnostics } =
        check_among(library, std::slice::from_ref(&name), &manifests);
    let Some(checked) = families.get(&name) else {
        return output::report(&library.sources, &diagnostics, args.format);
    };
    match model::check(library, &checked.manifest, &checked.program, &model) {
        Ok((report, warnings)) => {
            diagnostics.extend(warnings);
            output::report(&library.sources, &diagnostics, args.format)?;
            match args.format {
                Format::Text => output::print(&report.text()),
                Format::Json => Ok(()),
            }
        }
        Err(found) => {
            diagnostics.extend(found);
            output::report(&library.sources, &diagnostics, args.format)
        }
    }
}

/// The family that takes a config, which is shown as `path`.
pub fn family_of(
    library: &Library,
    config: &ConfigFile,
    path: &Path,
    format: Format,
) -> Result<String, Failure> {
    let mut library = library.clone();
    let at = library.sources.add(path.display().to_string(), "");
    let (manifests, broken) = manifests(&library);
    picked(&library, (&manifests, broken), config, at, format)
}

fn picked(
    library: &Library,
    (manifests, broken): (&BTreeMap<String, Manifest>, Vec<Diagnostic>),
    config: &ConfigFile,
    at: FileId,
    format: Format,
) -> Result<String, Failure> {
    match model::pick(manifests, config, at) {
        Ok(manifest) => Ok(manifest.family.name.node.clone()),
        Err(error) => {
            // A family that cannot be read may be the one that was meant.
            let diags: Vec<Diagnostic> = broken.into_iter().chain([*error]).collect();
            output::report(&library.sources, &diags, format)?;
            Err(Failure::Found)
        }
    }
}
