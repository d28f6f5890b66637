//! Rust names for names and weight paths of a spec.

/// Types of every generated module itself.
const OWN: &[&str] = &["Model", "Config", "LayerConfig", "Loaded"];

/// Names that Rust's prelude brings, which a type of the same name would hide.
const PRELUDE: &[&str] = &[
    "AsMut",
    "AsRef",
    "Box",
    "Clone",
    "Copy",
    "Default",
    "DoubleEndedIterator",
    "Drop",
    "Eq",
    "Err",
    "ExactSizeIterator",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "Into",
    "IntoFuture",
    "IntoIterator",
    "Iterator",
    "None",
    "Ok",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "Sized",
    "Some",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
];

/// Types and constants that generated modules import from the runtime.
const IMPORTED: &[&str] = &[
    "Array",
    "ArtifactProfile",
    "Autoregressive",
    "CacheLayer",
    "CanvasSampler",
    "ChatFormat",
    "Claim",
    "ConfigError",
    "ConfigFile",
    "ConfigReader",
    "Denoiser",
    "DenoisingMethod",
    "DropRule",
    "Embedder",
    "Error",
    "ExpertCounts",
    "Family",
    "FamilyProfile",
    "Fidelity",
    "FidelityTier",
    "GeneratedProfile",
    "GenerationDefaults",
    "GgufMap",
    "GgufTensor",
    "GgufValue",
    "GraphDeclaration",
    "Key",
    "LoadedGraph",
    "Loader",
    "Match",
    "MediaTokens",
    "Method",
    "ModelSource",
    "NoValue",
    "ORDINARY_VERIFICATION",
    "Pass",
    "Pattern",
    "Phase",
    "PinnedConfig",
    "Pooling",
    "PrefillDeclaration",
    "Presence",
    "Present",
    "Reason",
    "RopeConfig",
    "RopeScaling",
    "RopeSource",
    "Rule",
    "Slot",
    "SlotPlan",
    "Specialization",
    "SpeculationDeclaration",
    "Step",
    "Stopping",
    "Target",
    "Temperature",
    "TextVector",
    "Tier",
    "WeightMap",
    "WHOLE",
];

/// Functions that generated modules import, and call without a path.
const CALLED: &[&str] = &[
    "any_stored",
    "at",
    "bf16",
    "capture",
    "condition",
    "count_stored",
    "dtype",
    "float_ceil",
    "float_div",
    "float_floor",
    "float_floor_div",
    "float_int",
    "float_log",
    "float_mod",
    "float_pow",
    "float_sqrt",
    "floor_div",
    "floor_mod",
    "given",
    "int_abs",
    "int_neg",
    "int_pow",
    "json_at",
    "json_bool",
    "json_float",
    "json_holds",
    "json_int",
    "json_is",
    "json_key",
    "json_len",
    "json_max",
    "json_min",
    "json_str",
    "letter",
    "max_float",
    "max_int",
    "min_float",
    "min_int",
    "minus",
    "need",
    "one_word",
    "owned_words",
    "plus",
    "rounds_of",
    "size",
    "sizes",
    "stored_dim",
    "stored_type",
    "times",
    "unknown_kind",
];

/// Names that no type of a generated module may have, since its code means something else by them.
pub(crate) fn taken() -> impl Iterator<Item = &'static str> {
    [OWN, PRELUDE, IMPORTED].into_iter().flatten().copied()
}

/// Whether generated code calls a function of this name, which a variable would hide.
pub(crate) fn is_called(name: &str) -> bool {
    CALLED.contains(&name)
}

/// `model.layers.{i}` becomes `layers`; `self_attn.q_proj` becomes `self_attn_q_proj`.
pub(crate) fn field(path: &str) -> String {
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
pub(crate) fn type_name(name: &str) -> String {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What `use specc_runtime::codegen::*` brings in, read from its source: types and constants, and functions.
    fn exported() -> (BTreeSet<String>, BTreeSet<String>) {
        const FILES: [&str; 5] = [
            include_str!("../../../runtime/src/codegen.rs"),
            include_str!("../../../runtime/src/codegen/layers.rs"),
            include_str!("../../../runtime/src/codegen/pinned.rs"),
            include_str!("../../../runtime/src/codegen/values.rs"),
            include_str!("../../../runtime/checkpoint/src/scalar.rs"),
        ];
        let (mut names, mut functions) = (BTreeSet::new(), BTreeSet::new());
        for text in FILES {
            for item in syn::parse_file(text).unwrap().items {
                use syn::{Item, Visibility};
                match item {
                    Item::Fn(item) if matches!(item.vis, Visibility::Public(_)) => {
                        functions.insert(item.sig.ident.to_string());
                    }
                    Item::Struct(item) if matches!(item.vis, Visibility::Public(_)) => {
                        names.insert(item.ident.to_string());
                    }
                    Item::Enum(item) if matches!(item.vis, Visibility::Public(_)) => {
                        names.insert(item.ident.to_string());
                    }
                    Item::Const(item) if matches!(item.vis, Visibility::Public(_)) => {
                        names.insert(item.ident.to_string());
                    }
                    Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => {
                        leaves(&item.tree, &mut names);
                    }
                    _ => {}
                }
            }
        }
        // Modules are named in paths only, where no type of a spec's stands.
        names.retain(|name| name.starts_with(|first: char| first.is_ascii_uppercase()));
        (names, functions)
    }

    fn leaves(tree: &syn::UseTree, found: &mut BTreeSet<String>) {
        match tree {
            syn::UseTree::Path(path) => leaves(&path.tree, found),
            syn::UseTree::Name(name) => drop(found.insert(name.ident.to_string())),
            syn::UseTree::Rename(name) => drop(found.insert(name.rename.to_string())),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, found)),
            syn::UseTree::Glob(_) => {}
        }
    }

    #[test]
    fn what_generated_code_imports_is_taken() {
        let (names, functions) = exported();
        let listed = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        let prelude: BTreeSet<String> = listed(PRELUDE);
        let imported: BTreeSet<String> = listed(IMPORTED);
        assert_eq!(names.difference(&prelude).cloned().collect::<BTreeSet<_>>(), imported);
        assert_eq!(functions, listed(CALLED));
    }
}
