//! What must hold of every built-in family's record: what its graph declares, its profiles, its chats.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use specc_families::families;
use specc_runtime::Family;
use specc_runtime::capabilities::{GraphDeclaration, ORDINARY_VERIFICATION};
use specc_runtime::generate::Model;
use specc_runtime::graph::Method;
use specc_runtime::profile::{
    Profile, Registry, engine_capabilities, load_model_chat_template, validate_profile,
};
use specc_runtime::text::TemplateOptions;
use specc_runtime::weights::LoadOptions;
use specc_tests::case::Case;
use specc_tests::graphs::{EXPERTS, Graphs, LATENTS, STATES};
use specc_tests::lines::counted;

fn named(name: &str) -> &'static Family {
    families().iter().find(|family| family.name == name).unwrap()
}

fn names(of: impl Fn(&Family) -> bool) -> Vec<&'static str> {
    families().iter().filter(|family| of(family)).map(|family| family.name).collect()
}

#[test]
fn no_family_promises_what_its_graph_lacks() {
    assert!(families().len() >= 30);
    let promises = |d: &GraphDeclaration| {
        d.media.is_some() || d.compiled_decode || d.hidden_layer_taps || d.native_draft.is_some()
    };
    assert_eq!(names(|family| promises(&family.declaration)), [""; 0]);
    assert_eq!(names(|family| family.declaration.method != family.method), [""; 0]);
}

#[test]
fn graphs_tell_part_of_their_declaration() {
    let speculation = GraphDeclaration::ORDINARY.speculation;
    assert_eq!(names(|f| f.declaration.speculation == ORDINARY_VERIFICATION), ["gemma2"]);
    let others =
        names(|f| ![ORDINARY_VERIFICATION, speculation].contains(&f.declaration.speculation));
    assert_eq!(others, [""; 0]);
    assert_eq!(names(|f| f.declaration.sparse_attention), ["glm_moe_dsa"]);
}

#[test]
fn every_profile_holds() {
    let engine = engine_capabilities(families());
    Registry::new(families()).unwrap();
    let mut table = String::new();
    for family in families() {
        let profile = Profile::of_family(family);
        validate_profile(&profile, &engine).unwrap();
        let wanted =
            ["gemma4_text", "diffusion_gemma", "qwen3_5", "qwen3", "minicpm5", "bert", "llama"];
        if wanted.contains(&family.name) {
            let fidelity = serde_json::to_string(&profile.fidelity).unwrap();
            let words = profile.capabilities.join(" ");
            writeln!(
                table,
                "{} {} {:?}: {words}",
                profile.id, profile.run_loop, profile.specialization
            )
            .unwrap();
            writeln!(table, "  {fidelity} {:?}", profile.generation_defaults).unwrap();
        }
    }
    insta::assert_snapshot!(table, @r#"
    minicpm5-dedicated autoregressive Dedicated: autoregressive minicpm5-graph safetensors
      {"tier":"l1","oracle":"mlx-lm","claim":"bit-exact"} GenerationDefaults { enable_thinking: Some(false), no_think_temperature_cap: 0.7 }
    qwen3.5-dedicated autoregressive Dedicated: autoregressive qwen3.5-graph recurrent-state safetensors
      {"tier":"l1","oracle":"mlx-lm","claim":"bit-exact"} GenerationDefaults { enable_thinking: None, no_think_temperature_cap: 0.7 }
    bert-dedicated embedding Dedicated: bert-graph embedding safetensors
      {"tier":"l3","oracle":null,"claim":"measured"} GenerationDefaults { enable_thinking: None, no_think_temperature_cap: 0.7 }
    diffusion-gemma-dedicated diffusion Dedicated: diffusion diffusion-gemma-graph safetensors
      {"tier":"l2","oracle":"mlx-optiq","claim":"bit-exact"} GenerationDefaults { enable_thinking: None, no_think_temperature_cap: 0.7 }
    gemma4-dedicated autoregressive Dedicated: autoregressive gemma4-graph safetensors
      {"tier":"l1","oracle":"mlx-lm","claim":"bit-exact"} GenerationDefaults { enable_thinking: None, no_think_temperature_cap: 0.7 }
    qwen3-dedicated autoregressive Dedicated: autoregressive qwen3-graph safetensors
      {"tier":"l1","oracle":"mlx-lm","claim":"bit-exact"} GenerationDefaults { enable_thinking: None, no_think_temperature_cap: 0.7 }
    llama autoregressive Generic: autoregressive llama-graph safetensors
      {"tier":"l1","oracle":"mlx-lm","claim":"bit-exact"} GenerationDefaults { enable_thinking: None, no_think_temperature_cap: 0.7 }
    "#);
}

/// Manifest and graph of a family, as far as it has them.
fn documents(family: &str) -> [String; 2] {
    let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
    ["toml", "graph"].map(|end| {
        std::fs::read_to_string(specs.join(format!("{family}.{end}"))).unwrap_or_default()
    })
}

/// The most lines of a document that lays neither layers nor names of weights out anew, of another
/// dense family, and of one with experts, latents, states or canvases, graph included.
const BUDGETS: [usize; 3] = [25, 60, 120];

#[test]
fn documents_stay_within_their_budgets() {
    let graphs = Graphs::new();
    let special = [EXPERTS, LATENTS, STATES].map(|items| graphs.with(items));
    let mut sizes = [Vec::new(), Vec::new(), Vec::new()];
    for family in families() {
        let [manifest, graph] = documents(family.name);
        let own = ["extends", "[layers", "prefixes", "map "]
            .map(|word| manifest.lines().any(|line| line.starts_with(word)));
        let kind = if special.iter().any(|names| names.contains(family.name))
            || family.method == Method::Denoising
        {
            2
        } else {
            usize::from(!(graph.is_empty() && own == [true, false, false, false]))
        };
        let lines = counted(&manifest) + counted(&graph);
        assert!(
            (5..=BUDGETS[kind]).contains(&lines),
            "{}: {lines} lines, at most {}",
            family.name,
            BUDGETS[kind]
        );
        sizes[kind].push(family.name);
    }
    // Each kind is there.
    for (kind, name) in ["qwen3", "gpt2", "jamba"].into_iter().enumerate() {
        assert!(sizes[kind].contains(&name), "{name}: {sizes:?}");
    }
}

#[test]
fn the_table_has_every_family() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/families.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut all = names(|_| true);
    all.sort_unstable();
    assert_eq!(rows.iter().skip(1).map(|row| row[0]).collect::<Vec<_>>(), all);
    // One that was compared with nothing computes as one that was.
    let graphs = Graphs::new();
    for row in rows.iter().skip(1).filter(|row| row[3] == "0") {
        let base = graphs.computes_as(row[0]).unwrap().expect(row[0]);
        assert!(row[6].ends_with(&format!("that of {base}")), "{row:?}");
        assert!(rows.iter().any(|other| other[0] == base && other[3] != "0"), "{row:?}");
    }
}

#[test]
fn the_type_alone_tells_most_families() {
    let model_type = |f: &Family| f.model_types.iter().any(|word| f.has_model_type(word));
    let unsure = names(|f| !model_type(f));
    assert_eq!(unsure, ["minicpm5", "qwen3_5", "qwen3_5_moe"]);
}

/// Loads a case with a key of its config changed; what it says.
fn refused(case: &str, key: &str, value: Value) -> String {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(Case::root().join(case)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config[key] = value;
    std::fs::write(path, config.to_string()).unwrap();
    let model = Model::load(families(), folder.path(), LoadOptions::default());
    model.map_or_else(|e| e.to_string(), |model| format!("{:?}", model.unread()))
}

#[test]
fn a_value_that_a_graph_does_not_honour_is_refused_or_told() {
    let depth = refused("nemotron_h", "num_hidden_layers", json!(4));
    assert!(depth.contains("the number of the layers that are described"), "{depth}");
    // In another spelling, and in no spelling of the family's.
    let bias = refused("nemotron_h", "use_bias", json!(false));
    assert!(bias.contains("use_bias"), "{bias}");
    let rope = refused("qwen3_5", "rope_traditional", json!(true));
    assert!(rope.contains("rope_traditional"), "{rope}");
    assert_eq!(refused("glm_moe_dsa", "num_nextn_predict_layers", json!(3)), "[]");
}

#[test]
fn vectors_are_told_by_the_operation() {
    let gives = |case: &str| {
        let folder = Case::root().join(case);
        let model = Model::load(families(), &folder, LoadOptions::default()).unwrap();
        (model.capabilities().embeddings, model.profile().profile.id.clone())
    };
    assert_eq!(gives("qwen3"), (true, "qwen3-dedicated".to_owned()));
    assert_eq!(gives("llama"), (false, "llama".to_owned()));
    assert_eq!(names(|f| f.method == Method::Embedding && f.embedding.is_none()), [""; 0]);
}

/// What a family's own template makes of variables.
fn render(family: &str, variables: Value, disable_thinking: bool) -> String {
    let profile = Profile::of_family(named(family));
    let folder = tempfile::tempdir().unwrap();
    let options = TemplateOptions { disable_thinking, ..TemplateOptions::default() };
    let template = load_model_chat_template(folder.path(), &profile, options).unwrap();
    template.render(variables.as_object().unwrap()).unwrap_or_else(|e| e.to_string())
}

#[test]
fn every_fallback_renders_a_conversation() {
    let with = names(|family| family.chat.fallback.is_some());
    assert_eq!(with, ["glm_moe_dsa"]);
    for name in with {
        let text =
            render(name, json!({ "messages": [{ "role": "user", "content": "hello" }] }), false);
        assert!(text.contains("hello"), "{name}: {text}");
    }
}

fn glm(variables: Value, disable_thinking: bool) -> String {
    render("glm_moe_dsa", variables, disable_thinking)
}

fn hello() -> Value {
    json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hello" }])
}

#[test]
fn thinking_is_on_unless_it_is_switched_off() {
    let on = glm(json!({ "messages": hello() }), false);
    insta::assert_snapshot!(on, @r#"
    [gMASK]<sop><|system|>Reasoning Effort: Max<|system|>Be brief.<|user|>Hello<|assistant|>
    "#);
    let off = glm(json!({ "messages": hello() }), true);
    insta::assert_snapshot!(off, @r#"
    [gMASK]<sop><|system|>Be brief.<|user|>Hello<|assistant|><think></think>
    "#);
    assert_eq!(glm(json!({ "messages": hello(), "enable_thinking": false }), false), off);
    let effort = glm(json!({ "messages": hello(), "reasoning_effort": "low" }), false);
    assert_eq!(effort, on.replace("Max", "Low"));
    let bare = glm(json!({ "messages": hello(), "add_generation_prompt": false }), true);
    assert_eq!(format!("{bare}<|assistant|><think></think>"), off);
}

#[test]
fn tools_their_calls_and_their_results_are_rendered() {
    let tool = json!({ "type": "function", "function": { "name": "weather", "parameters": {} } });
    let call = |name: &str, arguments: Value| json!({ "type": "function", "function": { "name": name, "arguments": arguments } });
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": "Weather in " }, "Oslo?"] },
        {
            "role": "assistant", "content": "", "reasoning_content": "I should look.",
            "tool_calls": [
                call("weather", json!({ "city": "Oslo", "days": 2, "units": ["C"] })),
                call("now", json!({})),
            ],
        },
        { "role": "tool", "content": "-3" },
        { "role": "tool", "content": "noon" },
        { "role": "assistant", "content": "Cold." },
        { "role": "user", "content": "Thanks" },
    ]);
    let text = glm(json!({ "messages": messages, "tools": [tool] }), false);
    insta::assert_snapshot!(text, @r#"
    [gMASK]<sop><|system|>Reasoning Effort: Max<|system|>
    # Tools

    You may call one or more functions to assist with the user query.

    You are provided with function signatures within <tools></tools> XML tags:
    <tools>
    {"type": "function", "function": {"name": "weather", "parameters": {}}}
    </tools>

    For each function call, output the function name and arguments within the following XML format:
    <tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>...</tool_call><|user|>Weather in Oslo?<|assistant|><think>I should look.</think><tool_call>weather<arg_key>city</arg_key><arg_value>Oslo</arg_value><arg_key>days</arg_key><arg_value>2</arg_value><arg_key>units</arg_key><arg_value>["C"]</arg_value></tool_call><tool_call>now</tool_call><|observation|><tool_response>-3</tool_response><tool_response>noon</tool_response><|assistant|><think></think>Cold.<|user|>Thanks<|assistant|>
    "#);
    // Without thinking none of it is shown again.
    let off = glm(json!({ "messages": messages }), true);
    insta::assert_snapshot!(off, @r#"
    [gMASK]<sop><|user|>Weather in Oslo?<|assistant|><think></think><tool_call>weather<arg_key>city</arg_key><arg_value>Oslo</arg_value><arg_key>days</arg_key><arg_value>2</arg_value><arg_key>units</arg_key><arg_value>["C"]</arg_value></tool_call><tool_call>now</tool_call><|observation|><tool_response>-3</tool_response><tool_response>noon</tool_response><|assistant|><think></think>Cold.<|user|>Thanks<|assistant|><think></think>
    "#);
}

#[test]
fn what_cannot_be_rendered_is_told() {
    let arguments = json!([{ "role": "assistant", "content": "", "tool_calls": [
        { "function": { "name": "weather", "arguments": "{}" } },
    ] }]);
    let told = glm(json!({ "messages": arguments }), false);
    assert!(told.ends_with("the arguments of weather must be an object"), "{told}");
    let role = json!([{ "role": "wizard", "content": "hi" }]);
    assert!(glm(json!({ "messages": role }), false).ends_with("no role is named wizard"));
}
