//! Wrong specs and what is said about them, pinned word for word: tests/ui/*.md at the top of the
//! repository. `SPECC_BLESS=1` writes what is said now.
//!
//! A case with a config.json is a model folder, held against the case's specs by the command itself;
//! its tensors stand one a line, `{0..3}` for several. A `raw` document may hold bytes, `\xff`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use specc::checks::check_families;
use specc::diag::render::{self, Style};
use specc::library::{Library, Origin};

mod common;

/// One wrong spec.
#[derive(Debug, Default)]
struct Case {
    title: String,
    /// Kind, name and text of each document.
    files: Vec<(String, String, String)>,
    expected: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/ui")
}

/// Sections `## title` with fenced documents (```` ```toml acme.toml ````) and one ```` ```text ````.
fn read(text: &str) -> (String, Vec<Case>) {
    let (mut head, mut cases) = (String::new(), Vec::<Case>::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            cases.push(Case { title: title.to_owned(), ..Case::default() });
        } else if let Some(info) = line.strip_prefix("```") {
            let mut body = String::new();
            for line in lines.by_ref().take_while(|line| *line != "```") {
                body.push_str(line);
                body.push('\n');
            }
            let case = cases.last_mut().expect("a fence stands in a section");
            match info.split_once(' ') {
                Some((kind, name)) => case.files.push((kind.to_owned(), name.to_owned(), body)),
                None => case.expected = body,
            }
        } else if let Some(title) = line.strip_prefix("# ") {
            head = title.to_owned();
        }
    }
    (head, cases)
}

fn write(head: &str, cases: &[Case]) -> String {
    let mut out = format!("# {head}\n");
    for case in cases {
        write!(out, "\n## {}\n", case.title).unwrap();
        for (kind, name, text) in &case.files {
            write!(out, "\n```{kind} {name}\n{text}```\n").unwrap();
        }
        write!(out, "\n```text\n{}```\n", case.expected).unwrap();
    }
    out
}

/// What the command says about a case that needs files.
fn told(case: &Case) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut args = vec!["check"];
    for (kind, name, text) in &case.files {
        let path = match kind.as_str() {
            "json" | "tensors" => {
                args = vec!["check", "--model", "model"];
                dir.path().join("model").join(name)
            }
            _ => dir.path().join("specs").join(name),
        };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match kind.as_str() {
            "tensors" => {
                let tensors: Vec<_> = text.lines().flat_map(common::expanded).collect();
                common::write_tensors(&path, &tensors);
            }
            "raw" => std::fs::write(path, bytes(text)).unwrap(),
            _ => std::fs::write(path, text).unwrap(),
        }
    }
    let command = env!("CARGO_BIN_EXE_specc");
    let output = Command::new(command).args(args).current_dir(dir.path()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.is_empty(), "{}: nothing is said", case.title);
    format!("{}\n", text.trim_end())
}

/// A text with `\xff` for bytes.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (byte, rest) = part.split_at(2);
        out.push(u8::from_str_radix(byte, 16).unwrap());
        out.extend(rest.as_bytes());
    }
    out
}

/// What `specc check` says about the documents.
fn said(builtin: &Library, case: &Case) -> String {
    if case.files.iter().any(|(kind, ..)| matches!(kind.as_str(), "json" | "tensors" | "raw")) {
        return told(case);
    }
    let mut library = builtin.clone();
    for (_, name, text) in &case.files {
        library.add(Origin::Folder, name, &format!("specs/{name}"), text);
    }
    let names: Vec<String> =
        library.families().filter(|name| library.is_local(name)).map(str::to_owned).collect();
    let checks = check_families(&library, &names);
    assert!(!checks.diagnostics.is_empty(), "{}: nothing is wrong", case.title);
    let text = render::all(&library.sources, &checks.diagnostics, Style::Plain);
    format!("{}\n", text.trim_end())
}

#[test]
fn wrong_specs_are_told_what_is_wrong() {
    let builtin = Library::builtin();
    let bless = std::env::var_os("SPECC_BLESS").is_some();
    let (mut count, mut failures) = (0, String::new());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = std::fs::read_to_string(path).unwrap();
        let (head, mut cases) = read(&text);
        for case in &mut cases {
            count += 1;
            let said = said(&builtin, case);
            if said != case.expected {
                write!(
                    failures,
                    "{}: {}\n--- expected\n{}--- said\n{said}\n",
                    path.display(),
                    case.title,
                    case.expected
                )
                .unwrap();
                case.expected = said;
            }
        }
        let written = write(&head, &cases);
        if bless {
            std::fs::write(path, written).unwrap();
        } else if failures.is_empty() {
            assert_eq!(written, text, "{} is not in the form that is written", path.display());
        }
    }
    assert!(count >= 170, "only {count} wrong specs");
    assert!(bless || failures.is_empty(), "{failures}");
}

#[test]
fn every_code_is_explained() {
    for code in specc::diag::Code::ALL {
        let (title, text) = (code.title(), code.explain());
        assert!(!title.is_empty() && text.len() > title.len() && text.ends_with('.'), "{code}");
    }
}

#[test]
fn every_code_is_shown() {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        all.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let missing: Vec<&str> = specc::diag::Code::ALL
        .iter()
        .map(|code| code.as_str())
        .filter(|code| !all.contains(&format!("[{code}]")))
        .collect();
    assert_eq!(missing, [""; 0]);
}
