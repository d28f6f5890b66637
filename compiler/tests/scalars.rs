//! An expression has one value: the interpreter, what is folded beforehand and generated code agree
//! on it, and on that it has none. The generated code stands in `scalars/generated.rs`;
//! `SPECC_BLESS=1` writes it anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod random;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use random::{Kind, Random};
use specc::compile::{check, generate};
use specc::expr::{ConfigValues, Env, Value, eval, evaluate, fold};
use specc::library::{Library, Origin};
use specc::lower::{ManifestScope, manifest_scalar};
use specc::manifest::Manifest;
use specc_checkpoint::config::ConfigFile;
use specc_checkpoint::scalar::NoValue;

/// How many random expressions stand in generated code, beside those written out here.
const COMPILED: usize = 320;

/// What random expressions seldom come to.
const WRITTEN: &[(Kind, &str)] = &[
    (Kind::Int, "a * b * c * a"),
    (Kind::Int, "wide * b + c"),
    (Kind::Int, "a ** 4 * b ** 3"),
    (Kind::Int, "9223372036854775807 + a"),
    (Kind::Int, "-(a * b * c)"),
    (Kind::Int, "-(-9223372036854775807 - c)"),
    (Kind::Int, "abs(a * b * c - 1)"),
    (Kind::Int, "abs(-9223372036854775807 - c)"),
    (Kind::Int, "(-9223372036854775807 - 1) // a"),
    (Kind::Int, "(-9223372036854775807 - 1) % a"),
    (Kind::Int, "int(f * 1e18)"),
    (Kind::Int, "floor(f * 1e300) + ceil(g * 1e300)"),
    (Kind::Int, "int(wide)"),
    (Kind::Int, "int(p) + int(true)"),
    (Kind::Int, "int(j) + j * 2"),
    (Kind::Int, "abs(j) - -j"),
    (Kind::Int, "min(j, a) + max(j, 3)"),
    (Kind::Int, "len(s) + len(\"äö\") + len(ws) + len(\"\")"),
    (Kind::Int, "n ?? wide * 4"),
    (Kind::Int, "len([1, 2, a])"),
    (Kind::Int, "min([a, b, 3]) + max(xs)"),
    (Kind::Int, "j ?? 5"),
    (Kind::Float, "f % -4"),
    (Kind::Float, "-7.5 % b"),
    (Kind::Float, "f % g"),
    (Kind::Float, "f // g"),
    (Kind::Float, "a / b"),
    (Kind::Float, "1 / (f - f)"),
    (Kind::Float, "f * 1e308 * 1e308 - 1"),
    (Kind::Float, "f ** g"),
    (Kind::Float, "2 ** a"),
    (Kind::Float, "sqrt(f) + log(a)"),
    (Kind::Float, "float(p) + float(j)"),
    (Kind::Float, "bf16(f * 1e38 * 10)"),
    (Kind::Float, "abs(-f) + abs(2.5)"),
    (Kind::Float, "min(a, f) + max(2, g)"),
    (Kind::Float, "min([f, 2]) + max(fs)"),
    (Kind::Float, "-(f + a / b)"),
    (Kind::Float, "-(g - a ** 0.5)"),
    (Kind::Bool, "j == 2 or j == 2.5"),
    (Kind::Bool, "2 == j"),
    (Kind::Bool, "j != \"auto\""),
    (Kind::Bool, "j == none"),
    (Kind::Bool, "j > 1 and j < 2.6"),
    (Kind::Bool, "j in [2, 3]"),
    (Kind::Bool, "j in ws"),
    (Kind::Bool, "n in xs"),
    (Kind::Bool, "t in ws or t in [\"auto\", \"x\"]"),
    (Kind::Bool, "f in [1, 2]"),
    (Kind::Bool, "a in [1.0, 2.5]"),
    (Kind::Bool, "a in fs"),
    (Kind::Bool, "f in xs"),
    (Kind::Bool, "s in \"automatic\""),
    (Kind::Bool, "n == o"),
    (Kind::Bool, "f == a"),
    (Kind::Bool, "not j"),
    (Kind::Bool, "(p and n == none) == false"),
    (Kind::Bool, "(p or n != none) != p"),
    (Kind::Bool, "not (p == (n != none))"),
    (Kind::Str, "ws[a]"),
    (Kind::Str, "s[1]"),
    (Kind::Str, "t ?? s"),
    (Kind::Str, "j ?? \"word\""),
];

/// The keys that the expressions name.
const CONFIG: &str = r#"
a = "int"
b = "int"
c = { type = "int", default = 3 }
n = "int?"
f = "float"
g = { type = "float", default = 0.5 }
o = "float?"
p = "bool"
u = "bool?"
s = "str"
t = "str?"
xs = "ints"
fs = "floats"
ws = "strs"
j = "json"
wide = { type = "int", value = "a * b" }
"#;

/// The same keys as generated code sees them.
#[derive(Clone)]
struct Keys {
    a: i64,
    b: i64,
    c: i64,
    n: Option<i64>,
    f: f64,
    g: f64,
    o: Option<f64>,
    p: bool,
    u: Option<bool>,
    s: String,
    t: Option<String>,
    xs: Vec<i64>,
    fs: Vec<f64>,
    ws: Vec<String>,
    j: serde_json::Value,
    wide: i64,
    model_type: String,
}

/// One expression in generated code.
struct Case {
    text: &'static str,
    run: fn(Keys) -> Result<Value, NoValue>,
}

trait Out {
    fn value(self) -> Value;
}

impl Out for i64 {
    fn value(self) -> Value {
        Value::Int(self)
    }
}

impl Out for f64 {
    fn value(self) -> Value {
        Value::Float(self)
    }
}

impl Out for bool {
    fn value(self) -> Value {
        Value::Bool(self)
    }
}

impl Out for String {
    fn value(self) -> Value {
        Value::Str(self)
    }
}

#[allow(warnings, clippy::all, reason = "the compiler's, and made from random texts")]
mod generated {
    use specc_checkpoint::scalar::*;

    use super::{Case, Keys, Out};

    pub const CASES: &[Case] = include!("scalars/generated.rs");
}

/// A family with these computed keys beside those of [`CONFIG`].
fn family(computed: &[(Kind, String)]) -> (Library, Manifest) {
    let mut text = format!(
        "[family]\nname = \"acme\"\nmodel_types = [\"acme\"]\nextends = \"llama\"\nlabel = \"Acme\"\n[config]{CONFIG}"
    );
    for (at, (kind, expr)) in computed.iter().enumerate() {
        let _ = writeln!(text, "e{at:04} = {{ type = {:?}, value = {expr:?} }}", kind.word());
    }
    text.push_str("e_end = { type = \"bool\", value = \"true\" }\n");
    let mut library = Library::builtin();
    library.add(Origin::Folder, "acme.toml", "acme.toml", &text);
    let manifest = library.load_family("acme").map(|(manifest, _)| manifest);
    let manifest = manifest.unwrap_or_else(|problems| panic!("{problems:#?}"));
    (library, manifest)
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap()
}

/// Configs with usual, missing, negative and extreme values.
fn configs() -> Vec<serde_json::Value> {
    let most = 1i64 << 31;
    let words = ["auto", "a", "ab"];
    let mut configs = Vec::new();
    let rows: [(i64, i64, serde_json::Value, f64, f64, serde_json::Value); 9] = [
        (2, 3, 7.into(), 1.5, 0.25, 2.into()),
        (1, 2, serde_json::Value::Null, 2.0, 3.0, serde_json::Value::Null),
        (0, 0, 0.into(), 0.0, 0.0, serde_json::json!(2.5)),
        (-1, -4, (-3).into(), -7.5, -4.0, serde_json::json!("auto")),
        (7, -4, 1.into(), 7.5, -2.0, true.into()),
        (most, most, most.into(), 1e18, 1e-300, most.into()),
        (-most, most, (-most).into(), -1e300, 1e300, serde_json::json!(["a", 2])),
        (-most, -most, 5.into(), 1e308, 308.0, serde_json::json!(2.0)),
        (3, 1, serde_json::Value::Null, 0.5, -0.5, serde_json::json!({ "k": 1 })),
    ];
    for (at, (a, b, n, f, g, j)) in rows.into_iter().enumerate() {
        let mut config = serde_json::json!({
            "model_type": "acme", "hidden_size": 64, "num_hidden_layers": 2,
            "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 100,
            "rms_norm_eps": 1e-6, "a": a, "b": b, "n": n, "f": f, "g": g, "p": at % 2 == 0,
            "s": words[at % 3], "xs": [a, b, 3], "fs": [f, g, 2.5], "ws": words, "j": j,
        });
        let keys = config.as_object_mut().unwrap();
        if at % 3 != 0 {
            keys.insert("o".to_owned(), f.into());
            keys.insert("c".to_owned(), (b / 2).into());
            keys.insert("t".to_owned(), words[at % 2].into());
            keys.insert("u".to_owned(), (at % 2 == 1).into());
        }
        configs.push(config);
    }
    configs
}

fn keys(config: &serde_json::Value) -> Keys {
    let int = |key: &str| config[key].as_i64();
    let (a, b) = (int("a").unwrap(), int("b").unwrap());
    Keys {
        a,
        b,
        c: int("c").unwrap_or(3),
        n: int("n"),
        f: number(&config["f"]),
        g: number(&config["g"]),
        o: config["o"].as_f64(),
        p: config["p"].as_bool().unwrap(),
        u: config["u"].as_bool(),
        s: config["s"].as_str().unwrap().to_owned(),
        t: config["t"].as_str().map(str::to_owned),
        xs: config["xs"].as_array().unwrap().iter().map(|one| one.as_i64().unwrap()).collect(),
        fs: config["fs"].as_array().unwrap().iter().map(number).collect(),
        ws: config["ws"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap().to_owned())
            .collect(),
        j: config["j"].clone(),
        wide: a * b,
        model_type: "acme".to_owned(),
    }
}

fn values(manifest: &Manifest, config: &serde_json::Value) -> ConfigValues {
    let file = ConfigFile::parse(Path::new("config.json"), config.to_string().as_bytes()).unwrap();
    evaluate(manifest, &file).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// Equal, or both without a value.
fn alike<E, F>(a: &Result<Value, E>, b: &Result<Value, F>) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => x == y || (x.is_nan() && y.is_nan()),
            _ => a == b,
        },
        (Err(_), Err(_)) => true,
        _ => false,
    }
}

fn compiled() -> Vec<(Kind, String)> {
    let mut random = Random::new(7);
    let written = WRITTEN.iter().map(|(kind, text)| (*kind, (*text).to_owned()));
    written.chain((0..COMPILED).map(|_| random.expression())).collect()
}

/// The code of each computed key as it stands in `Config::read`.
fn rows(module: &str, computed: &[(Kind, String)]) -> String {
    let mut rows = String::from("&[\n");
    for (at, (_, text)) in computed.iter().enumerate() {
        let start = format!("\n        let e{at:04} = ");
        let (_, rest) = module.split_once(&start).unwrap_or_else(|| panic!("{text} is not read"));
        let (code, _) = rest.split_once(";\n        let e").unwrap();
        let code: Vec<&str> = code.lines().map(str::trim).collect();
        let _ = writeln!(
            rows,
            "Case {{ text: {text:?}, run: |Keys {{ a, b, c, n, f, g, o, p, u, s, t, xs, fs, ws, j, wide, model_type }}| Ok(({}).value()) }},",
            code.join(" ")
        );
    }
    rows + "]\n"
}

#[test]
fn generated_code_has_the_values_of_the_interpreter() {
    let computed = compiled();
    let (library, manifest) = family(&computed);
    let checked = check(&library, "acme").unwrap_or_else(|problems| panic!("{problems:#?}"));
    let rows = rows(&generate(&library, &checked).unwrap(), &computed);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scalars/generated.rs");
    if std::env::var_os("SPECC_BLESS").is_some() {
        std::fs::write(&path, &rows).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == rows, "{} is out of date: run with SPECC_BLESS=1", path.display());
    assert_eq!(generated::CASES.len(), computed.len(), "compile this test once more");

    let plain = family(&[]).1;
    let (mut valued, mut refused) = (0, 0);
    for config in configs() {
        let (values, keys) = (values(&plain, &config), keys(&config));
        for (at, case) in generated::CASES.iter().enumerate() {
            let name = format!("e{at:04}");
            let key = manifest.config.iter().find(|key| key.name.node == name).unwrap();
            // No key here is nullable, so none is no value.
            let told = eval(key.value.as_ref().unwrap(), &values).ok();
            let told = told.filter(|value| *value != Value::None).ok_or(());
            let ran = (case.run)(keys.clone());
            assert!(alike(&told, &ran), "{}: {told:?}, {ran:?} with {config}", case.text);
            if told.is_ok() { valued += 1 } else { refused += 1 }
        }
    }
    println!("{valued} values, {refused} refusals");
    assert!(valued > 1000 && refused > 200, "{valued} values, {refused} refusals");
}

/// A config of which some keys are known.
struct Partly<'a>(&'a HashMap<String, Value>);

impl Env for Partly<'_> {
    fn name(&self, name: &str) -> Option<Result<Value, String>> {
        Some(self.0.get(name).cloned().ok_or_else(|| "not known yet".to_owned()))
    }
}

#[test]
fn folding_changes_no_value() {
    let mut random = Random::new(11);
    let plain = family(&[]).1;
    // A family has at most 512 keys.
    for _ in 0..3 {
        let computed: Vec<(Kind, String)> = (0..400).map(|_| random.expression()).collect();
        let (_, manifest) = family(&computed);
        let exprs = manifest.config.iter().filter(|key| key.name.node.starts_with('e'));
        let exprs = exprs.filter_map(|key| key.value.as_ref()).map(|expr| {
            let lowered = manifest_scalar(&manifest, expr, ManifestScope::default());
            (expr, lowered.unwrap().expr)
        });
        let exprs: Vec<_> = exprs.collect();
        for (round, config) in configs().into_iter().enumerate() {
            let values = values(&plain, &config);
            let keys = values.keys.iter().filter(|(name, _)| {
                let sum: usize = name.bytes().map(usize::from).sum();
                !(sum + round).is_multiple_of(2)
            });
            let known: HashMap<String, Value> = keys.cloned().collect();
            for (expr, lowered) in &exprs {
                let told = eval(expr, &values);
                let text = specc::syntax::print::expr(expr);
                let partly = eval(&fold(expr, &Partly(&known)), &values);
                assert!(alike(&told, &partly), "{text}: {told:?}, {partly:?} with {config}");
                let lowered = eval(lowered, &values);
                assert!(alike(&told, &lowered), "{text}: {told:?}, {lowered:?} with {config}");
            }
        }
    }
}
