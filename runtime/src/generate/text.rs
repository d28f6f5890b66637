//! Pieces from ids as they come, up to what ends an answer.

use specc_text::{Detokenizer, StopStrings, Tokenizer};

use super::{FinishReason, Model, Options, Piece};
use crate::{Error, Result};

/// What was told of an answer so far, and how it ended; the same for every method.
pub(super) struct AnswerText<'a> {
    text: Option<TextStream<'a>>,
    /// Why the answer ended; none while it goes on.
    pub finish: Option<FinishReason>,
    /// The end token that ended it.
    pub end_token: Option<u32>,
    /// Nothing is told any more.
    ended: bool,
}

impl<'a> AnswerText<'a> {
    /// Nothing so far of what a request asks for.
    ///
    /// # Errors
    /// There is no tokenizer, or stop texts are asked for without text.
    pub fn new(model: &'a Model, options: &Options) -> Result<Self> {
        let text = TextStream::new(model, options)?;
        Ok(Self { text, finish: None, end_token: None, ended: false })
    }

    /// The piece of one more id; a stop text in it ends the answer.
    pub fn piece(&mut self, id: u32, logprob: Option<f32>) -> Result<Piece> {
        let mut piece = Piece { id: Some(id), text: String::new(), logprob };
        if let Some(text) = &mut self.text {
            let shown = text.push(id)?;
            piece.text = shown.text;
            if shown.stopped {
                self.finish = Some(FinishReason::Stop);
            }
        }
        Ok(piece)
    }

    /// An end token, which is no piece, ends the answer.
    pub fn stop_at(&mut self, id: u32) {
        self.finish = Some(FinishReason::Stop);
        self.end_token = Some(id);
    }

    /// The text that was held back, once; then nothing more.
    pub fn rest(&mut self) -> Result<Option<Piece>> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(None);
        }
        let Some(text) = &mut self.text else { return Ok(None) };
        let held = text.finish()?;
        if held.stopped {
            self.finish = Some(FinishReason::Stop);
        }
        Ok((!held.text.is_empty()).then_some(Piece { id: None, text: held.text, logprob: None }))
    }

    /// After an error nothing is told any more.
    pub fn give_up(&mut self) {
        self.ended = true;
        self.finish.get_or_insert(FinishReason::Cancelled);
    }
}

/// Text from ids, with stop texts.
struct TextStream<'a> {
    detokenizer: Detokenizer<&'a Tokenizer>,
    stops: StopStrings,
}

/// Text that is certain, and whether a stop text came after it.
struct Shown {
    text: String,
    stopped: bool,
}

impl<'a> TextStream<'a> {
    /// What a request asks for: none where it wants ids only.
    ///
    /// # Errors
    /// There is no tokenizer, or stop texts are asked for without text.
    fn new(model: &'a Model, options: &Options) -> Result<Option<Self>> {
        if options.text {
            let detokenizer = Detokenizer::new(model.tokenizer()?, false);
            let stops = StopStrings::new(options.stop.clone());
            return Ok(Some(Self { detokenizer, stops }));
        }
        if options.stop.iter().any(|stop| !stop.is_empty()) {
            return Err(Error::input("stop texts", "an answer with text", "ids only"));
        }
        Ok(None)
    }

    /// The text that one more id makes certain.
    fn push(&mut self, id: u32) -> Result<Shown> {
        let shown = self.stops.push(&self.detokenizer.push(id)?);
        Ok(Shown { text: shown.text, stopped: shown.stop.is_some() })
    }

    /// The text that was held back, when no id follows.
    fn finish(&mut self) -> Result<Shown> {
        let shown = self.stops.push(&self.detokenizer.finish()?);
        let mut text = shown.text;
        if shown.stop.is_none() {
            text.push_str(&self.stops.finish());
        }
        Ok(Shown { text, stopped: shown.stop.is_some() })
    }
}
