//! What a parity run found, as a table for people and as `docs/families.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

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

/// The text of `docs/families.md`.
///
/// # Errors
/// Where a family's documents cannot be read.
pub fn document(findings: &[Finding], specs: &Path) -> Result<String> {
    let reference = lines::of_mlx_lm()?;
    let mut families: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        families.entry(&finding.family).or_default().push(finding);
    }
    let mut text = String::from(
        "# Families and how far they are from the reference\n\n\
         Made by `SPECC_WRITE_DOCS=1 cargo test --release -p specc-tests --test parity`; do not edit.\n\n\
         Each family is run on tiny random models whose results mlx-lm 0.32.2 computed \
         (tests/fixtures/parity): one forward, the same ids in pieces through a cache, a greedy continuation, two rows \
         at once, and caches of few bits. A difference is the largest absolute one over the largest expected value; \
         shown is the array that comes nearest to its tolerance.\n\n\
         Lines are those of the family's manifest and graph, blank and comment lines left out; mlx-lm's are those of \
         its file for the same model type, counted the same way. Blocks shared by families stand in specs/std, as \
         mlx-lm's shared modules stand in files of their own; a document that extends another counts its own lines \
         only, as a file that imports another model's does.\n\n\
         | family | lines | mlx-lm's lines | cases | largest difference | its tolerance | at |\n|---|---|---|---|---|---|---|\n",
    );
    for (family, rows) in &families {
        let mut cases: Vec<&str> = rows.iter().map(|f| f.case.as_str()).collect();
        cases.dedup();
        let worst = rows
            .iter()
            .filter(|f| f.array != "greedy")
            .max_by(|a, b| (a.difference / a.tolerance).total_cmp(&(b.difference / b.tolerance)));
        let theirs = reference
            .get(*family)
            .or_else(|| rows.first().and_then(|f| reference.get(&f.model_type)));
        let _ = writeln!(
            text,
            "| {family} | {} | {} | {} | {} |",
            lines::of_family(specs, family)?,
            theirs.map_or_else(|| "–".to_owned(), usize::to_string),
            cases.len(),
            worst.map_or_else(
                || "– | – | –".to_owned(),
                |f| format!("{:.1e} | {:.1e} | {}, {}", f.difference, f.tolerance, f.case, f.array)
            ),
        );
    }
    Ok(text)
}

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
