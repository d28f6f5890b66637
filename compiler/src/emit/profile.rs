//! What the record of a family says of its graph and its profiles.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::Emitter;
use super::scalar::Place;
use super::sections::{option, texts, words};
use crate::declare::declare;
use crate::ir::ScalarType;
use crate::manifest::capabilities::SPECULATION;
use crate::manifest::profile::Generated;
use crate::manifest::{Claim, Fidelity, FidelityTier};

impl Emitter<'_> {
    /// The graph's declaration, as what differs from an ordinary one.
    pub(super) fn declaration(&self, method: &str) -> String {
        let (declared, _) = declare(self.manifest, self.program);
        let mut fields = String::new();
        if method != "Autoregressive" {
            let _ = write!(fields, "method: Method::{method}, ");
        }
        if declared.sparse_attention {
            fields.push_str("sparse_attention: true, ");
        }
        if declared.bounded_workspace {
            fields.push_str("prefill: PrefillDeclaration { bounded_workspace: true }, ");
        }
        if declared.speculation == [false; 4] {
            fields.push_str("speculation: ORDINARY_VERIFICATION, ");
        } else if declared.speculation != [true; 4] {
            let words = SPECULATION.iter().zip(declared.speculation);
            let words: Vec<String> = words.map(|(word, yes)| format!("{word}: {yes}")).collect();
            let _ =
                write!(fields, "speculation: SpeculationDeclaration {{ {} }}, ", words.join(", "));
        }
        if fields.is_empty() {
            return "GraphDeclaration::ORDINARY".to_owned();
        }
        format!("GraphDeclaration {{ {fields}..GraphDeclaration::ORDINARY }}")
    }

    /// What the family says of its profiles.
    pub(super) fn profile(&self) -> String {
        let manifest = self.manifest;
        let specialization = match (&manifest.pinned, manifest.family.generic) {
            (Some(_), _) => "Generated",
            (None, true) => "Generic",
            (None, false) => "Dedicated",
        };
        let said = &manifest.profile;
        let list = |items: &[crate::source::Spanned<String>]| {
            words(&items.iter().map(|item| item.node.clone()).collect::<Vec<_>>())
        };
        let mut fields = format!(
            "specialization: Specialization::{specialization}, fidelity: {}, capabilities: {}, ",
            fidelity(&manifest.family.fidelity),
            words(&manifest.engine_capabilities())
        );
        if let Some(id) = &said.implements {
            let _ = write!(fields, "implementation: {:?}, ", id.node);
        }
        let empty = Table::new();
        let chat = self.section("chat").unwrap_or(&empty);
        let thinking = chat.get("enable_thinking").and_then(Value::as_bool);
        let cap = match chat.get("no_think_temperature_cap") {
            Some(Value::Float(cap)) => Some(*cap),
            Some(Value::Integer(cap)) => Some(*cap as f64),
            _ => None,
        };
        if thinking.is_some() || cap.is_some() {
            let rest = if thinking.is_some() && cap.is_some() {
                ""
            } else {
                "..GenerationDefaults::UNSAID"
            };
            let cap = cap.map(|cap| format!("no_think_temperature_cap: {cap:?}, "));
            let thinking = thinking.map(|yes| format!("enable_thinking: Some({yes}), "));
            let _ = write!(
                fields,
                "generation: GenerationDefaults {{ {}{}{rest} }}, ",
                thinking.unwrap_or_default(),
                cap.unwrap_or_default()
            );
        }
        if let Some(Generated { id, fingerprints }) = &said.generated {
            let default = format!("{}-generated", manifest.graph_name());
            let id = id.as_ref().map_or(default, |id| id.node.clone());
            let _ = write!(
                fields,
                "generated: Some(GeneratedProfile {{ id: {id:?}, fingerprints: {} }}), ",
                list(fingerprints)
            );
        }
        if !said.artifacts.is_empty() {
            let mut all = String::new();
            for artifact in &said.artifacts {
                let own = artifact.fidelity.as_ref().map(|(tier, oracle)| {
                    let claim = match tier {
                        FidelityTier::L1 | FidelityTier::L2 => Claim::BitExact,
                        FidelityTier::L3 => Claim::Measured,
                    };
                    fidelity(&Fidelity { tier: *tier, oracle: oracle.clone(), claim })
                });
                let text = |said: &Option<crate::source::Spanned<String>>| {
                    option(said.as_ref().map(|said| said.node.as_str()))
                };
                let _ = write!(
                    all,
                    "ArtifactProfile {{ id: {:?}, artifact: {:?}, fingerprint: {:?}, fidelity: {}, capabilities: {}, implementation: {}, composition: {} }}, ",
                    artifact.id.node,
                    artifact.artifact.node,
                    artifact.fingerprint.node,
                    own.map_or_else(|| "None".to_owned(), |own| format!("Some({own})")),
                    list(&artifact.capabilities),
                    text(&artifact.implementation),
                    text(&artifact.composition)
                );
            }
            let _ = write!(fields, "artifacts: &[{all}], ");
        }
        fields.push_str(&self.sizing());
        // A graph for one config stands beside that for every config.
        let (graph, id) = match &manifest.pinned {
            Some(_) => (self.record_name(), format!("{}-generated", self.record_name())),
            None => (manifest.graph_name(), manifest.profile_id()),
        };
        format!("FamilyProfile {{ {fields}..FamilyProfile::new({graph:?}, {id:?}) }}")
    }

    /// What `[capabilities]` says beside the declaration.
    fn sizing(&self) -> String {
        let mut fields = String::new();
        let number = |key: &str| {
            let expr = self.section_expr("capabilities", key)?;
            Some(self.scalars.converted(expr, &ScalarType::Int, Place::Load))
        };
        if let (Some(count), Some(chosen)) = (number("experts.count"), number("experts.chosen")) {
            let when = match self.section_expr("capabilities", "experts.when") {
                Some(expr) => self.scalars.truth(expr, Place::Load),
                None => format!("{count} > 0"),
            };
            let _ = write!(
                fields,
                "experts: Some(|source| {{ let cfg = Config::read(source)?; Ok(if {when} {{ Some(ExpertCounts {{ count: {count}, chosen: {chosen} }}) }} else {{ None }}) }}), "
            );
        }
        if let Some(length) = number("training.max_sequence_length") {
            let _ = match length.reads_config {
                true => write!(
                    fields,
                    "training_length: |source| {{ let cfg = Config::read(source)?; Ok({length}) }}, "
                ),
                false => write!(fields, "training_length: |_| Ok({length}), "),
            };
        }
        let empty = Table::new();
        let table = self.section("capabilities").unwrap_or(&empty);
        let sentinels = texts(table.get("sentinels"));
        if !sentinels.is_empty() {
            let _ = write!(fields, "sentinels: {}, ", words(&sentinels));
        }
        if let Some(media) = table.get("media_tokens").and_then(Value::as_table) {
            let list = |name: &str| words(&texts(media.get(name)));
            let _ = write!(
                fields,
                "media_tokens: MediaTokens {{ image: {}, audio: {}, video: {} }}, ",
                list("image"),
                list("audio"),
                list("video")
            );
        }
        fields
    }
}

fn fidelity(said: &Fidelity) -> String {
    format!(
        "Fidelity {{ tier: FidelityTier::{}, oracle: {}, claim: Claim::{} }}",
        said.tier.rust(),
        option(said.oracle.as_deref()),
        said.claim.rust()
    )
}
