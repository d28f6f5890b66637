//! A canvas on the terminal while it resolves.

use std::io::{IsTerminal, Write, stderr};

use specc_text::Tokenizer;

use super::console::complain;
use crate::generate::denoise::CanvasStep;

/// Stands for a position that is still to be revealed.
const HIDDEN: char = '░';

/// Back to where the cursor was kept, and nothing from there on.
const BACK: &str = "\x1b8\x1b[J";

/// Shows the steps of canvases on stderr: in place on a terminal, after the text so far and dimmed,
/// else a line each.
pub(super) struct CanvasView<'a> {
    /// Without one, ids are shown.
    tokenizer: Option<&'a Tokenizer>,
    in_place: bool,
    /// A canvas stands on the terminal.
    drawn: bool,
}

impl<'a> CanvasView<'a> {
    /// A view that shows text where there is a tokenizer.
    pub fn new(tokenizer: Option<&'a Tokenizer>) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { tokenizer, in_place: stderr().is_terminal() && !dumb, drawn: false }
    }

    /// Shows a step.
    pub fn show(&mut self, step: &CanvasStep) {
        let text = render(step, |id| self.word(id));
        if !self.in_place {
            return complain(&format!("block {}, step -{}: {text}", step.block + 1, step.left));
        }
        if step.last {
            // The block is text from here on.
            return self.clear();
        }
        let mut out = stderr().lock();
        let _ = if self.drawn {
            out.write_all(BACK.as_bytes())
        } else {
            // Room below first: the place that is kept must not scroll away.
            let lines = (text.chars().count() / 40 + 2).min(24);
            write!(out, "{}\x1b[{lines}A\x1b7", "\x1bD".repeat(lines))
        };
        let _ = write!(out, "\x1b[2m{text}\x1b[0m");
        let _ = out.flush();
        self.drawn = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            // There is nobody to tell when the terminal is gone.
            let _ = stderr().lock().write_all(BACK.as_bytes());
        }
    }

    fn word(&self, id: u32) -> String {
        let Some(tokenizer) = self.tokenizer else { return format!("{id},") };
        // A token that is half a character has no text of its own.
        tokenizer.decode(&[id], false).unwrap_or_else(|_| char::REPLACEMENT_CHARACTER.into())
    }
}

impl Drop for CanvasView<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// One line: revealed positions as `word` has them, a mark for each other.
fn render(step: &CanvasStep, word: impl Fn(u32) -> String) -> String {
    let ids = if step.last { &step.argmax } else { &step.canvas };
    let mut text = String::new();
    for (id, revealed) in ids.iter().zip(&step.revealed) {
        if *revealed {
            text.extend(word(*id).chars().map(|c| if c.is_control() { '⏎' } else { c }));
        } else {
            text.push(HIDDEN);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_positions_are_marks_and_a_block_is_one_line() {
        let mut step = CanvasStep {
            block: 0,
            left: 3,
            canvas_in: vec![9; 4],
            argmax: vec![4, 5, 6, 7],
            scores: vec![0.5; 4],
            revealed: vec![true, false, true, false],
            canvas: vec![1, 2, 3, 0],
            last: false,
        };
        let word = |id: u32| if id == 3 { "x\n".to_owned() } else { format!("<{id}>") };
        assert_eq!(render(&step, word), "<1>░x⏎░");
        (step.last, step.revealed) = (true, vec![true; 4]);
        assert_eq!(render(&step, word), "<4><5><6><7>");
    }
}
