//! `chat`

use std::io::{BufRead, IsTerminal, stdin};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use serde_json::{Value, json};
use specc_text::parts::{Parts, ToolCall};
use specc_text::{Clock, Tokenizer};

use super::args::ChatArgs;
use super::console::{complain, say};
use super::generate::{self, Printer};
use super::prompt::{self, Text};
use super::{Families, begin, load};
use crate::generate::{Chat, FinishReason, Model, Session};

const HELP: &str = "/reset starts anew, /system TEXT sets the system message, /save FILE writes the messages; Ctrl-C stops an answer, Ctrl-D leaves";

pub(super) fn run(families: Families, args: &ChatArgs) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
    let model = load(families, &args.model, &args.cache.request()?)?;
    let session = begin(&model, &args.cache)?;
    let mut chat = Conversation {
        tokenizer: model.tokenizer()?,
        before: session.tokens().to_vec(),
        session,
        model: &model,
        format: model.chat(args.no_thinking, Clock::Local)?,
        args,
        messages: Vec::new(),
        said: None,
        stop,
    };
    let asks = stdin().is_terminal();
    if asks {
        complain(HELP);
    }
    let mut lines = stdin().lock().lines();
    loop {
        if asks {
            say("> ")?;
        }
        let Some(line) = lines.next() else { break };
        // A failed answer is told and the conversation goes on.
        if let Err(e) = chat.take(line?.trim()) {
            if super::console::is_closed_pipe(&e) {
                return Err(e);
            }
            complain(&format!("error: {}", super::console::reasons(&e)));
        }
    }
    if asks {
        say("\n")?;
    }
    if let Some(file) = &args.cache.save_cache {
        // Nothing said: what was loaded is saved again.
        if let Some(Transcript { ids, .. }) = &chat.said {
            generate::keep_last(&model, &mut chat.session, chat.before.len() + ids.len(), ids)?;
        }
        model.save_session(&chat.session, file)?;
    }
    Ok(())
}

/// A conversation.
struct Conversation<'a> {
    model: &'a Model,
    tokenizer: &'a Tokenizer,
    session: Session,
    /// The tokens that the conversation follows, from a file.
    before: Vec<u32>,
    format: Chat,
    args: &'a ChatArgs,
    messages: Vec<Value>,
    said: Option<Transcript>,
    stop: Arc<AtomicBool>,
}

/// What was read and said so far, as text and as tokens.
struct Transcript {
    text: String,
    ids: Vec<u32>,
}

impl Conversation<'_> {
    fn take(&mut self, line: &str) -> anyhow::Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("", _) => Ok(()),
            ("/reset", _) => {
                self.messages.retain(|m| m["role"] == "system");
                Ok(())
            }
            ("/system", text) => {
                self.messages.retain(|m| m["role"] != "system");
                if !text.is_empty() {
                    self.messages.insert(0, json!({ "role": "system", "content": text }));
                }
                Ok(())
            }
            ("/save", "") => anyhow::bail!("/save needs the name of a file"),
            ("/save", file) => self.save(Path::new(file)),
            (word, _) if word.starts_with('/') => anyhow::bail!("{word} is unknown; {HELP}"),
            _ => self.answer(line),
        }
    }

    fn save(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&self.messages)?;
        std::fs::write(path, text + "\n").with_context(|| path.display().to_string())
    }

    fn answer(&mut self, line: &str) -> anyhow::Result<()> {
        self.messages.push(json!({ "role": "user", "content": line }));
        match self.reply() {
            Ok(parts) => {
                self.messages.push(message(&parts));
                Ok(())
            }
            Err(e) => {
                self.messages.pop();
                Err(e)
            }
        }
    }

    fn reply(&mut self) -> anyhow::Result<Parts> {
        self.stop.store(false, Ordering::Relaxed);
        let rendered = self.format.render(&self.messages)?;
        let ids = [self.before.clone(), self.ids(&rendered)?].concat();
        let mut options = prompt::options(&self.args.sampling, self.model, true);
        options.denoising = self.args.denoising.options();
        let mut answer = self.model.continue_session(&mut self.session, &ids, options)?;
        if let Some(blocks) = answer.denoising() {
            // A block takes long: the wish to stop is heard at each step.
            let stop = Arc::clone(&self.stop);
            blocks.watch(Box::new(move |_| match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }));
        }
        generate::read_prompt(&mut answer)?;
        let splitter = Some(self.format.splitter(&rendered));
        let mut printer = Printer { splitter, parts: Parts::default(), silent: false };
        let mut said = ids;
        while let Some(piece) = answer.next() {
            let piece = piece?;
            said.extend(piece.id);
            printer.take(&piece.text)?;
            if self.stop.load(Ordering::Relaxed) {
                answer.cancel();
            }
        }
        printer.finish()?;
        say("\n")?;
        complain(&format!("[{}]", generate::line(&answer.stats()?)));
        if answer.finish_reason() == Some(FinishReason::Cancelled) {
            complain("[stopped]");
        }
        said.extend(answer.end_token());
        drop(answer);
        let said = said.split_off(self.before.len());
        let raw = self.tokenizer.decode(&said, false)?;
        self.said = Some(Transcript { text: raw, ids: said });
        Ok(printer.parts)
    }

    /// The tokens of a conversation. Where it goes on from what was said, the tokens said stay as
    /// they were, so that the caches hold them; only the rest is new.
    fn ids(&self, rendered: &str) -> anyhow::Result<Vec<u32>> {
        if let Some(said) = &self.said
            && let Some(rest) = rendered.strip_prefix(&said.text)
        {
            let mut ids = said.ids.clone();
            ids.extend(self.tokenizer.encode_rendered(rest)?);
            return Ok(ids);
        }
        prompt::ids(self.tokenizer, &Text::Rendered(rendered), !self.before.is_empty())
    }
}

/// An answer as a message of the conversation.
fn message(parts: &Parts) -> Value {
    let mut message = json!({ "role": "assistant", "content": parts.text });
    if !parts.thinking.is_empty() {
        message["reasoning_content"] = json!(parts.thinking);
    }
    if !parts.tool_calls.is_empty() {
        let call = |call: &ToolCall| json!({ "type": "function", "function": call.to_json() });
        message["tool_calls"] = parts.tool_calls.iter().map(call).collect();
    }
    message
}
