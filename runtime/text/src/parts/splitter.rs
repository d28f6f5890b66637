//! The streaming splitter.

use serde_json::Value;

use super::calls::{self, parse};
use super::{Part, ThinkingFormat, ToolCallFormat};

/// Where in the text the splitter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Answer,
    Thinking,
    /// The first line of a channel, which names it.
    ChannelName,
    /// In a tool call that this marker ends.
    Call(&'static str),
}

/// Splits text that arrives in pieces.
#[derive(Debug, Clone)]
pub struct PartSplitter {
    thinking: ThinkingFormat,
    calls: ToolCallFormat,
    tools: Value,
    mode: Mode,
    pending: String,
    /// Blanks of the answer or the thinking that are shown only when more follows.
    blanks: String,
    /// Blanks before what may be a call: shown when it is none.
    before_call: String,
    /// Nothing was shown since the last thinking or call, whose blanks are not the answer's.
    at_start: bool,
    /// How much of a call's text holds no end of it.
    searched: usize,
}

impl PartSplitter {
    /// A splitter at the start of an answer. `tools` are those of the prompt (null when none):
    /// their schemas say which arguments are text.
    pub fn new(thinking: ThinkingFormat, calls: ToolCallFormat, tools: Value) -> Self {
        Self {
            thinking,
            calls,
            tools,
            mode: Mode::Answer,
            pending: String::new(),
            blanks: String::new(),
            before_call: String::new(),
            at_start: false,
            searched: 0,
        }
    }

    /// The same, where the end of the prompt may have opened the thinking already.
    #[must_use]
    pub fn after_prompt(mut self, prompt: &str) -> Self {
        let Some((open, close)) = markers(self.thinking) else { return self };
        let opened = prompt.rfind(open).map(|at| at + open.len());
        let closed = prompt.rfind(close);
        if let Some(opened) = opened
            && closed.is_none_or(|closed| closed < opened)
        {
            let rest = prompt.get(opened..).unwrap_or_default();
            let named = self.thinking == ThinkingFormat::Channel && !rest.contains('\n');
            self.mode = if named { Mode::ChannelName } else { Mode::Thinking };
            self.at_start = true;
        }
        self
    }

    /// Takes a piece and gives the parts that it completes.
    pub fn push(&mut self, piece: &str) -> Vec<Part> {
        self.pending.push_str(piece);
        let mut parts = Vec::new();
        while self.step(&mut parts) {}
        parts
    }

    /// The parts still held back, when the model has ended. An unfinished call that makes sense is
    /// a call; else it is text.
    pub fn finish(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        let rest = std::mem::take(&mut self.pending);
        match self.mode {
            Mode::Call(_) => self.call(&rest, "", &mut parts),
            Mode::ChannelName => {}
            Mode::Thinking => self.show(&rest, &mut parts),
            Mode::Answer => {
                self.show(&rest, &mut parts);
                let blanks = std::mem::take(&mut self.blanks);
                if !blanks.is_empty() {
                    parts.push(Part::Text(blanks));
                }
            }
        }
        self.mode = Mode::Answer;
        parts
    }

    /// One step; whether there may be another.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.mode {
            Mode::Answer => self.answer(parts),
            Mode::Thinking => self.think(parts),
            Mode::ChannelName => self.channel_name(),
            Mode::Call(close) => {
                let from = self.searched.min(self.pending.len());
                match calls::find_end(&self.pending, from, close, self.calls) {
                    Some(at) => {
                        let rest = self.pending.split_off(at + close.len());
                        let mut body = std::mem::replace(&mut self.pending, rest);
                        body.truncate(at);
                        self.mode = Mode::Answer;
                        self.call(&body, close, parts);
                        true
                    }
                    None => {
                        self.searched = boundary(&self.pending, close.len());
                        false
                    }
                }
            }
        }
    }

    fn answer(&mut self, parts: &mut Vec<Part>) -> bool {
        let thinking = markers(self.thinking);
        let openers = calls::openers(self.calls);
        let all = openers
            .iter()
            .map(|(open, _)| *open)
            .chain(thinking.into_iter().flat_map(|(open, close)| [open, close]));
        let first = all
            .clone()
            .filter_map(|marker| self.pending.find(marker).map(|at| (at, marker)))
            .min_by_key(|(at, marker)| (*at, usize::MAX - marker.len()));
        let Some((at, marker)) = first else {
            let keep = held_back(&self.pending, all);
            let rest = self.pending.split_off(self.pending.len() - keep);
            let shown = std::mem::replace(&mut self.pending, rest);
            self.show(&shown, parts);
            return false;
        };
        let rest = self.pending.split_off(at);
        let shown = std::mem::replace(&mut self.pending, rest);
        self.show(&shown, parts);
        self.before_call = std::mem::take(&mut self.blanks);
        self.at_start = true;
        if let Some((open, close)) = openers.iter().find(|(open, _)| *open == marker) {
            // Some openers are the first words of the call itself.
            if calls::is_wrapper(open) {
                self.pending.drain(..open.len());
            }
            self.searched = 0;
            self.mode = Mode::Call(close);
            return true;
        }
        self.pending.drain(..marker.len());
        if thinking.is_some_and(|(open, _)| open == marker) {
            self.mode = match self.thinking {
                ThinkingFormat::Channel => Mode::ChannelName,
                _ => Mode::Thinking,
            };
        }
        true
    }

    fn think(&mut self, parts: &mut Vec<Part>) -> bool {
        let Some((_, close)) = markers(self.thinking) else {
            self.mode = Mode::Answer;
            return true;
        };
        match self.pending.find(close) {
            Some(at) => {
                let rest = self.pending.split_off(at + close.len());
                let mut shown = std::mem::replace(&mut self.pending, rest);
                shown.truncate(at);
                self.show(&shown, parts);
                self.blanks.clear();
                self.at_start = true;
                self.mode = Mode::Answer;
                true
            }
            None => {
                let keep = held_back(&self.pending, std::iter::once(close));
                let rest = self.pending.split_off(self.pending.len() - keep);
                let shown = std::mem::replace(&mut self.pending, rest);
                self.show(&shown, parts);
                false
            }
        }
    }

    /// A channel's name is the line after its opener; `final` is the answer, any other thinking.
    fn channel_name(&mut self) -> bool {
        let close = markers(self.thinking).map_or("", |(_, close)| close);
        let line = self.pending.find('\n');
        let end = self.pending.find(close).filter(|_| !close.is_empty());
        match (line, end) {
            (line, Some(end)) if line.is_none_or(|line| end < line) => {
                self.pending.drain(..end + close.len());
                self.mode = Mode::Answer;
            }
            (Some(line), _) => {
                let name: String = self.pending.drain(..=line).collect();
                self.mode = if name.trim() == "final" { Mode::Answer } else { Mode::Thinking };
            }
            (None, _) => return false,
        }
        self.at_start = true;
        true
    }

    /// Shows text in the present mode: blanks at the start are dropped, those at the end wait.
    fn show(&mut self, text: &str, parts: &mut Vec<Part>) {
        let text = if self.at_start { text.trim_start() } else { text };
        let body = text.trim_end();
        if body.is_empty() {
            self.blanks.push_str(text);
            return;
        }
        self.at_start = false;
        let shown = std::mem::take(&mut self.blanks) + body;
        self.blanks = text.get(body.len()..).unwrap_or_default().to_owned();
        parts.push(match self.mode {
            Mode::Thinking => Part::Thinking(shown),
            _ => Part::Text(shown),
        });
    }

    /// A call's text: the calls in it, or, when it is none, the text with its markers.
    fn call(&mut self, body: &str, close: &str, parts: &mut Vec<Part>) {
        let whole = if close.is_empty() || calls::closes_itself(close) {
            format!("{body}{close}")
        } else {
            body.to_owned()
        };
        match parse(self.calls, &whole, &self.tools) {
            Some(found) => {
                parts.extend(found.into_iter().map(Part::ToolCall));
                self.at_start = true;
            }
            None => {
                let open = calls::opener_of(self.calls, close, body);
                self.at_start = false;
                self.mode = Mode::Answer;
                let close = if calls::closes_itself(close) { "" } else { close };
                self.blanks = std::mem::take(&mut self.before_call);
                self.show(&format!("{open}{whole}{close}"), parts);
            }
        }
    }
}

fn markers(format: ThinkingFormat) -> Option<(&'static str, &'static str)> {
    match format {
        ThinkingFormat::None => None,
        ThinkingFormat::ThinkTag => Some(("<think>", "</think>")),
        ThinkingFormat::Channel => Some(("<|channel>", "<channel|>")),
    }
}

/// Length of the longest end of the text that begins one of the markers.
fn held_back<'a>(text: &str, markers: impl Iterator<Item = &'a str>) -> usize {
    markers
        .filter_map(|marker| (1..marker.len()).rev().find(|n| text.ends_with(&marker[..*n])))
        .max()
        .unwrap_or(0)
}

/// The last place, at a character's border, before which a marker of this length must have ended.
fn boundary(text: &str, marker: usize) -> usize {
    let mut at = text.len().saturating_sub(marker);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
