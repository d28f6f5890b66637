//! `specc explain`

use specc::diag::{Code, nearest};
use specc::library::Library;

use super::{ExplainArgs, Failure, Outcome, output};

pub fn run(args: &ExplainArgs) -> Outcome {
    let word = args.code.trim();
    if let Some(code) = Code::parse(word) {
        let text = wrapped(code.explain(), 96);
        return output::print(&format!("{code}: {}\n\n{text}\n", code.title()));
    }
    let library = output::library(&[])?;
    if let Some(text) = definition(&library, word) {
        return output::print(&text);
    }
    let codes = Code::ALL.iter().map(|code| code.as_str());
    let names = names(&library);
    let near = nearest(&word.to_uppercase(), codes)
        .or_else(|| nearest(word, names.iter().map(String::as_str)));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => "codes look like S0102; the library's blocks are known by their names".to_owned(),
    };
    Err(Failure::Usage(format!("nothing is called {word:?}; {hint}")))
}

/// A block or op of the library as its author wrote it, with what is said about it.
fn definition(library: &Library, name: &str) -> Option<String> {
    library.modules().into_iter().find_map(|(module, file)| {
        let blocks = file.blocks.iter().map(|block| (&block.name, &block.doc, block.span));
        let externs = file.externs.iter().map(|ext| (&ext.name, &ext.doc, ext.span));
        let (_, doc, span) = blocks.chain(externs).find(|(known, ..)| known.node == name)?;
        let (line, _) = library.sources.line_column(span);
        let at = &library.sources.file(span.file).name;
        let comment = |line: &str| format!("{}\n", format!("/// {}", line.trim()).trim_end());
        let doc: String = doc.lines().map(comment).collect();
        let text = library.sources.text(span);
        Some(format!("{name} of std::{module}, {at}:{line}\n\n{doc}{text}\n"))
    })
}

fn names(library: &Library) -> Vec<String> {
    let mut names = Vec::new();
    for (_, file) in library.modules() {
        names.extend(file.blocks.iter().map(|block| block.name.node.clone()));
        names.extend(file.externs.iter().map(|ext| ext.name.node.clone()));
    }
    names
}

fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}
