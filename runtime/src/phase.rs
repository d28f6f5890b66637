//! What a forward is for, its padding, and which of two ways it computes by.

/// What a forward is for. Caches and mixers go by this, never by the number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A part of a prompt.
    Prompt,
    /// Parts of several prompts of unequal lengths.
    MultiSequencePrompt,
    /// One new token a row.
    Decode,
    /// Drafted tokens, some of which may be taken back.
    Verify,
    /// Tokens that are already decided, each with the arithmetic of a decode.
    AppendKnown,
    /// A block that sees what is stored and itself, and stores nothing.
    ReadBlock,
    /// Whole sequences without caches.
    Whole,
}

impl Phase {
    /// Whether the tokens are those of prompts.
    pub fn is_prompt(self) -> bool {
        matches!(self, Phase::Prompt | Phase::MultiSequencePrompt)
    }

    /// Whether it is for few tokens, which compute as a decode does.
    pub fn is_small(self) -> bool {
        match self {
            Phase::Decode | Phase::Verify | Phase::AppendKnown => true,
            Phase::Prompt | Phase::MultiSequencePrompt | Phase::ReadBlock | Phase::Whole => false,
        }
    }
}

/// Which of two ways a pass computes by; each gives the same values but for rounding. `None` leaves
/// the choice to the phase, which is what [`Pass::begin`](crate::pass::Pass::begin) does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Binding {
    /// Rows grouped by expert, so that each expert's weights are read once, or left in order.
    pub grouped: Option<bool>,
    /// Queries taken to the latents, or keys and values rebuilt from them.
    pub absorbed: Option<bool>,
}

/// Padding of the rows of a pass, counted in tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Padding {
    /// In front, a number a row; only for the first pass of a set. Empty: none.
    pub left: Vec<i32>,
    /// Behind, a number a row. Empty: none.
    pub right: Vec<i32>,
}
