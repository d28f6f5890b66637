//! `specc list`

use std::collections::BTreeSet;

use specc::library::Library;
use specc::manifest::{Manifest, Method, ONLY_KIND};
use specc::measured::{Measured, measured};

use super::{Format, ListArgs, Outcome, output};

struct Row {
    family: String,
    model_types: Vec<String>,
    method: &'static str,
    reference: Option<String>,
    measured: Option<Measured>,
    lines: usize,
    layers: Vec<String>,
}

pub fn run(args: &ListArgs) -> Outcome {
    let library = output::library(&args.specs)?;
    let mut rows = Vec::new();
    let mut broken = Vec::new();
    let measured = measured();
    for name in library.families() {
        match library.load_family(name) {
            Ok((manifest, _)) => rows.push(row(&library, name, &manifest, &measured)),
            Err(found) => broken.extend(found),
        }
    }
    match args.format {
        Format::Text => output::print(&text(&rows))?,
        Format::Json => {
            let lines: String = rows.iter().map(|row| json(row) + "\n").collect();
            output::print(&lines)?;
        }
    }
    output::report(&library.sources, &broken, Format::Text)
}

fn row(library: &Library, name: &str, manifest: &Manifest, measured: &[Measured]) -> Row {
    let family = &manifest.family;
    let layers: BTreeSet<String> = manifest
        .layers
        .kinds
        .iter()
        .map(|kind| match kind.name.node.as_str() {
            ONLY_KIND => kind.storage.node.clone(),
            word => format!("{word}: {}", kind.storage.node),
        })
        .collect();
    Row {
        family: name.to_owned(),
        model_types: family.model_types.iter().map(|word| word.node.clone()).collect(),
        method: match family.method.node {
            Method::Autoregressive => "autoregressive",
            Method::Embedding => "embedding",
            Method::Denoising => "denoising",
        },
        reference: family.fidelity.oracle.clone(),
        measured: measured.iter().find(|row| row.family == name).cloned(),
        lines: library.spec_lines(name),
        layers: layers.into_iter().collect(),
    }
}

fn text(rows: &[Row]) -> String {
    let head = ["family", "lines", "method", "measured", "model types", "layers: cache"]
        .map(str::to_owned);
    let mut table = vec![head];
    for row in rows {
        table.push([
            row.family.clone(),
            row.lines.to_string(),
            row.method.to_owned(),
            fidelity(row),
            row.model_types.join(", "),
            row.layers.join(", "),
        ]);
    }
    let width = |column: usize| {
        table
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut out = String::new();
    for row in &table {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// The largest difference from a reference's numbers that the tests saw; nothing that they did not.
fn fidelity(row: &Row) -> String {
    let Some(found) = &row.measured else { return "not measured".to_owned() };
    let plural = if found.cases == 1 { "model" } else { "models" };
    format!("{:.1e} in {} {plural}", found.difference, found.cases)
}

fn json(row: &Row) -> String {
    let measured = row.measured.as_ref().map(|found| {
        serde_json::json!({
            "cases": found.cases,
            "largest_difference": found.difference,
            "tolerance": found.tolerance,
        })
    });
    serde_json::json!({
        "family": row.family,
        "model_types": row.model_types,
        "method": row.method,
        "reference": row.reference,
        "measured": measured,
        "lines": row.lines,
        "layers": row.layers,
    })
    .to_string()
}
