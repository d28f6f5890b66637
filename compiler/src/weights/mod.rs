//! Weight maps of manifests.

/// Steps of a weight map.
pub const STEPS: &[&str] = &[
    "stack", "concat", "split", "chunk", "deal", "transpose", "move_axis", "reshape", "flatten", "slice", "view_as",
    "packed", "cast", "add", "scale", "dequantise", "scale_blocks",
];
