//! `specc list`

use std::collections::BTreeSet;

use specc::library::Library;
use specc::manifest::{Manifest, Method, ONLY_KIND};

use super::{Format, ListArgs, Outcome, output};

struct Row {
    family: String,
    model_types: Vec<String>,
    method: &'static str,
    fidelity: String,
    lines: usize,
    layers: Vec<String>,
}

pub fn run(args: &ListArgs) -> Outcome {
    let library = output::library(&args.specs)?;
    let mut rows = Vec::new();
    let mut broken = Vec::new();
    for name in library.families() {
        match library.load_family(name) {
            Ok((manifest, _)) => rows.push(row(&library, name, &manifest)),
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

fn row(library: &Library, name: &str, manifest: &Manifest) -> Row {
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
        fidelity: match &family.fidelity.oracle {
            Some(oracle) => format!("{} {oracle}", family.fidelity.tier),
            None => family.fidelity.tier.clone(),
        },
        lines: library.spec_lines(name),
        layers: layers.into_iter().collect(),
    }
}

fn text(rows: &[Row]) -> String {
    let head = ["family", "lines", "method", "fidelity", "model types", "layers: cache"]
        .map(str::to_owned);
    let mut table = vec![head];
    for row in rows {
        table.push([
            row.family.clone(),
            row.lines.to_string(),
            row.method.to_owned(),
            row.fidelity.clone(),
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

fn json(row: &Row) -> String {
    serde_json::json!({
        "family": row.family,
        "model_types": row.model_types,
        "method": row.method,
        "fidelity": row.fidelity,
        "lines": row.lines,
        "layers": row.layers,
    })
    .to_string()
}
