//! `generate`

use std::ops::ControlFlow;

use serde_json::{Value, json};
use specc_text::Clock;

use super::args::GenerateArgs;
use super::console::{Bar, complain, say};
use super::{Families, load, prompt};
use crate::generate::{FinishReason, Generation, Stats};

pub(super) fn run(families: Families, args: &GenerateArgs) -> anyhow::Result<()> {
    let listed = args.ids.as_deref().map(|text| prompt::numbers("--ids", text)).transpose()?;
    let model = load(families, &args.model)?;
    let ids: Vec<u32> = match (&listed, &args.prompt, &args.chat) {
        (Some(ids), _, _) => ids.clone(),
        (_, Some(text), _) => model.tokenizer()?.encode_prompt(text)?,
        (_, _, text) => {
            let format = model.family().chat;
            let folder = &args.model.model;
            let template =
                prompt::chat_template(folder, format, args.no_thinking, Clock::Local)?;
            let message = json!({ "role": "user", "content": text.as_deref().unwrap_or_default() });
            let variables = prompt::variables(format, &[message], args.no_thinking);
            model.tokenizer()?.encode_rendered(&template.render(&variables)?)?
        }
    };
    let mut options = prompt::options(&args.sampling, &model, listed.is_none());
    options.ignore_eos = args.ignore_eos;
    let mut answer = model.generate(&ids, options)?;
    read_prompt(&mut answer)?;
    let (mut out, mut text) = (Vec::new(), String::new());
    while let Some(piece) = answer.next() {
        let piece = piece?;
        out.extend(piece.id);
        if !args.json {
            match (listed.is_some(), piece.id) {
                (true, Some(id)) => say(&format!("{}{id}", if out.len() > 1 { "," } else { "" }))?,
                _ => say(&piece.text)?,
            }
        }
        text.push_str(&piece.text);
    }
    let stats = answer.stats()?;
    let reason = answer.finish_reason().unwrap_or(FinishReason::Length);
    if args.json {
        let text = listed.is_none().then_some(text);
        let object = report(&ids, &out, text, reason, &stats);
        return say(&format!("{object}\n"));
    }
    say("\n")?;
    complain(&line(&stats));
    Ok(())
}

/// Reads the prompt with a bar where it takes long.
pub(super) fn read_prompt(answer: &mut Generation<'_>) -> anyhow::Result<()> {
    let mut bar = None;
    answer.read_prompt(&mut |done, total| {
        let bar = bar.get_or_insert_with(|| Bar::new("reading the prompt", total as u64, false));
        bar.set(done as u64);
        ControlFlow::Continue(())
    })?;
    bar.map(Bar::end);
    Ok(())
}

fn report(
    prompt_ids: &[u32],
    ids: &[u32],
    text: Option<String>,
    reason: FinishReason,
    stats: &Stats,
) -> Value {
    json!({
        "prompt_ids": prompt_ids,
        "ids": ids,
        "text": text,
        "thinking": null,
        "tool_calls": [],
        "finish_reason": reason.word(),
        "prompt_tokens": stats.prompt_tokens,
        "cached_tokens": stats.cached_tokens,
        "generated_tokens": stats.generated_tokens,
        "prefill_ms": milliseconds(stats.prefill),
        "prefill_tps": stats.prefill_tps(),
        "decode_ms": milliseconds(stats.decode),
        "decode_tps": stats.decode_tps(),
        "peak_memory_bytes": stats.peak_memory,
    })
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
    format!(
        "prompt: {} tokens{cached}, {:.1} tokens/s; generated: {} tokens, {:.1} tokens/s; peak memory: {:.3} GB",
        stats.prompt_tokens,
        stats.prefill_tps(),
        stats.generated_tokens,
        stats.decode_tps(),
        stats.peak_memory as f64 / 1e9,
    )
}
