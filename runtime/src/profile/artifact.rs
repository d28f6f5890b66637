//! An artifact's name, from where its folder lies.

use std::path::{Component, Path};

/// The artifact that a model folder is, as `hf:REPOSITORY@REVISION`, where its path gives it away:
/// `models--OWNER--NAME/snapshots/REVISION` at its end, as hubs' caches have it.
pub fn artifact_of(folder: &Path) -> Option<String> {
    // A link to a snapshot is the snapshot; where nothing is at the path, its words count.
    of_words(folder).or_else(|| of_words(&std::fs::canonicalize(folder).ok()?))
}

fn of_words(folder: &Path) -> Option<String> {
    let words: Vec<&str> = folder
        .components()
        .filter_map(|part| match part {
            Component::Normal(word) => Some(word.to_str()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let [.., repository, "snapshots", revision] = words.as_slice() else { return None };
    let repository = repository.strip_prefix("models--")?.replace("--", "/");
    (!repository.is_empty()).then(|| format!("hf:{repository}@{revision}"))
}

#[cfg(test)]
mod tests {
    use super::artifact_of;

    #[test]
    fn snapshots_give_their_repository_and_revision_away() {
        let of = |path: &str| artifact_of(path.as_ref());
        let known = Some("hf:acme/tiny@0123abc".to_owned());
        assert_eq!(of("/hub/models--acme--tiny/snapshots/0123abc"), known);
        assert_eq!(of("hub/models--acme--tiny/snapshots/0123abc/"), known);
        assert_eq!(of("models--tiny/snapshots/1"), Some("hf:tiny@1".to_owned()));
        assert_eq!(of("/hub/models--acme--tiny/snapshots"), None);
        assert_eq!(of("/hub/acme/snapshots/0123abc"), None);
        assert_eq!(of("/hub/models--/snapshots/1"), None);
        assert_eq!(of("/models/tiny"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_snapshot_is_the_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = folder.path().join("models--acme--tiny/snapshots/7");
        std::fs::create_dir_all(&snapshot).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&snapshot, &link).unwrap();
        assert_eq!(artifact_of(&link), Some("hf:acme/tiny@7".to_owned()));
    }
}
