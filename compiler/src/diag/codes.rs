//! Every code a diagnostic may carry, with its title and a longer explanation.

macro_rules! codes {
    ($($name:ident = $text:literal, $title:literal, $explain:literal;)*) => {
        /// A stable code, such as `S0102`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// As shown: `S0102`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// A few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// What `specc explain` prints.
            pub fn explain(self) -> &'static str {
                match self { $(Code::$name => $explain,)* }
            }
        }
    };
}

codes! {
    UnexpectedText = "S0101", "unexpected text",
        "The text does not follow the grammar at the marked place. The message says what could stand there.";
    UnexpectedCharacter = "S0102", "unexpected character",
        "The character belongs to no word, number, string or operator of the language. Comments start with #.";
    UnclosedString = "S0103", "string without an end",
        "A string starts with a quote and ends with the same quote on the same line.";
    BadNumber = "S0104", "number out of range or malformed",
        "Integers are 64-bit and signed; floating-point numbers must be finite: 12, 1_000, 0.5, 1e-6.";
    Unbalanced = "S0105", "bracket without its partner",
        "Each of ( [ { needs its own closer, in the right order.";
    TooDeep = "S0106", "nested too deeply",
        "Brackets and expressions may nest to a fixed depth, so that no spec can exhaust the stack.";
    TooLong = "S0107", "too long",
        "An expression may hold a bounded number of operators, a file a bounded number of bytes. Bind parts to names.";
    BadEscape = "S0108", "unknown escape in a string",
        "Strings know the escapes \\\\, \\\", \\', \\n and \\t.";
    UnusedValue = "S0109", "value that nobody uses",
        "A statement binds a name, or is the last expression of its block and thus the block's value. The body of a `for` binds names that the next round and the statements after the loop use.";
    SeparateStatements = "S0110", "two statements on one line",
        "Statements end at the end of a line or at `;`.";
    BadPipe = "S0111", "pipe into something that is no call",
        "`x |> f(y)` means `f(x, y)`: to the right of `|>` stands a name or a call. Operators bind tighter than the pipe, so put parentheses around the pipe when more follows.";
    ChainedComparison = "S0112", "comparisons in a row",
        "`a < b < c` is written `a < b and b < c`.";
    UnknownType = "S0113", "unknown type of a parameter",
        "Parameters are tensors (`[B, L, hidden_size]` or `tensor`), int, float, bool, str, path, rope, ints, or one of several words (`none | head | full`); a `?` after the type lets it be none.";
    NotAnItem = "S0114", "text outside of blocks",
        "A graph file holds `use`, `block`, `graph` and `extern` items, and nothing between them but comments.";
    BadExtern = "S0115", "incomplete extern",
        "An extern says its parameters, its result after `->` and the Rust item that runs it after `=`. Only modules have weights.";
    // The graph: names, calls, types, shapes.
    UnknownName = "S0201", "unknown name",
        "The name is no variable of the block, no parameter, no config key of the manifest and no loop index. Declare it under [config], or assign it before this line.";
    UnknownCall = "S0202", "unknown block or op",
        "What is called is no block of this family, no block of the library taken by `use`, and no extern op.";
    WrongArguments = "S0203", "arguments do not fit",
        "The call leaves out a parameter without a default, gives one twice, or gives one that does not exist. The definition is shown beside the call.";
    WrongType = "S0204", "wrong type",
        "An array stands where a number of the configuration is wanted, or the other way round, or a word where a number is wanted.";
    NotConfiguration = "S0205", "not known when loading",
        "`if`, `match`, `for` and sizes range over configuration only: everything is settled when a model is loaded. The value here depends on an array.";
    Recursion = "S0206", "a block calls itself",
        "The graph language has no recursion: a block is written out where it is called.";
    LayerOutside = "S0207", "layer values outside the layers",
        "`layer.*` exists inside `for i in layers` and in the blocks called there.";
    MissingGraph = "S0208", "a graph is missing",
        "The family's method needs graphs of certain names: `hidden` and `logits` for an autoregressive family, `hidden` for an embedding one, `encode`, `denoise` and `soft_embeddings` for a denoising one.";
    WrongTuple = "S0209", "tuple of another length",
        "The number of names on the left differs from the number of values on the right.";
    ShapeMismatch = "S0210", "shapes do not agree",
        "Two sizes must be equal for every config that passes [checks], and the compiler cannot prove it. If they are equal for a reason it does not know, say so: add the equality to [checks].";
    ShapeRank = "S0211", "wrong number of axes",
        "The array has more or fewer axes than the operation takes.";
    DefinedTwice = "S0212", "defined twice",
        "Two definitions in one file have the same name.";
    ArmsDisagree = "S0213", "arms yield different things",
        "All arms of an `if` or `match` must yield values of one kind and shape.";
    CacheOutside = "S0214", "a cache outside the layers",
        "Operations that mix positions through the cache need a layer whose cache they own.";
    UnknownWord = "S0215", "not one of the words",
        "The parameter takes one of a list of words.";
    UnknownSize = "S0216", "size not known when loading",
        "The size depends on the batch or on the number of tokens, and a weight's size cannot.";
    UnusedBlock = "S0217", "block that nobody calls",
        "A block of the family's own graph file is neither called nor a replacement of one that is. A block replaces the base's or the library's of the same name; another name leaves the old one in place.";
    // Weights.
    WeightStep = "S0301", "unknown step of a weight map",
        "`do` is a chain of steps: stack(e), transpose(0, 2, 1), move_axis(a, b), reshape([..]), flatten(n), slice(axis, start, end, step), split([..], axis), chunk(axis), deal(n, axis), concat(axis), add(1), scale(x), cast(\"float32\"), view_as(\"uint32\"), packed(), dequantise().";
    WeightPattern = "S0302", "pattern or template of a weight map",
        "Names of tensors may hold captures: {i} takes digits, {n:word} a part without dots, {n:any} anything, {n:a|b} one of some words, `*` anything. A template uses what its patterns capture.";
    WeightStepArguments = "S0303", "arguments of a weight step",
        "The step takes other arguments, or has none of the captures it names.";
    WeightTargets = "S0304", "number of targets",
        "Several targets need a step that makes several parts (split, chunk, deal), one for each target.";
    // Manifests.
    TomlSyntax = "S0401", "not TOML",
        "The document does not follow TOML 1.1. Texts stand in quotes, tables in [brackets], inline tables on one line.";
    UnknownKey = "S0402", "unknown key",
        "No reader of the manifest knows the key, so it would have no effect.";
    WrongValue = "S0403", "value of another type",
        "The key takes another type of value, or one of a list of words.";
    MissingKey = "S0404", "key left out",
        "The key has no default.";
    UnknownBase = "S0405", "unknown base",
        "`extends` names a family: one of the folder or a built-in one (`specc list` shows them).";
    ExtendsCycle = "S0406", "families extend each other",
        "Following `extends` from family to family comes back to the start.";
    NoBase = "S0407", "nothing to inherit",
        "`...` in a list stands for the elements that the base has there, and `{ remove = true }` takes a key of the base away; the base has none.";
    ConfigKey = "S0408", "words of a config key that do not go together",
        "A key is read (`from`, `default`) or computed (`value`); only an enum has `values`.";
    UnknownGraphFile = "S0409", "graph file not found",
        "`graph = \"NAME.graph\"` names a file beside the manifest. Without it, NAME.graph is taken where it exists, and the base's graphs otherwise.";
    // Layers and caches.
    UnknownStorage = "S0501", "unknown storage",
        "`cache` names a storage of specs/cache: full, sliding, chunked, latent, recurrent, or none.";
    StorageParameter = "S0502", "parameter of a storage",
        "The storage needs a parameter that the layer does not give, does not know one that it gives, or takes another type or other words.";
    UnknownKind = "S0503", "unknown kind of layer",
        "`kind` yields words, and each of them is declared by a table [layers.WORD].";
    NoCache = "S0504", "kind of layer without a cache",
        "Each kind says what its layers remember; `cache = \"none\"` for nothing.";
    CacheLayout = "S0505", "cache layout",
        "A file of specs/cache describes one storage: its parameters, states, growth, what a query sees, what it supports, and its rows of the composition table. What it claims is checked, and `sees` is tried on small numbers.";
    CompositionHole = "S0506", "hole in the composition table",
        "For each KV scheme, each kind of paging where the storage may be paged, and each word that its rows look at, a storage says in exactly one row which store and read it leads to or why it is refused.";
    CacheMisfit = "S0507", "a cache that cannot keep this",
        "What a mixer stores must be what the storage of its layer's kind holds: one entry a position, of as many arrays and axes, or states that each step replaces.";
    // The set of families.
    NameOfFile = "S0601", "name and file differ",
        "NAME.toml describes the family NAME.";
    NameTaken = "S0602", "name is taken",
        "A folder's family cannot have the name of a built-in one: programs would mean one and get the other.";
    ModelTypeTaken = "S0603", "two families answer to one model type",
        "At most one targeted family accepts a config. Where two share a model type, each but the generic one needs `accepts`.";
    WrongTier = "S0604", "tier and label",
        "A targeted family has a label, the generic one has none. There is one generic family, tried last.";
    UnreadableFile = "S0605", "file that cannot be read",
        "The operating system refused to read the file, or it is no UTF-8 text.";
    CapabilityLacks = "S0621", "capability without its operation",
        "The graph promises what nothing in the language provides: media, a compiled decode step, taps of the layers, a draft head of its own. A graph written by hand in Rust may.";
    CapabilityContradicts = "S0622", "capability that the graph contradicts",
        "What the graph computes tells part of its declaration: attention that caps its scores verifies drafts in ordinary rounds only, attention with an index over positions is sparse. Leave the word out, or say what the graph does.";
    Fidelity = "S0623", "tier, oracle and claim",
        "Fidelity is one of three contracts: `l1` or `l2` with an oracle and the claim bit-exact, or `l3` without an oracle and measured.";
    ProfileWords = "S0624", "words of a profile or of chats",
        "[profile] names the graph and its profiles: ids are texts without spaces, an exact artifact is `hf:REPOSITORY@REVISION` with the 16 hexadecimal digits of its configuration's fingerprint. [chat] knows a fixed set of formats.";
    ProfileTaken = "S0625", "two families with one graph, artifact or fingerprint",
        "A graph, a profile, an implementation, an exact artifact and the fingerprint of a generated graph belong to one family each.";
    // Config expressions.
    ConfigCycle = "S0231", "config keys that need each other",
        "The default or value of a key names another key whose default or value comes back to it.";
    ConfigType = "S0232", "value of another type than the key's",
        "The default or value of a config key must have the key's type.";
    // A spec against a model folder.
    ModelConfig = "S0701", "config.json does not fit",
        "The config of the model folder lacks a key that the family needs, or holds another type of value there.";
    CheckFailed = "S0702", "a check of the family fails",
        "A condition under [checks] does not hold for this config: the model is none that the family can run.";
    NoValue = "S0703", "expression without a value",
        "For this config the expression divides by zero, overflows, looks beyond the end of a list, or has operands of the wrong type.";
    NoFamily = "S0704", "no family takes the model",
        "No family answers to the model type of config.json, or none of those that do accepts the config. Name one with --family, or start one with `specc new`.";
    ModelFiles = "S0705", "model folder that cannot be read",
        "config.json or the headers of the safetensors files cannot be read.";
    MissingTensor = "S0706", "tensor missing from the checkpoint",
        "The graph needs a tensor that neither the checkpoint holds nor a weight map makes.";
    UnexplainedTensor = "S0707", "tensor that nobody uses",
        "The checkpoint holds a tensor that the graph does not use and the manifest does not drop. Either the graph misses a part, or [weights] drop should name it.";
    TensorShape = "S0708", "tensor of another shape or type",
        "The tensor's shape under this config is not the one the graph needs.";
    UnknownConfigKey = "S0709", "config key that the family does not know",
        "config.json holds a key that looks meaningful and that the family neither reads nor declares ignored; keys that are silently dropped are the commonest cause of wrong text.";
    WeightMapFailed = "S0710", "weight map that cannot be applied",
        "A rule under [weights] does not fit the tensors of this checkpoint.";
    PassedOver = "S0711", "weights that are passed over",
        "The folder holds safetensors files that are not read, or tensors that the index does not name. Where model.safetensors.index.json stands, what it names is read; else every model*.safetensors.";
}

impl Code {
    /// The code written `text`, in any case.
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
