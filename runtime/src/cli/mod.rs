//! The command that runs models, for whoever has families to run.
//!
//! A program of its own is three lines: `fn main() -> ExitCode { specc_runtime::cli::main(families()) }`.
//! What a user asked for goes to stdout, everything else to stderr; a failure is one line and exit
//! code 1, a wrong command line exit code 2.

mod args;
mod bench;
mod canvas;
mod chat;
mod console;
mod embed;
mod generate;
mod import;
mod info;
mod logits;
mod prompt;
mod render;
mod replay;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::composition::CompositionRequest;
use crate::family::Family;
use crate::generate::{Model, Session};
use crate::weights::LoadOptions;
use args::{Args, Command};
use console::Activity;

/// The families that a command can run.
type Families = &'static [&'static Family];

/// Runs the command line of this process.
pub fn main(families: Families) -> ExitCode {
    replay::plain_products(std::env::args_os().nth(1).as_deref());
    run(families, std::env::args_os())
}

/// Runs a command line, whose first word is the program's name.
pub fn run(families: Families, line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(line) {
        Ok(args) => args,
        Err(e) => {
            // Help and version come this way too; there is nobody to tell when printing fails.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    match dispatch(families, args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if console::is_closed_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            console::complain(&format!("error: {}", console::reasons(&e)));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(families: Families, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Generate(args) => generate::run(families, &args),
        Command::Chat(args) => chat::run(families, &args),
        Command::Logits(args) => logits::run(families, &args),
        Command::ImportGguf(args) => import::run(families, &args),
        Command::Info(args) => info::run(families, &args),
        Command::Render(args) => render::run(families, &args),
        Command::Embed(args) => embed::run(families, &args),
        Command::Bench(args) => bench::run(families, &args),
        Command::Replay(args) => replay::run(families, &args),
    }
}

/// Loads a model and says so when it takes a while.
fn load(
    families: Families,
    model: &args::ModelArgs,
    request: &CompositionRequest,
) -> anyhow::Result<Model> {
    let activity = Activity::start(format!("loading {}", model.model.display()));
    let options = LoadOptions { keep_quantized: model.keep_quantized };
    let model = Model::load_with(families, &model.model, options, request)?;
    activity.end();
    warn(&model);
    Ok(model)
}

/// Says what of the folder has no part in the model, a line for each sort.
fn warn(model: &Model) {
    warn_of_unread(model);
    warn_of_passed_over(model);
}

/// Says which files and tensors are not read: text may be wrong for want of them.
fn warn_of_passed_over(model: &Model) {
    const MOST: usize = 8;
    let notes = model.source().index().notes();
    if notes.is_empty() {
        return;
    }
    let mut told: Vec<String> = notes.iter().take(MOST).map(ToString::to_string).collect();
    if notes.len() > MOST {
        told.push(format!("and {} more", notes.len() - MOST));
    }
    console::complain(&format!("warning: {}", told.join("; ")));
}

/// Says which keys of the config nobody reads: one that means something is not dropped in silence.
fn warn_of_unread(model: &Model) {
    const MOST: usize = 8;
    let unread = model.unread();
    if unread.is_empty() {
        return;
    }
    let mut keys: Vec<String> = unread.iter().take(MOST).map(ToString::to_string).collect();
    if unread.len() > MOST {
        keys.push(format!("and {} more", unread.len() - MOST));
    }
    let family = model.family().name;
    console::complain(&format!(
        "warning: config.json: the family {family} does not read {}",
        keys.join(", ")
    ));
}

/// The session that a request begins with: a file's, or an empty one.
fn begin(model: &Model, cache: &args::CacheArgs) -> anyhow::Result<Session> {
    Ok(match &cache.load_cache {
        Some(file) => model.load_session(file)?,
        None => model.session(),
    })
}

#[cfg(test)]
mod tests;
