//! The families of a program: which one takes a model, and by which profile.

use std::collections::BTreeMap;

use serde::Serialize;
use specc_checkpoint::config::config_fingerprint;

use super::validate::{engine_capabilities, validate_profile};
use super::{ArtifactProfile, Profile, ProfileError, artifact_of, loop_of};
use crate::family::{Family, Tier};
use crate::weights::ModelSource;
use crate::{Error, Result};

/// The families of a program: which takes a model, under which profile, run by which graph.
///
/// Targeted families are asked in the order in which they were given, then the generic one; so a
/// program's own families go before the built-in ones.
#[derive(Debug, Clone)]
pub struct Registry<'a> {
    families: &'a [&'static Family],
    implementations: BTreeMap<&'static str, &'static Family>,
}

/// The profile that a model is run under.
#[derive(Debug, Clone, Serialize)]
pub struct ResolvedProfile {
    /// The profile.
    #[serde(flatten)]
    pub profile: Profile,
    /// The family that it is of.
    #[serde(skip)]
    pub family: &'static Family,
    /// The artifact that the folder's path gives away.
    pub artifact: Option<String>,
    /// The configuration's fingerprint.
    pub config_fingerprint: String,
    /// The graph that runs it.
    pub implementation: String,
}

/// The family of a model: of those that answer to its type and accept it, a targeted one first.
///
/// # Errors
/// `config.json` has no `model_type`, or one that no family takes; the nearest known is named.
pub fn find_family(families: &[&'static Family], source: &ModelSource) -> Result<&'static Family> {
    Registry::new(families)?.find(source)
}

impl<'a> Registry<'a> {
    /// A registry of these families.
    ///
    /// # Errors
    /// Two have one name, one graph or one implementation; a second one is generic; a targeted one has
    /// no label or a generic one has one.
    pub fn new(families: &'a [&'static Family]) -> Result<Self> {
        let mut implementations = BTreeMap::new();
        let mut seen: Vec<&'static Family> = Vec::with_capacity(families.len());
        let wrong = |text: String| Err(ProfileError::Families(text).into());
        for family in families {
            let name = family.name;
            let said = &family.profile;
            if seen.iter().any(|other| other.name == name) {
                return wrong(format!("two are named {name}"));
            }
            if let Some(other) = seen.iter().find(|other| other.profile.graph == said.graph) {
                return wrong(format!("{} and {name} have one graph, {}", other.name, said.graph));
            }
            match (family.tier, family.label) {
                (Tier::Targeted, None) => {
                    return wrong(format!("{name} is targeted and has no label"));
                }
                (Tier::Generic, Some(_)) => {
                    return wrong(format!("{name} is generic and has a label"));
                }
                _ => {}
            }
            let generic = |f: &&&'static Family| f.tier == Tier::Generic;
            if let (Tier::Generic, Some(other)) = (family.tier, seen.iter().find(generic)) {
                return wrong(format!("{} and {name} are both generic", other.name));
            }
            let id = said.implementation;
            if let Some(other) = implementations.insert(id, *family) {
                let (first, second) = (other.name.to_owned(), name.to_owned());
                let id = id.to_owned();
                return Err(ProfileError::DuplicateImplementation { id, first, second }.into());
            }
            seen.push(*family);
        }
        Ok(Registry { families, implementations })
    }

    /// The family of a model: of those that answer to its type and accept it, a targeted one first.
    ///
    /// # Errors
    /// `config.json` has no `model_type`, or one that no family takes: the nearest known is named; or
    /// the conditions of two families hold.
    pub fn find(&self, source: &ModelSource) -> Result<&'static Family> {
        let Some(wanted) = source.config().model_type() else {
            let path = source.folder().join("config.json");
            return Err(Error::Unsupported(format!("{}: no `model_type`", path.display())));
        };
        let mut refused = Vec::new();
        let mut other_config = None;
        let mut taken: Option<&'static Family> = None;
        for tier in [Tier::Targeted, Tier::Generic] {
            for family in self.families.iter().filter(|f| f.tier == tier) {
                // Of those with a condition one at most takes a model; the others come after them.
                if !family.model_types.contains(&wanted) || (taken.is_some() && !family.conditional)
                {
                    continue;
                }
                match source.config().aside(|| family.takes(source)) {
                    // A graph for one configuration is nearer to it than any other.
                    Ok(true) if family.is_for_one_configuration() => return Ok(family),
                    Ok(true) => match taken {
                        Some(first) => return Err(both(first, family, source)),
                        None if family.conditional => taken = Some(family),
                        None => return Ok(family),
                    },
                    Ok(false) => refused.push(family.name),
                    // Another family may take what a graph for one configuration does not.
                    Err(error @ Error::OtherConfig(_)) => {
                        other_config.get_or_insert(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(family) = taken {
                return Ok(family);
            }
        }
        if let Some(error) = other_config.filter(|_| refused.is_empty()) {
            return Err(error);
        }
        let path = source.folder().join("config.json");
        let mut text = format!("{}: model_type {wanted:?} ", path.display());
        if refused.is_empty() {
            let known = self.model_types(|_| true);
            text.push_str("is not supported");
            if let Some(near) = nearest(wanted, &known) {
                text.push_str(&format!("; did you mean {near:?}?"));
            }
            let mut labels: Vec<&str> = self.families.iter().filter_map(|f| f.label).collect();
            labels.sort_unstable();
            let generic = self.model_types(|f| f.tier == Tier::Generic);
            if !labels.is_empty() {
                text.push_str(&format!("; supported are {}", labels.join(", ")));
            }
            if !generic.is_empty() {
                text.push_str(&format!("; and the model types {}", generic.join(", ")));
            }
        } else {
            text.push_str(&format!(
                "is known, but {} does not take this model",
                refused.join(", ")
            ));
        }
        Err(Error::Unsupported(text))
    }

    /// The profile of a model: that of the exact artifact, else a generated one, else the family's.
    ///
    /// # Errors
    /// No family takes the model; the artifact is pinned and something about it differs; the profile
    /// cannot be.
    pub fn resolve(&self, source: &ModelSource) -> Result<ResolvedProfile> {
        let artifact = artifact_of(source.folder());
        let fingerprint = config_fingerprint(source.config());
        let (family, profile) = match self.pinned(artifact.as_deref()) {
            Some((family, pinned)) => {
                check_artifact(family, pinned, source, &fingerprint)?;
                (family, Profile::artifact(family, pinned))
            }
            None => {
                let family = self.find(source)?;
                let generated = family.profile.generated.as_ref();
                let generated =
                    generated.filter(|g| g.fingerprints.contains(&fingerprint.as_str()));
                let profile = match generated {
                    Some(generated) => Profile::generated(family, generated),
                    None => Profile::of_family(family),
                };
                (family, profile)
            }
        };
        validate_profile(&profile, &engine_capabilities(self.families))?;
        // A record of a generated graph is an implementation under an id of its own.
        let implementation =
            match (profile.id == family.profile.id, &profile.execution.implementation) {
                (true, None) => family.profile.implementation.to_owned(),
                _ => profile.implementation_id(),
            };
        Ok(ResolvedProfile {
            profile,
            family,
            artifact,
            config_fingerprint: fingerprint,
            implementation,
        })
    }

    /// The record whose graph runs a profile.
    ///
    /// # Errors
    /// There is none, it runs another loop, or it does not take the model.
    pub fn implementation(
        &self,
        resolved: &ResolvedProfile,
        source: &ModelSource,
    ) -> Result<&'static Family> {
        let (id, profile) = (resolved.implementation.clone(), resolved.profile.id.clone());
        let Some(found) = self.implementations.get(id.as_str()).copied() else {
            return Err(ProfileError::UnavailableImplementation { id, profile }.into());
        };
        let run_loop = loop_of(found.method);
        let why = if run_loop != resolved.profile.run_loop {
            format!("it is {run_loop}, the profile {}", resolved.profile.run_loop)
        } else if !found.takes(source)? {
            "it does not take this configuration".to_owned()
        } else {
            return Ok(found);
        };
        Err(ProfileError::IncompatibleImplementation { id, profile, why }.into())
    }

    fn pinned(
        &self,
        artifact: Option<&str>,
    ) -> Option<(&'static Family, &'static ArtifactProfile)> {
        let artifact = artifact?;
        self.families.iter().find_map(|family| {
            let pinned = family.profile.artifacts.iter().find(|a| a.artifact == artifact)?;
            Some((*family, pinned))
        })
    }

    /// Sorted model types of some families.
    fn model_types(&self, of: impl Fn(&Family) -> bool) -> Vec<&'static str> {
        let families = self.families.iter().filter(|family| of(family));
        let mut types: Vec<&str> = families.flat_map(|f| f.model_types).copied().collect();
        types.sort_unstable();
        types.dedup();
        types
    }
}

/// What an exact artifact pins must hold.
fn check_artifact(
    family: &Family,
    pinned: &ArtifactProfile,
    source: &ModelSource,
    fingerprint: &str,
) -> Result<()> {
    let refuse = |why: String| {
        let (id, artifact) = (pinned.id.to_owned(), pinned.artifact.to_owned());
        Err(ProfileError::Artifact { id, artifact, why }.into())
    };
    if pinned.fingerprint != fingerprint {
        return refuse(format!(
            "expected the configuration {}, found {fingerprint}",
            pinned.fingerprint
        ));
    }
    let answers = source.config().model_type().is_some_and(|t| family.model_types.contains(&t));
    if !answers || !family.takes(source)? {
        return refuse(format!(
            "the graph {} does not take its configuration",
            family.profile.graph
        ));
    }
    Ok(())
}

/// Two families whose conditions one model meets.
fn both(first: &Family, second: &Family, source: &ModelSource) -> Error {
    let path = source.folder().join("config.json");
    Error::Unsupported(format!(
        "{}: both {} and {} take this model; their conditions must exclude each other",
        path.display(),
        first.name,
        second.name
    ))
}

/// The known word that is closest, where one is close.
fn nearest<'a>(wanted: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |word: &str| strsim::damerau_levenshtein(wanted, word);
    let best = known.iter().min_by_key(|word| distance(word))?;
    (distance(best) <= 1 + best.len() / 3).then_some(*best)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let known = ["acme", "acme_moe", "other"];
        assert_eq!(nearest("acme2", &known), Some("acme"));
        assert_eq!(nearest("acmemoe", &known), Some("acme_moe"));
        assert_eq!(nearest("zzzzzz", &known), None);
    }
}
