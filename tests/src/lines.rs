//! How long a family's documents are, and the same family's file in mlx-lm.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

/// Lines that say something: neither blank nor a comment.
pub fn counted(text: &str) -> usize {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("///"))
        .count()
}

/// Lines of a family's manifest and of the graph file beside it.
///
/// # Errors
/// Where the manifest cannot be read.
pub fn of_family(specs: &Path, family: &str) -> Result<usize> {
    let manifest = specs.join(format!("{family}.toml"));
    let text =
        std::fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let graph = std::fs::read_to_string(specs.join(format!("{family}.graph"))).unwrap_or_default();
    Ok(counted(&text) + counted(&graph))
}

/// Lines of mlx-lm 0.32.2's model files by model type, counted the same way.
///
/// # Errors
/// Where the record cannot be read.
pub fn of_mlx_lm() -> Result<BTreeMap<String, usize>> {
    Ok(serde_json::from_str(include_str!("../fixtures/mlx_lm_lines.json"))?)
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn blank_and_comment_lines_do_not_count() {
        assert_eq!(counted("# a\n\n[x]\n  # b\ny = 1 # c\n/// d\n"), 2);
    }
}
