//! Rust names for names and weight paths of a spec.

/// Types that generated modules use beside those of their blocks.
pub(super) const TAKEN: [&str; 34] = [
    "Model",
    "Config",
    "LayerConfig",
    "Loaded",
    "Array",
    "Pass",
    "Slot",
    "Result",
    "Error",
    "Loader",
    "ModelSource",
    "LoadedGraph",
    "CacheLayer",
    "WeightMap",
    "Family",
    "Tier",
    "Method",
    "ChatFormat",
    "TextVector",
    "Pooling",
    "GgufMap",
    "GraphDeclaration",
    "PrefillDeclaration",
    "SpeculationDeclaration",
    "FamilyProfile",
    "Fidelity",
    "FidelityTier",
    "Claim",
    "Specialization",
    "GeneratedProfile",
    "GenerationDefaults",
    "ArtifactProfile",
    "ExpertCounts",
    "MediaTokens",
];

/// Functions that generated code calls without a path.
pub(super) const CALLED: [&str; 26] = [
    "size",
    "sizes",
    "given",
    "plus",
    "minus",
    "times",
    "int_pow",
    "floor_div",
    "floor_mod",
    "bf16",
    "letter",
    "rounds_of",
    "min_int",
    "max_int",
    "min_float",
    "max_float",
    "json_at",
    "json_key",
    "json_int",
    "json_float",
    "json_str",
    "json_bool",
    "json_holds",
    "json_min",
    "json_max",
    "need",
];

/// `model.layers.{i}` becomes `layers`; `self_attn.q_proj` becomes `self_attn_q_proj`.
pub(super) fn field(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').filter(|part| !part.contains('{')).collect();
    let parts = match parts.as_slice() {
        ["model" | "backbone" | "transformer", rest @ ..] if !rest.is_empty() => rest,
        all => all,
    };
    variable(&parts.join("_"))
}

/// A snake-case Rust identifier that is no keyword.
pub fn variable(name: &str) -> String {
    let mut out = String::new();
    let mut before_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            if before_lower {
                out.push('_');
            }
            out.push(letter.to_ascii_lowercase());
            before_lower = false;
        } else if letter.is_ascii_alphanumeric() {
            out.push(letter);
            before_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        } else {
            if !out.is_empty() && !out.ends_with('_') {
                out.push('_');
            }
            before_lower = false;
        }
    }
    let mut out = out.trim_end_matches('_').to_owned();
    if out.is_empty() {
        out.push_str("value");
    }
    if out.starts_with(|first: char| first.is_ascii_digit()) {
        out.insert(0, 'n');
    }
    if syn::parse_str::<syn::Ident>(&out).is_err() || matches!(out.as_str(), "cx" | "ld" | "cfg") {
        out.push('_');
    }
    out
}

/// `gated_delta_net` becomes `GatedDeltaNet`.
pub(super) fn type_name(name: &str) -> String {
    let mut out: String = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (first, rest) = part.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    if out.is_empty() || out.starts_with(|first: char| first.is_ascii_digit()) {
        out.insert(0, 'N');
    }
    if out == "Self" {
        out.push('_');
    }
    out
}
