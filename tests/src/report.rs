//! What a parity run found, as a table for people and as `docs/families.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::graphs::Graphs;
use crate::lines;

/// One array of one case.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The case.
    pub case: String,
    /// `model_type` of its config.
    pub model_type: String,
    /// The family that took it.
    pub family: String,
    /// The array.
    pub array: String,
    /// Relative difference; for `greedy` the number of differing tokens.
    pub difference: f64,
    /// What is allowed.
    pub tolerance: f64,
}

impl Finding {
    /// Whether it is within its tolerance.
    pub fn passes(&self) -> bool {
        self.difference <= self.tolerance
    }
}

/// One line a case: each array's difference, and `!` where it is too far.
pub fn table(findings: &[Finding]) -> String {
    let mut rows: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        rows.entry(&finding.case).or_default().push(finding);
    }
    let mut text = String::new();
    for (case, row) in rows {
        let cells: Vec<String> = row
            .iter()
            .map(|f| {
                format!("{} {:.1e}{}", f.array, f.difference, if f.passes() { "" } else { "!" })
            })
            .collect();
        let _ = writeln!(text, "{case:24} {}", cells.join("  "));
    }
    text
}

/// The text of `docs/families.md`: a row for each family, compared or not.
///
/// # Errors
/// Where a family's documents cannot be read, or one was neither compared nor computes as one that was.
pub fn document(findings: &[Finding], specs: &Path) -> Result<String> {
    let reference = lines::of_mlx_lm()?;
    let graphs = Graphs::new();
    let mut families: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        families.entry(&finding.family).or_default().push(finding);
    }
    let mut text = String::from(HEAD);
    for (family, model_types) in graphs.families() {
        let rows = families.get(family).map_or(&[][..], Vec::as_slice);
        let mut cases: Vec<&str> = rows.iter().map(|f| f.case.as_str()).collect();
        cases.dedup();
        let worst = rows
            .iter()
            .filter(|f| f.array != "greedy")
            .max_by(|a, b| (a.difference / a.tolerance).total_cmp(&(b.difference / b.tolerance)));
        let cells = match worst {
            Some(f) => {
                format!("{:.1e} | {:.1e} | {}, {}", f.difference, f.tolerance, f.case, f.array)
            }
            None => {
                let base = graphs.computes_as(family)?.filter(|base| families.contains_key(base));
                let base = base.with_context(|| format!("nobody compared {family}"))?;
                format!("– | – | no model of its own: its code is that of {base}")
            }
        };
        let theirs = [family].into_iter().chain(model_types).find_map(|name| reference.get(name));
        let _ = writeln!(
            text,
            "| {family} | {} | {} | {} | {cells} |",
            lines::of_family(specs, family)?,
            theirs.map_or_else(|| "–".to_owned(), usize::to_string),
            cases.len(),
        );
    }
    Ok(text)
}

const HEAD: &str = "# Families and how far they are from the reference

Made by `SPECC_WRITE_DOCS=1 SPECC_MINILM_DIR=DIR cargo test --release -p specc-tests --test parity`; do not edit. DIR holds \
the weights of all-MiniLM-L6-v2 (tests/fixtures/minilm says where they are from).

Each family is run on tiny random models whose results mlx-lm 0.32.2 computed (tests/fixtures/parity): one forward, the \
same ids in pieces through a cache, a greedy continuation, two rows at once, and caches of few bits. What mlx-lm does not \
have is compared with other programs: bert with the vectors that MLX computed from all-MiniLM-L6-v2 \
(tests/fixtures/minilm), diffusion_gemma with mlx-vlm 0.7.10's canvases of two tiny random models \
(tests/fixtures/diffusion_gemma). A difference is the largest absolute one over the largest expected value; shown is the \
array that comes nearest to its tolerance. A family for models of one size only, too large for a fixture, has no model of \
its own where the compiler writes the same code for it as for the family that it extends, records aside: then the \
comparisons of that one stand for both.

Lines are those of the family's manifest and graph, blank and comment lines left out; mlx-lm's are those of its file for \
the same model type, counted the same way. Blocks shared by families stand in specs/std, as mlx-lm's shared modules stand \
in files of their own; a document that extends another counts its own lines only, as a file that imports another model's \
does.

| family | lines | mlx-lm's lines | cases | largest difference | its tolerance | at |
|---|---|---|---|---|---|---|
";

#[cfg(test)]
mod tests {
    use super::{Finding, table};

    #[test]
    fn a_table_marks_what_is_too_far() {
        let finding = |array: &str, difference| Finding {
            case: "a".into(),
            model_type: "t".into(),
            family: "f".into(),
            array: array.into(),
            difference,
            tolerance: 2e-4,
        };
        insta::assert_snapshot!(table(&[finding("logits", 1e-6), finding("chunked", 0.5)]), @"a                        logits 1.0e-6  chunked 5.0e-1!");
    }
}
