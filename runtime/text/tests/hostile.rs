//! Hostile templates end soon, with an error.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Map, json};
use specc_text::TemplateError;
use specc_text::template::{Clock, Limits, Template};

fn run(template: &str) -> Result<String, TemplateError> {
    let mut variables = Map::new();
    variables.insert("messages".into(), json!([{"role": "user", "content": "hi"}]));
    Template::parse("hostile", template)?.render(&variables, Clock::Local, Limits::default())
}

/// An error comes, whenever it does: the clock only keeps the tests from hanging.
fn ends(label: &str, template: &str) {
    let (send, receive) = mpsc::channel();
    let (own, start) = (template.to_owned(), Instant::now());
    std::thread::spawn(move || send.send(run(&own)));
    let result = receive.recv_timeout(Duration::from_secs(60));
    let result = result.unwrap_or_else(|why| panic!("{label}: {why}"));
    println!("{label}: {:.2?}", start.elapsed());
    assert!(result.is_err(), "{label}: {} bytes", result.unwrap().len());
}

#[test]
fn hostile_templates_end_with_an_error() {
    let nested = "(".repeat(100_000) + "1" + &")".repeat(100_000);
    let chain = format!("{{{{ 1{} }}}}", "+1".repeat(100_000));
    let blocks = "{% if 1 %}".repeat(50_000);
    let forms = [
        ("endless range", "{% for i in range(999999999999) %}x{% endfor %}".to_owned()),
        (
            "loops in loops",
            "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}\
             {% endfor %}{% endfor %}{% endfor %}"
                .to_owned(),
        ),
        (
            "exponential growth",
            "{% set ns = namespace(s='x') %}{% for i in range(99) %}\
             {% set ns.s = ns.s ~ ns.s %}{% endfor %}"
                .to_owned(),
        ),
        (
            "growth in captures",
            "{% set ns = namespace(s='x') %}{% for i in range(99) %}\
             {% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}{% endfor %}"
                .to_owned(),
        ),
        ("repetition", "{{ 'x' * 10 ** 12 }}{{ [0] * 10 ** 12 }}".to_owned()),
        ("recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}".to_owned()),
        ("attributes", "{{ ''.__class__.__mro__[1].__subclasses__() }}".to_owned()),
        ("ten megabytes of template", "x".repeat(10_000_000)),
        ("ten megabytes of output", "{{ 'x' * 10000000 }}".to_owned()),
        ("broken syntax", "{% for x in %}{{ {% endif".to_owned()),
        ("nested parentheses", format!("{{{{ {nested} }}}}")),
        ("a chain of operators", chain),
        ("nested blocks", blocks),
        ("padding", "{{ '%999999999d' % 1 }}{{ '{:999999999}'.format(1) }}".to_owned()),
        (
            "nested lists",
            "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}\
             {% set ns.x = [ns.x] %}{% endfor %}"
                .to_owned(),
        ),
        (
            "namespaces in namespaces",
            "{% set ns = namespace(x=1) %}{% for i in range(99999) %}\
             {% set ns.x = namespace(x=ns.x) %}{% endfor %}"
                .to_owned(),
        ),
        ("a power", "{{ 10 ** 10 ** 10 }}".to_owned()),
        ("cycling nothing", "{% for i in [1] %}{{ loop.cycle() }}{% endfor %}".to_owned()),
        ("other files", "{% include '/etc/passwd' %}".to_owned()),
    ];
    for (label, template) in &forms {
        ends(label, template);
    }
}

#[test]
fn errors_name_construct_and_line() {
    let text = |template: &str| run(template).unwrap_err().to_string();
    assert_eq!(
        text("a\n{% nope %}\n"),
        "hostile: line 2: Encountered unknown tag 'nope'.\n  | {% nope %}"
    );
    assert_eq!(
        text("a\n\n{{ messages.x.y }}"),
        "hostile: line 3: undefined: 'list object' has no attribute 'x'\n  | {{ messages.x.y }}"
    );
    assert_eq!(text("{{ x|nope }}"), "hostile: line 1: No filter named 'nope'.\n  | {{ x|nope }}");
    assert_eq!(
        text("{% macro m() %}\n{{ varargs }}\n{% endmacro %}"),
        "hostile: line 2: a macro's `varargs` cannot be served\n  | {{ varargs }}"
    );
    assert_eq!(text("\n{{ raise_exception('no ' ~ 1) }}"), "the chat template refuses: no 1");
}
