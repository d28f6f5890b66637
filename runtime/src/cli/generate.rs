//! `generate`

use std::ops::ControlFlow;

use serde_json::{Value, json};
use specc_text::Clock;
use specc_text::parts::{Part, PartSplitter, Parts, ToolCall};

use super::args::GenerateArgs;
use super::canvas::CanvasView;
use super::console::{Bar, complain, say, whisper};
use super::prompt::{self, Text};
use super::{Families, begin, load};
use crate::generate::{FinishReason, Generation, Model, Session, Stats};

pub(super) fn run(families: Families, args: &GenerateArgs) -> anyhow::Result<()> {
    let mut splitter = None;
    let listed = args.ids.as_deref().map(|text| prompt::numbers("--ids", text)).transpose()?;
    let model = load(families, &args.model, &args.cache.request()?)?;
    let mut session = begin(&model, &args.cache)?;
    let follows = !session.tokens().is_empty();
    let ids: Vec<u32> = match (&listed, &args.prompt, &args.chat) {
        (Some(ids), _, _) => ids.clone(),
        (_, Some(text), _) => prompt::ids(model.tokenizer()?, &Text::Plain(text), follows)?,
        (_, _, text) => {
            let chat = model.chat(args.no_thinking, Clock::Local)?;
            let message = json!({ "role": "user", "content": text.as_deref().unwrap_or_default() });
            let rendered = chat.render(&[message])?;
            splitter = Some(chat.splitter(&rendered));
            prompt::ids(model.tokenizer()?, &Text::Rendered(&rendered), follows)?
        }
    };
    let mut options = prompt::options(&args.sampling, &model, listed.is_none());
    options.ignore_eos = args.ignore_eos;
    options.denoising = args.denoising.options();
    let whole = [session.tokens(), &ids].concat();
    let mut answer = model.continue_session(&mut session, &whole, options)?;
    if args.show_canvas {
        let Some(blocks) = answer.denoising() else {
            let name = model.family().name;
            anyhow::bail!("--show-canvas: models of the family {name} do not denoise");
        };
        let tokenizer = if listed.is_none() { Some(model.tokenizer()?) } else { None };
        let mut view = CanvasView::new(tokenizer);
        blocks.watch(Box::new(move |step| {
            view.show(step);
            ControlFlow::Continue(())
        }));
    }
    read_prompt(&mut answer)?;
    let mut printer = Printer { splitter, parts: Parts::default(), silent: args.json };
    let mut out = Vec::new();
    for piece in answer.by_ref() {
        let piece = piece?;
        if let (true, false, Some(id)) = (listed.is_some(), args.json, piece.id) {
            say(&format!("{}{id}", if out.is_empty() { "" } else { "," }))?;
        }
        out.extend(piece.id);
        printer.take(&piece.text)?;
    }
    printer.finish()?;
    let stats = answer.stats()?;
    let parts = printer.parts;
    let mut reason = answer.finish_reason().unwrap_or(FinishReason::Length);
    drop(answer);
    if let Some(file) = &args.cache.save_cache {
        keep_last(&model, &mut session, whole.len() + out.len(), &out)?;
        model.save_session(&session, file)?;
    }
    if reason == FinishReason::Stop && !parts.tool_calls.is_empty() {
        reason = FinishReason::ToolCalls;
    }
    if args.json {
        let parts = listed.is_none().then_some(&parts);
        let mut object = report(&ids, &out, parts, reason, &stats);
        object["composition"] = json!(model.composition());
        return say(&format!("{object}\n"));
    }
    say("\n")?;
    complain(&line(&stats));
    Ok(())
}

/// Shows an answer while it comes: the text on stdout, thinking and calls of tools told apart.
pub(super) struct Printer {
    /// Without one all is text.
    pub splitter: Option<PartSplitter>,
    /// What came so far.
    pub parts: Parts,
    /// Nothing is shown.
    pub silent: bool,
}

impl Printer {
    /// Takes a piece of the answer.
    pub fn take(&mut self, piece: &str) -> anyhow::Result<()> {
        let parts = match &mut self.splitter {
            Some(splitter) => splitter.push(piece),
            None => vec![Part::Text(piece.to_owned())],
        };
        self.show(parts)
    }

    /// Shows what the splitter held back.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        let parts = self.splitter.as_mut().map(PartSplitter::finish);
        self.show(parts.unwrap_or_default())
    }

    fn show(&mut self, parts: Vec<Part>) -> anyhow::Result<()> {
        for part in parts {
            if !self.silent {
                match &part {
                    Part::Text(text) => say(text)?,
                    // The answer alone goes to stdout.
                    Part::Thinking(text) => whisper(text),
                    Part::ToolCall(call) => say(&format!("{}\n", call.to_json()))?,
                }
            }
            self.parts.add(part);
        }
        Ok(())
    }
}

/// Reads the last token said where an answer ended by its length: nobody asked what follows it, so
/// that it is not in the caches yet.
pub(super) fn keep_last(
    model: &Model,
    session: &mut Session,
    total: usize,
    said: &[u32],
) -> anyhow::Result<()> {
    let missing = total.saturating_sub(session.tokens().len()).min(said.len());
    Ok(model.append(session, &said[said.len() - missing..])?)
}

/// Reads the prompt with a bar where it takes long.
pub(super) fn read_prompt(answer: &mut Generation<'_>) -> anyhow::Result<()> {
    let mut bar = None;
    answer.read_prompt(&mut |done, total| {
        let bar = bar.get_or_insert_with(|| Bar::new("reading the prompt", total as u64, false));
        bar.set(done as u64);
        ControlFlow::Continue(())
    })?;
    if let Some(bar) = bar {
        bar.end();
    }
    Ok(())
}

fn report(
    prompt_ids: &[u32],
    ids: &[u32],
    parts: Option<&Parts>,
    reason: FinishReason,
    stats: &Stats,
) -> Value {
    let thinking = parts.map(|parts| parts.thinking.as_str()).filter(|text| !text.is_empty());
    let calls = parts.iter().flat_map(|parts| &parts.tool_calls).map(ToolCall::to_json);
    let mut object = json!({
        "prompt_ids": prompt_ids,
        "ids": ids,
        "text": parts.map(|parts| parts.text.as_str()),
        "thinking": thinking,
        "tool_calls": calls.collect::<Vec<_>>(),
        "finish_reason": reason.word(),
        "prompt_tokens": stats.prompt_tokens,
        "cached_tokens": stats.cached_tokens,
        "generated_tokens": stats.generated_tokens,
        "prefill_ms": milliseconds(stats.prefill),
        "prefill_tps": stats.prefill_tps(),
        "decode_ms": milliseconds(stats.decode),
        "decode_tps": stats.decode_tps(),
        "peak_memory_bytes": stats.peak_memory,
    });
    if stats.denoising_steps > 0 {
        object["denoising_steps"] = stats.denoising_steps.into();
    }
    object
}

fn milliseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// One line of statistics.
pub(super) fn line(stats: &Stats) -> String {
    let cached = match stats.cached_tokens {
        0 => String::new(),
        n => format!(" ({n} from the cache)"),
    };
    let steps = match stats.denoising_steps {
        0 => String::new(),
        n => format!(" in {n} denoising steps"),
    };
    format!(
        "prompt: {} tokens{cached}, {:.1} tokens/s; generated: {} tokens{steps}, {:.1} tokens/s; peak memory: {:.3} GB",
        stats.prompt_tokens,
        stats.prefill_tps(),
        stats.generated_tokens,
        stats.decode_tps(),
        stats.peak_memory as f64 / 1e9,
    )
}
