//! Tokenizers, chat templates and streamed text, without MLX.
//!
//! Everything between a person's words and token ids, both ways:
//!
//! * [`tokenizer`]: loads a model folder's tokenizer; ids from text and text from ids;
//! * [`stream`]: text from ids as they arrive, never half a character, with stop strings held back;
//! * [`template`]: renders chat templates as Jinja2 does in Transformers;
//! * [`folder`]: finds the chat template of a model folder;
//! * [`messages`]: the variables of a rendering, out of JSON;
//! * [`parts`]: thinking, tool calls and the answer, split while they stream.

pub mod folder;
pub mod messages;
pub mod parts;
pub mod stream;
pub mod template;
pub mod tokenizer;

pub use folder::load_model_chat_template;
pub use messages::MessagesError;
pub use parts::{Part, PartSplitter, Parts, ThinkingFormat, ToolCall, ToolCallFormat};
pub use stream::{Detokenizer, StopStrings};
pub use template::{
    ChatTemplate, Clock, FailureKind, FallbackRenderer, TemplateError, TemplateOptions,
};
pub use tokenizer::{Tokenizer, TokenizerError};
