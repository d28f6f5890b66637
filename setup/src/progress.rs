//! Says what is being done where it takes over a second.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Where the set-up reports: a spinner or a bar on a terminal, plain lines elsewhere, or nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    shown: bool,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new(shown: bool) -> Self {
        Self { shown, terminal: std::io::stderr().is_terminal() }
    }

    /// One line that stays.
    pub(crate) fn say(&self, line: &str) {
        if self.shown {
            eprintln!("{line}");
        }
    }

    /// Starts a step of unknown length, or of `steps` equal parts.
    pub(crate) fn start(&self, what: &str, steps: Option<u64>) -> Step {
        let bar = if self.shown && self.terminal {
            let bar = match steps {
                Some(n) => ProgressBar::new(n)
                    .with_style(style("{spinner} {msg} [{bar:30}] {pos}/{len} {elapsed}")),
                None => ProgressBar::new_spinner().with_style(style("{spinner} {msg} {elapsed}")),
            };
            bar.set_message(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            Some(bar)
        } else {
            self.say(&format!("{what} ..."));
            None
        };
        Step { bar, what: what.to_owned(), started: Instant::now(), progress: *self }
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are the two literals above; a default style is the worst that can happen.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A step under way; `done` ends it with the time it took.
pub(crate) struct Step {
    bar: Option<ProgressBar>,
    what: String,
    started: Instant,
    progress: Progress,
}

impl Step {
    /// One of the step's parts is finished.
    pub(crate) fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Shows how many bytes have arrived.
    pub(crate) fn bytes(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {:.1} MB", self.what, bytes as f64 / 1e6));
        }
    }

    /// Ends the step.
    pub(crate) fn done(self) {
        let seconds = self.started.elapsed().as_secs_f64();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.bar.is_some() || seconds > 1.0 {
            self.progress.say(&format!("{}: {seconds:.1} s", self.what));
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
