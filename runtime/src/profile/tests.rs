//! Profiles of families: what they may say, and which one a folder gets.

use std::collections::BTreeSet;

use serde_json::json;
use specc_checkpoint::config::config_fingerprint;

use super::*;
use crate::family::Tier;
use crate::testing::{family, leak, source};

const SNAPSHOT: &str = "models--acme--tiny/snapshots/0123abc";

fn engine(profile: &Profile) -> BTreeSet<&'static str> {
    BASE_CAPABILITIES.into_iter().chain(profile.capabilities.iter().copied()).collect()
}

fn check(profile: &Profile) -> String {
    validate_profile(profile, &engine(profile)).map_or_else(|e| e.to_string(), |()| "fits".into())
}

#[test]
fn a_family_gives_a_profile() {
    let mut family = family();
    family.profile.capabilities = &["acme-graph", "recurrent-state"];
    let profile = Profile::of_family(leak(family));
    insta::assert_snapshot!(serde_json::to_string_pretty(&profile).unwrap(), @r#"
    {
      "id": "acme-dedicated",
      "graph": "acme",
      "specialization": "dedicated",
      "loader": "safetensors",
      "loop": "autoregressive",
      "fidelity": {
        "tier": "l3",
        "oracle": null,
        "claim": "measured"
      },
      "capabilities": [
        "acme-graph",
        "autoregressive",
        "recurrent-state",
        "safetensors"
      ],
      "generation_defaults": {
        "enable_thinking": null,
        "no_think_temperature_cap": 0.7
      },
      "chat_template_fallback": false,
      "execution": {
        "implementation": null,
        "composition": null
      }
    }
    "#);
    assert_eq!(check(&profile), "fits");
}

#[test]
fn what_no_profile_can_be_is_told_in_order() {
    let good = Profile::of_family(&family());
    let mut wrong = Profile {
        id: String::new(),
        fidelity: Fidelity { tier: FidelityTier::L1, oracle: None, claim: Claim::BitExact },
        execution: Execution {
            implementation: Some("other".into()),
            composition: Some("turbo".into()),
        },
        ..good.clone()
    };
    wrong.need(&["acme-graph", "time-travel"]);
    let known: BTreeSet<&str> = BASE_CAPABILITIES.into_iter().collect();
    let mut told = Vec::new();
    for step in 0..6 {
        match step {
            1 => wrong.id = "acme".into(),
            2 => wrong.fidelity = good.fidelity,
            3 => wrong.execution.composition = Some("default".into()),
            4 => wrong.capabilities = good.capabilities.clone(),
            5 => wrong.specialization = Specialization::Artifact,
            _ => {}
        }
        let result = validate_profile(&wrong, &known);
        told.push(result.map_or_else(|e| e.to_string(), |()| "fits".into()));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    profile id must not be empty
    profile acme: fidelity must be l1 or l2 with an oracle and bit-exact, or l3 without an oracle and measured; found l1 with no oracle and bit-exact
    profile acme: unsupported execution composition "turbo"; expected default
    profile acme: undeclared capabilities: acme-graph, time-travel
    profile acme: only a profile of an exact artifact names an implementation, found "other"
    fits
    "#);
}

#[test]
fn fidelity_is_one_of_three_contracts() {
    let tiers = [FidelityTier::L1, FidelityTier::L2, FidelityTier::L3];
    let mut good = Vec::new();
    for tier in tiers {
        for oracle in [None, Some("a program")] {
            for claim in [Claim::BitExact, Claim::Measured] {
                let fidelity = Fidelity { tier, oracle, claim };
                let profile = Profile { fidelity, ..Profile::of_family(&family()) };
                if check(&profile) == "fits" {
                    good.push((tier, oracle.is_some(), claim));
                }
            }
        }
    }
    let contracts = [
        (FidelityTier::L1, true, Claim::BitExact),
        (FidelityTier::L2, true, Claim::BitExact),
        (FidelityTier::L3, false, Claim::Measured),
    ];
    assert_eq!(good, contracts);
}

#[test]
fn implementations_go_by_the_graph() {
    let family = family();
    let generated = GeneratedProfile { id: "acme-generated", fingerprints: &[] };
    let artifact = ArtifactProfile {
        id: "tiny",
        artifact: "hf:acme/tiny@1",
        fingerprint: "0",
        fidelity: None,
        capabilities: &[],
        implementation: None,
        composition: None,
    };
    assert_eq!(Profile::of_family(&family).implementation_id(), "acme");
    let profile = Profile::generated(&family, &generated);
    assert_eq!(
        (profile.implementation_id().as_str(), profile.id.as_str()),
        ("acme-generated", "acme-generated")
    );
    assert!(profile.capabilities.contains(&"generated-graph"));
    assert_eq!(Profile::artifact(&family, &artifact).implementation_id(), "acme");
    let named = ArtifactProfile { implementation: Some("tiny-graph"), ..artifact };
    let profile = Profile::artifact(&family, &named);
    assert_eq!(profile.implementation_id(), "tiny-graph");
    assert_eq!(
        (check(&profile).as_str(), profile.specialization),
        ("fits", Specialization::Artifact)
    );
}

/// The profile of a model and its implementation, or why there is none.
fn resolve(families: &[&'static Family], path: &str, config: serde_json::Value) -> String {
    let (_folder, source) = source(path, &config);
    let found = Registry::new(families).and_then(|registry| {
        let resolved = registry.resolve(&source)?;
        registry.implementation(&resolved, &source)?;
        let artifact = resolved.artifact.as_deref().unwrap_or("no artifact").to_owned();
        let (id, runs) = (resolved.profile.id, resolved.implementation);
        Ok(format!("{id} by {runs}, {artifact}"))
    });
    found.unwrap_or_else(|e| e.to_string())
}

/// The fingerprint of a configuration, for as long as the process lives.
fn fingerprint(config: &serde_json::Value) -> &'static str {
    let (_folder, source) = source("", config);
    config_fingerprint(source.config()).leak()
}

fn pinned(fingerprint: &'static str, implementation: Option<&'static str>) -> &'static Family {
    let artifact = ArtifactProfile {
        id: "tiny-4bit",
        artifact: "hf:acme/tiny@0123abc",
        fingerprint,
        fidelity: None,
        capabilities: &[],
        implementation,
        composition: None,
    };
    let mut family = family();
    family.profile.artifacts = vec![artifact].leak();
    leak(family)
}

#[test]
fn an_exact_artifact_goes_before_all_else_and_never_falls_back() {
    let config = json!({ "model_type": "acme", "hidden_size": 64 });
    let known = pinned(fingerprint(&config), None);
    assert_eq!(
        resolve(&[known], SNAPSHOT, config.clone()),
        "tiny-4bit by acme, hf:acme/tiny@0123abc"
    );
    // Elsewhere, and under another revision, it is an ordinary model.
    assert_eq!(resolve(&[known], "tiny", config.clone()), "acme-dedicated by acme, no artifact");
    assert_eq!(
        resolve(&[known], "models--acme--tiny/snapshots/ffff", config.clone()),
        "acme-dedicated by acme, hf:acme/tiny@ffff"
    );
    let other = json!({ "model_type": "acme", "hidden_size": 65 });
    let told = resolve(&[known], SNAPSHOT, other.clone());
    let expected = format!(
        "profile tiny-4bit of hf:acme/tiny@0123abc: expected the configuration {}, found {}; refusing to fall back",
        fingerprint(&config),
        fingerprint(&other)
    );
    assert_eq!(told, expected);
    let mut choosy = *known.profile.artifacts.first().unwrap();
    let mut family = family();
    family.accepts = |_| Ok(false);
    choosy.fingerprint = fingerprint(&config);
    family.profile.artifacts = vec![choosy].leak();
    assert_eq!(
        resolve(&[leak(family)], SNAPSHOT, config),
        "profile tiny-4bit of hf:acme/tiny@0123abc: the graph acme does not take its configuration; refusing to fall back"
    );
    let alien = json!({ "model_type": "zebra", "hidden_size": 64 });
    assert_eq!(
        resolve(&[pinned(fingerprint(&alien), None)], SNAPSHOT, alien),
        "profile tiny-4bit of hf:acme/tiny@0123abc: the graph acme does not take its configuration; refusing to fall back"
    );
}

#[test]
fn generated_graphs_run_the_configurations_that_they_list() {
    let config = json!({ "model_type": "acme", "hidden_size": 64 });
    let listed = vec![fingerprint(&config)].leak();
    let mut family = family();
    family.profile.generated =
        Some(GeneratedProfile { id: "acme-generated", fingerprints: listed });
    let base = leak(family);
    let mut own = crate::testing::family();
    (own.name, own.model_types) = ("acme_64", &["acme_64"]);
    own.profile = FamilyProfile::new("acme-64", "acme-64");
    own.profile.implementation = "acme-generated";
    own.profile.specialization = Specialization::Generated;
    let own = leak(own);
    assert_eq!(
        resolve(&[base, own], "", config.clone()),
        "acme-generated by acme-generated, no artifact"
    );
    let other = json!({ "model_type": "acme", "hidden_size": 65 });
    assert_eq!(resolve(&[base, own], "", other), "acme-dedicated by acme, no artifact");
    assert_eq!(
        resolve(&[base], "", config),
        r#"graph implementation "acme-generated" is unavailable: profile acme-generated needs it, and no family of this program provides it"#
    );
}

#[test]
fn implementations_must_fit_their_profile() {
    let config = json!({ "model_type": "acme" });
    let base = pinned(fingerprint(&config), Some("tiny-graph"));
    let with = |change: fn(&mut Family)| {
        let mut own = family();
        (own.name, own.model_types) = ("tiny", &["tiny"]);
        own.profile = FamilyProfile::new("tiny", "tiny");
        own.profile.implementation = "tiny-graph";
        change(&mut own);
        resolve(&[base, leak(own)], SNAPSHOT, config.clone())
    };
    let mut told = vec![with(|_| {})];
    told.push(with(|own| own.method = Method::Denoising));
    told.push(with(|own| own.accepts = |_| Ok(false)));
    told.push(with(|own| own.profile.implementation = "acme"));
    told.push(with(|own| own.profile.implementation = "other"));
    insta::assert_snapshot!(told.join("\n"), @r#"
    tiny-4bit by tiny-graph, hf:acme/tiny@0123abc
    graph implementation "tiny-graph" is incompatible with profile tiny-4bit: it is diffusion, the profile autoregressive
    graph implementation "tiny-graph" is incompatible with profile tiny-4bit: it does not take this configuration
    graph implementation "acme" is registered twice, by acme and tiny
    graph implementation "tiny-graph" is unavailable: profile tiny-4bit needs it, and no family of this program provides it
    "#);
}

#[test]
fn families_of_a_program_go_together() {
    let with = |change: fn(&mut Family)| {
        let mut other = family();
        (other.name, other.model_types) = ("zebra", &["acme", "zebra"]);
        other.profile = FamilyProfile::new("zebra", "zebra-dedicated");
        change(&mut other);
        let first = leak(family());
        resolve(&[first, leak(other)], "", json!({ "model_type": "acme" }))
    };
    let told = [
        with(|_| {}),
        with(|other| other.name = "acme"),
        with(|other| other.profile.graph = "acme"),
        with(|other| other.label = None),
        with(|other| other.tier = Tier::Generic),
        with(|other| (other.tier, other.label) = (Tier::Generic, None)),
    ];
    insta::assert_snapshot!(told.join("\n"), @r"
    acme-dedicated by acme, no artifact
    families: two are named acme
    families: acme and zebra have one graph, acme
    families: zebra is targeted and has no label
    families: zebra is generic and has a label
    acme-dedicated by acme, no artifact
    ");
}

#[test]
fn the_first_targeted_family_wins_and_the_generic_one_comes_last() {
    let named = |name: &'static str, generic: bool| {
        let mut family = family();
        family.name = name;
        family.profile = FamilyProfile::new(name, name);
        if generic {
            (family.tier, family.label) = (Tier::Generic, None);
        }
        leak(family)
    };
    let (generic, own, built_in) =
        (named("generic", true), named("own", false), named("built", false));
    let config = || json!({ "model_type": "acme" });
    assert_eq!(resolve(&[generic, own, built_in], "", config()), "own by own, no artifact");
    assert_eq!(resolve(&[built_in, generic, own], "", config()), "built by built, no artifact");
    assert_eq!(resolve(&[generic], "", config()), "generic by generic, no artifact");
    let again = named("another", true);
    assert_eq!(
        resolve(&[generic, again], "", config()),
        "families: generic and another are both generic"
    );
}

#[test]
fn a_type_that_nobody_takes_is_told_with_what_there_is() {
    let mut generic = family();
    (generic.name, generic.model_types) = ("any", &["zebra", "yak"]);
    (generic.tier, generic.label) = (Tier::Generic, None);
    generic.profile = FamilyProfile::new("any", "any");
    let families = [leak(family()), leak(generic)];
    let told = |model_type: &str| {
        let text = resolve(&families, "", json!({ "model_type": model_type }));
        text.split_once("config.json: ").unwrap().1.to_owned()
    };
    assert_eq!(
        told("acmee"),
        r#"model_type "acmee" is not supported; did you mean "acme"?; supported are Acme; and the model types yak, zebra"#
    );
    assert!(families[0].has_model_type("acme") && !families[0].has_model_type("zebra"));
    let mut choosy = family();
    choosy.conditional = true;
    assert!(!choosy.has_model_type("acme"));
}

#[test]
fn one_condition_at_most_holds() {
    let choosy = |name: &'static str, accepts: fn(&ModelSource) -> crate::Result<bool>| {
        let mut family = family();
        (family.name, family.conditional, family.accepts) = (name, true, accepts);
        family.profile = FamilyProfile::new(name, name);
        family
    };
    let found = |families: &[&'static Family]| {
        resolve(families, "", json!({ "model_type": "acme", "hidden_size": 64 }))
    };
    let one = leak(choosy("one", |_| Ok(true)));
    let two = leak(choosy("two", |_| Ok(true)));
    let other = leak(choosy("other", |_| Ok(false)));
    // One without a condition stands back.
    assert_eq!(found(&[one, other, leak(family())]), "one by one, no artifact");
    let told = found(&[one, other, two, leak(family())]);
    assert!(told.contains("both one and two take this model"), "{told}");
    // A graph for one configuration is meant where that is the model's.
    let mut pinned = choosy("pinned", |_| Ok(true));
    pinned.profile.implementation = "acme-64-generated";
    pinned.profile.specialization = Specialization::Generated;
    assert!(found(&[one, leak(pinned)]).contains(" by acme-64-generated"));
}

#[test]
fn chats_fall_back_to_the_profile_only_without_a_template() {
    let mut family = family();
    family.chat.fallback = Some("fallback:{{ messages[0].content }}:{{ enable_thinking }}<think>");
    family.chat.thinking = Some("think-tag");
    let profile = Profile::of_family(&family);
    let folder = tempfile::tempdir().unwrap();
    let options = |disable_thinking| specc_text::TemplateOptions {
        disable_thinking,
        ..specc_text::TemplateOptions::default()
    };
    let variables =
        json!({ "messages": [{ "role": "user", "content": "hi" }], "enable_thinking": true });
    let variables = variables.as_object().unwrap();
    let template = load_model_chat_template(folder.path(), &profile, options(false)).unwrap();
    assert_eq!(template.render(variables).unwrap(), "fallback:hi:True<think>");
    assert_eq!(template.thinking_format(), specc_text::ThinkingFormat::ThinkTag);
    let template = load_model_chat_template(folder.path(), &profile, options(true)).unwrap();
    assert_eq!(template.render(variables).unwrap(), "fallback:hi:False<think>");
    assert_eq!(template.thinking_format(), specc_text::ThinkingFormat::None);
    std::fs::write(folder.path().join("chat_template.jinja"), "own:{{ messages[0].content }}")
        .unwrap();
    let template = load_model_chat_template(folder.path(), &profile, options(false)).unwrap();
    assert_eq!(template.render(variables).unwrap(), "own:hi");
    // Without either there is none.
    let bare = Profile::of_family(&crate::testing::family());
    let empty = tempfile::tempdir().unwrap();
    let error = load_model_chat_template(empty.path(), &bare, options(false)).unwrap_err();
    assert!(error.to_string().contains("no chat template found"), "{error}");
}
