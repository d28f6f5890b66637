//! Text from ids as they come, up to a stop text.

use specc_text::{Detokenizer, StopStrings, Tokenizer};

use super::{Model, Options};
use crate::{Error, Result};

/// Text from ids, with stop texts.
pub(super) struct TextStream<'a> {
    detokenizer: Detokenizer<&'a Tokenizer>,
    stops: StopStrings,
}

/// Text that is certain, and whether a stop text came after it.
pub(super) struct Shown {
    pub text: String,
    pub stopped: bool,
}

impl<'a> TextStream<'a> {
    /// What a request asks for: none where it wants ids only.
    ///
    /// # Errors
    /// There is no tokenizer, or stop texts are asked for without text.
    pub fn new(model: &'a Model, options: &Options) -> Result<Option<Self>> {
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
    pub fn push(&mut self, id: u32) -> Result<Shown> {
        let shown = self.stops.push(&self.detokenizer.push(id)?);
        Ok(Shown { text: shown.text, stopped: shown.stop.is_some() })
    }

    /// The text that was held back, when no id follows.
    pub fn finish(&mut self) -> Result<Shown> {
        let shown = self.stops.push(&self.detokenizer.finish()?);
        let mut text = shown.text;
        if shown.stop.is_none() {
            text.push_str(&self.stops.finish());
        }
        Ok(Shown { text, stopped: shown.stop.is_some() })
    }
}
