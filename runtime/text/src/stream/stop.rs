//! Stop strings in streamed text.

/// Finds stop strings in text that arrives in pieces, and holds back what may become one.
///
/// How the text is cut into pieces makes no difference: the stop string that is complete first
/// wins, and of those complete at the same place the longest.
#[derive(Debug, Clone, Default)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
    stopped: bool,
}

/// What a piece of text amounts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Text to show; the stop string and what follows it are not in it.
    pub text: String,
    /// The stop string, once one is complete.
    pub stop: Option<String>,
}

impl StopStrings {
    /// Looks for these strings; empty ones are ignored.
    pub fn new(stops: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let stops = stops.into_iter().map(Into::into).filter(|s: &String| !s.is_empty()).collect();
        Self { stops, held: String::new(), stopped: false }
    }

    /// Takes a piece and gives what may be shown. After a stop nothing is shown any more.
    pub fn push(&mut self, piece: &str) -> Stopped {
        if self.stopped {
            return Stopped { text: String::new(), stop: None };
        }
        self.held.push_str(piece);
        if let Some((start, stop)) = self.first_stop() {
            self.stopped = true;
            let mut text = std::mem::take(&mut self.held);
            text.truncate(start);
            return Stopped { text, stop: Some(stop) };
        }
        let keep = self.held_back();
        let shown = self.held.len() - keep;
        let rest = self.held.split_off(shown);
        Stopped { text: std::mem::replace(&mut self.held, rest), stop: None }
    }

    /// The text held back, when generation ends otherwise.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Whether a stop string was found.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    fn first_stop(&self) -> Option<(usize, String)> {
        self.stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()).map(|start| (start, stop)))
            .min_by_key(|(start, stop)| (start + stop.len(), *start))
            .map(|(start, stop)| (start, stop.clone()))
    }

    /// Length in bytes of the longest end of the text that begins a stop string.
    fn held_back(&self) -> usize {
        let text = self.held.as_bytes();
        let longest = |stop: &String| {
            let most = (stop.len() - 1).min(text.len());
            (1..=most)
                .rev()
                .find(|&n| stop.is_char_boundary(n) && text.ends_with(&stop.as_bytes()[..n]))
        };
        self.stops.iter().filter_map(longest).max().unwrap_or(0)
    }
}
