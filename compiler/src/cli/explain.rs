//! `specc explain`

use specc::diag::{Code, nearest};

use super::{ExplainArgs, Failure, Outcome, output};

pub fn run(args: &ExplainArgs) -> Outcome {
    match Code::parse(args.code.trim()) {
        Some(code) => {
            output::print(&format!("{code}: {}\n\n{}\n", code.title(), wrapped(code.explain(), 96)))
        }
        None => {
            let known = Code::ALL.iter().map(|code| code.as_str());
            let hint = match nearest(&args.code.to_uppercase(), known) {
                Some(near) => format!("did you mean {near}?"),
                None => "codes look like S0102".to_owned(),
            };
            Err(Failure::Usage(format!("no finding has the code {:?}; {hint}", args.code)))
        }
    }
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
