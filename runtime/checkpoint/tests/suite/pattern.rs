use insta::assert_snapshot;
use specc_checkpoint::map::{Pattern, Template};

fn filled(pattern: &str, name: &str, template: &str) -> Option<String> {
    let captures = Pattern::parse(pattern).unwrap().matches(name)?;
    Template::parse(template).unwrap().fill(&captures)
}

#[test]
fn pieces_take_what_they_say() {
    let rename = |p, n, t| filled(p, n, t).unwrap_or_else(|| "-".into());
    assert_eq!(rename("l.{i}.w", "l.12.w", "m.{i}"), "m.12");
    assert_eq!(rename("l.{i}.w", "l.x.w", "m.{i}"), "-");
    assert_eq!(rename("l.{i}", "l.", "m.{i}"), "-");
    assert_eq!(rename("{n:word}.w", "a.b.w", "{n}"), "-");
    assert_eq!(rename("a.{n:word}.w", "a.b_1.w", "{n}"), "b_1");
    assert_eq!(rename("{p:any}.w", "a.b.w", "{p}"), "a.b");
    assert_eq!(rename("*.w", "a.b.w", "x.*"), "x.a.b");
    assert_eq!(rename("*.m.*", "a.m.m.b", "*|*"), "a.m|b");
    assert_eq!(rename("*", "", "<*>"), "<>");
    assert_eq!(rename("a{n:b|bb}c", "abbc", "{n}"), "bb");
    assert_eq!(rename("{n:q|k}_proj.{w:weight|bias}", "k_proj.bias", "{w}.{n}"), "bias.k");
    assert_eq!(rename("{i}.{i}", "1.1", "{i}"), "1");
    assert_eq!(rename("{i}.{i}", "1.2", "{i}"), "-");
    assert_eq!(rename("*é.{n:word}", "xéé.ü", "{n}*"), "üxé");
}

#[test]
fn patterns_that_cannot_be_read_say_why() {
    let error = |text| Pattern::parse(text).unwrap_err().to_string();
    assert_snapshot!(error(""), @r#"pattern "": expected a name, found nothing"#);
    assert_snapshot!(error("a.{i"), @r#"pattern "a.{i": "{" without "}""#);
    assert_snapshot!(error("a.i}"), @r#"pattern "a.i}": "}" without "{""#);
    assert_snapshot!(error("{}"), @r#"pattern "{}": expected {name}, {name:word}, {name:any} or {name:a|b}"#);
    assert_snapshot!(error("{a:}"), @r#"pattern "{a:}": expected {name}, {name:word}, {name:any} or {name:a|b}"#);
    assert_snapshot!(error("{a:b|}"), @r#"pattern "{a:b|}": expected {name}, {name:word}, {name:any} or {name:a|b}"#);
}
