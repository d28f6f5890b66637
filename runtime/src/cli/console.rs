//! What goes to the terminal: output that may be cut off, complaints, and signs of life.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Writes to stdout at once; `print!` would panic where nobody reads.
pub(super) fn say(text: &str) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a line to stderr. Where that fails there is nobody left to tell.
pub(super) fn complain(line: &str) {
    let _ = writeln!(stderr().lock(), "{line}");
}

/// Writes to stderr at once, dimmed on a terminal.
pub(super) fn whisper(text: &str) {
    let mut out = stderr().lock();
    let _ = match out.is_terminal() {
        true => write!(out, "\x1b[2m{text}\x1b[0m"),
        false => write!(out, "{text}"),
    };
    let _ = out.flush();
}

/// An error with its causes; one that repeats the end of what caused it says it once.
pub(super) fn reasons(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether the reader of stdout went away, which is no failure of ours.
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kind = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    error.downcast_ref::<std::io::Error>().is_some_and(kind)
}

/// A spinner on a terminal; elsewhere nothing unless it took more than a second.
pub(super) struct Activity {
    bar: Option<ProgressBar>,
    what: String,
    started: Instant,
}

impl Activity {
    /// Begins to say that `what` is being done.
    pub fn start(what: String) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_message(what.clone());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Self { bar, what, started: Instant::now() }
    }

    /// It is done.
    pub fn end(self) {
        let took = self.started.elapsed();
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        } else if took > Duration::from_secs(1) {
            complain(&format!("{} took {:.1} s", self.what, took.as_secs_f64()));
        }
    }
}

/// How far something is: a bar on a terminal, else a line now and then.
pub(super) struct Bar {
    bar: Option<ProgressBar>,
    what: String,
    total: u64,
    next_line: Instant,
}

impl Bar {
    /// A bar to `total`, shown when it takes more than a second.
    pub fn new(what: &str, total: u64, bytes: bool) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let count = if bytes { "{bytes}/{total_bytes} {bytes_per_sec}" } else { "{pos}/{len}" };
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            // The template is constant and parses.
            if let Ok(style) =
                ProgressStyle::with_template(&format!("{{msg}} {{wide_bar}} {count}"))
            {
                bar.set_style(style);
            }
            bar.set_message(what.to_owned());
            bar
        });
        let next_line = Instant::now() + Duration::from_secs(1);
        Self { bar, what: what.to_owned(), total, next_line }
    }

    /// So much is done.
    pub fn set(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        } else if Instant::now() > self.next_line && done < self.total {
            self.next_line = Instant::now() + Duration::from_secs(5);
            let percent = 100.0 * done as f64 / self.total.max(1) as f64;
            complain(&format!("{}: {percent:.0} %", self.what));
        }
    }

    /// All is done.
    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
