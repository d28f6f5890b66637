//! Printing: results to stdout, findings to stderr, colour only on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;

use specc::diag::Diagnostic;
use specc::diag::render::{self, Style};
use specc::library::Library;
use specc::source::Sources;

use super::{Failure, Format, Outcome};

/// Writes to stdout; a reader that has gone away ends the command in silence.
pub fn print(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes to stderr; when that fails there is nobody to tell.
pub fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints findings in order; with errors among them the command has failed.
pub fn report(sources: &Sources, diagnostics: &[Diagnostic], format: Format) -> Outcome {
    match format {
        Format::Text => {
            let plain = !std::io::stderr().is_terminal() || std::env::var_os("NO_COLOR").is_some();
            let style = if plain { Style::Plain } else { Style::Colour };
            complain(&render::all(sources, diagnostics, style));
        }
        Format::Json => {
            let lines = render::sorted(diagnostics).into_iter();
            let lines: String = lines.map(|one| render::json(sources, one) + "\n").collect();
            print(&lines)?;
        }
    }
    if specc::diag::has_errors(diagnostics) { Err(Failure::Found) } else { Ok(()) }
}

/// The library: the folders given, or ./specs where it exists, over the built-in specs.
pub fn library(folders: &[PathBuf]) -> Result<Library, Failure> {
    let here = PathBuf::from("specs");
    if folders.is_empty() {
        return Ok(if here.is_dir() { Library::with_dir(&here) } else { Library::builtin() });
    }
    for folder in folders {
        if !folder.is_dir() {
            return Err(Failure::Usage(format!("{} is no folder", folder.display())));
        }
    }
    Ok(Library::with_dirs(folders))
}

/// A family that must exist.
pub fn known(library: &Library, family: &str) -> Outcome {
    if library.families().any(|known| known == family) {
        return Ok(());
    }
    let near = specc::diag::nearest(family, library.families());
    let hint = near.map_or_else(
        || "`specc list` shows the families".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Err(Failure::Usage(format!("no family is named `{family}`; {hint}")))
}
