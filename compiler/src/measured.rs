//! What the tests of this repository measured of its families: the table of docs/families.md.

/// One family's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The family.
    pub family: String,
    /// How many models were compared with the reference.
    pub cases: usize,
    /// The largest difference, relative to the largest expected value.
    pub difference: f64,
    /// The difference that was allowed there.
    pub tolerance: f64,
}

/// The rows of the table that the tests wrote; none where the compiler was built without it.
pub fn measured() -> Vec<Measured> {
    read(crate::library::MEASURED)
}

/// Rows of a Markdown table with these columns, wherever they stand in it.
fn read(text: &str) -> Vec<Measured> {
    let mut rows = text.lines().filter_map(cells);
    let Some(head) = rows.find(|row| row.contains(&"family")) else { return Vec::new() };
    let column = |name: &str| head.iter().position(|known| *known == name);
    let columns =
        (column("family"), column("cases"), column("largest difference"), column("its tolerance"));
    let (Some(family), Some(cases), Some(difference), Some(tolerance)) = columns else {
        return Vec::new();
    };
    rows.filter_map(|row| {
        Some(Measured {
            family: (*row.get(family)?).to_owned(),
            cases: row.get(cases)?.parse().ok()?,
            difference: row.get(difference)?.parse().ok()?,
            tolerance: row.get(tolerance)?.parse().ok()?,
        })
    })
    .collect()
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split('|').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_the_names_of_columns() {
        let text = "# Families\n\n| family | at | cases | its tolerance | largest difference |\n|---|---|---|---|---|\n| acme | x | 3 | 2.0e-4 | 6.8e-7 |\n| bolt | x | many | 1 | 2 |\n";
        let row =
            Measured { family: "acme".to_owned(), cases: 3, difference: 6.8e-7, tolerance: 2e-4 };
        assert_eq!(read(text), [row]);
        assert_eq!(read("no table"), []);
        assert!(!measured().is_empty(), "the table of this repository is not read");
    }
}
