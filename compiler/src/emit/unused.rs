//! Values that a function computes and never names again, such as the second result of a block whose
//! caller takes the first alone.

use crate::ir::Statement;

/// The body with an underscore before the names that stand in it once and not in `last`.
pub(super) fn unmissed(mut body: String, last: &str, statements: &[Statement]) -> String {
    for name in bound(statements).into_iter().filter(|name| !name.starts_with('_')) {
        let at = {
            let mut places = places(&body, name);
            places.next().filter(|_| places.next().is_none())
        };
        let alone = |at: &usize| places(last, name).next().is_none() && binds(&body, *at);
        if let Some(at) = at.filter(alone) {
            body.insert(at, '_');
        }
    }
    body
}

/// Whether a name's place is in the pattern of a `let`: one whose call became the tail is bound nowhere.
fn binds(body: &str, at: usize) -> bool {
    let before = body.get(..at).unwrap_or_default();
    let pattern = before.rfind("let ").and_then(|start| before.get(start..));
    pattern.is_some_and(|pattern| !pattern.contains(['=', ';', '{']))
}

/// The names that statements bind, those of their bodies with them.
fn bound(statements: &[Statement]) -> Vec<&str> {
    let mut names = Vec::new();
    for statement in statements {
        match statement {
            Statement::Let { vars, .. } => names.extend(vars.iter().map(|var| var.name.as_str())),
            Statement::Choice { vars, arms, .. } => {
                names.extend(vars.iter().map(|var| var.name.as_str()));
                arms.iter().for_each(|arm| names.extend(bound(&arm.body)));
            }
            Statement::Repeat { body, .. } => names.extend(bound(body)),
        }
    }
    names
}

/// Where a word stands in Rust text.
pub(super) fn places<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let part = |letter: Option<char>| letter.is_some_and(|l| l.is_alphanumeric() || l == '_');
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !part(text[..*at].chars().next_back()) && !part(text[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::{binds, places};

    #[test]
    fn a_pattern_ends_at_its_value() {
        let body = "let [a, b] = f(&c)?;\nops::d(&a)";
        let found: Vec<bool> = ["a", "b", "c", "d"]
            .iter()
            .filter_map(|name| Some(binds(body, places(body, name).next()?)))
            .collect();
        assert_eq!(found, [true, true, false, false]);
    }

    #[test]
    fn a_word_ends_where_letters_do() {
        let found = |text| places(text, "x").collect::<Vec<_>>();
        assert_eq!(found("let x = f(&x_2)?; x"), [4, 18]);
        assert_eq!(found("ax xa x2"), [] as [usize; 0]);
    }
}
