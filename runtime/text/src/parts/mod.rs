//! Formats of what models write besides the answer: thinking and tool calls.

/// How a model writes its tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolCallFormat {
    /// It does not, or they are not to be looked for.
    #[default]
    None,
    /// `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.
    Json,
    /// `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`.
    FunctionTags,
    /// `<function name="NAME"><param name="KEY">VALUE</param></function>`, values maybe CDATA.
    NamedElements,
    /// `<|tool_call>call:NAME{key:<|"|>text<|"|>,...}<tool_call|>`.
    Sentinels,
    /// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`.
    ArgumentPairs,
}
