//! Where two texts differ, for people.

/// Lines around a difference that are shown.
const CONTEXT: usize = 2;

/// Lines of a side that are shown; the rest is counted.
const MOST: usize = 20;

/// The lines from the first to the last that differ, `-` those that lie in `name`, `+` those that
/// would be written.
pub fn unified(name: &str, lies: &str, wanted: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lies.lines().collect(), wanted.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let least = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(least).take_while(|(a, b)| a == b).count();
    let start = head.saturating_sub(CONTEXT);
    let mut out = format!("--- {name}\n+++ {name}, as it would be written\n");
    let (removed, added) = (part(&old, head, tail), part(&new, head, tail));
    out.push_str(&format!("@@ -{},{} +{},{} @@\n", head + 1, removed.len(), head + 1, added.len()));
    for line in old.get(start..head).unwrap_or_default() {
        out.push_str(&format!(" {line}\n"));
    }
    side('-', removed, &mut out);
    side('+', added, &mut out);
    for line in old.iter().skip(old.len() - tail).take(CONTEXT) {
        out.push_str(&format!(" {line}\n"));
    }
    out
}

fn part<'t, 'l>(lines: &'t [&'l str], head: usize, tail: usize) -> &'t [&'l str] {
    lines.get(head..lines.len() - tail).unwrap_or_default()
}

fn side(sign: char, lines: &[&str], out: &mut String) {
    for line in lines.iter().take(MOST) {
        out.push_str(&format!("{sign}{line}\n"));
    }
    if lines.len() > MOST {
        out.push_str(&format!("{sign}... and {} more\n", lines.len() - MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn what_differs_stands_between_what_does_not() {
        let old = "a\nb\nc\nd\ne\nf\n";
        assert_eq!(
            unified("x", old, "a\nb\nc\nD\nDD\ne\nf\n"),
            "--- x\n+++ x, as it would be written\n@@ -4,1 +4,2 @@\n b\n c\n-d\n+D\n+DD\n e\n f\n"
        );
        assert_eq!(
            unified("x", "", "a\n"),
            "--- x\n+++ x, as it would be written\n@@ -1,0 +1,1 @@\n+a\n"
        );
        assert_eq!(
            unified("x", "a\na\n", "a\n"),
            "--- x\n+++ x, as it would be written\n@@ -2,1 +2,0 @@\n a\n-a\n"
        );
        let many = "y\n".repeat(25);
        assert!(unified("x", "", &many).ends_with("+... and 5 more\n"));
    }
}
