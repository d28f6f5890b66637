//! A canvas on the terminal while it resolves.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use specc_text::Tokenizer;

use super::console::complain;
use crate::generate::denoise::CanvasStep;

/// Stands for a position that is still to be revealed.
const HIDDEN: char = '░';

/// Shows the steps of canvases on stderr: in place on a terminal, else a line each.
pub(super) struct CanvasView<'a> {
    /// Without one, ids are shown.
    tokenizer: Option<&'a Tokenizer>,
    bar: Option<ProgressBar>,
}

impl<'a> CanvasView<'a> {
    /// A view that shows text where there is a tokenizer.
    pub fn new(tokenizer: Option<&'a Tokenizer>) -> Self {
        Self { tokenizer, bar: None }
    }

    /// Shows a step.
    pub fn show(&mut self, step: &CanvasStep) {
        let text = render(step, |id| self.word(id));
        if !stderr().is_terminal() {
            return complain(&format!("block {}, step -{}: {text}", step.block + 1, step.left));
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // The template is constant and parses.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_message(text);
        bar.tick();
        // The block is text from here on.
        if step.last
            && let Some(bar) = self.bar.take()
        {
            bar.finish_and_clear();
        }
    }

    fn word(&self, id: u32) -> String {
        let Some(tokenizer) = self.tokenizer else { return format!("{id},") };
        // A token that is half a character has no text of its own.
        tokenizer.decode(&[id], false).unwrap_or_else(|_| char::REPLACEMENT_CHARACTER.into())
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
