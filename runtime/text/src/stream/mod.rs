//! Text from ids as they arrive.
//!
//! [`Detokenizer`] turns ids into pieces of text: never half a character, and the pieces together
//! are exactly [`crate::Tokenizer::decode`] of the whole sequence. [`StopStrings`] looks for stop
//! strings in the pieces and holds back whatever may become one.

mod decoder;
mod detokenizer;
mod stop;

pub use detokenizer::Detokenizer;
pub use stop::{StopStrings, Stopped};
