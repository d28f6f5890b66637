//! The generated Rust: pinned for the first family, the same bytes each time, for every family.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use specc::compile::{check, generate, specialise};
use specc::library::Library;
use specc::manifest::Manifest;
use specc::model::pick;
use specc::source::FileId;
use specc_checkpoint::config::ConfigFile;

fn module(library: &Library, family: &str) -> String {
    let checked = check(library, family).unwrap_or_else(|problems| {
        let messages: Vec<_> = problems.iter().map(|problem| &problem.message).collect();
        panic!("{family}: {messages:?}")
    });
    generate(library, &checked).unwrap()
}

#[test]
fn the_first_family_reads_as_if_written_by_hand() {
    insta::assert_snapshot!("llama", module(&Library::builtin(), "llama"));
}

/// The configs of the parity cases.
fn configs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/parity");
    let folders = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut configs: Vec<PathBuf> = folders
        .map(|folder| folder.join("config.json"))
        .filter(|config| config.is_file())
        .collect();
    configs.sort();
    configs
}

/// Specialises the families that take configs.
struct Specialiser {
    library: Library,
    manifests: BTreeMap<String, Manifest>,
    at: FileId,
}

impl Specialiser {
    fn new() -> Self {
        let mut library = Library::builtin();
        let at = library.sources.add("config.json", "");
        let names: Vec<String> = library.families().map(str::to_owned).collect();
        let load = |name: String| {
            let manifest = library.load_family(&name).unwrap().0;
            (name, manifest)
        };
        let manifests = names.into_iter().map(load).collect();
        Self { library, manifests, at }
    }

    /// The family of a config, specialised to it.
    fn code(&self, path: &Path) -> String {
        let config = ConfigFile::read(path).unwrap();
        let taken = pick(&self.manifests, &config, self.at);
        let family = taken.unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
        let checked = specialise(&self.library, &family.family.name.node, &config);
        let checked = checked.unwrap_or_else(|problems| {
            let messages: Vec<_> = problems.iter().map(|problem| &problem.message).collect();
            panic!("{}: {messages:?}", path.display())
        });
        generate(&self.library, &checked).unwrap()
    }
}

#[test]
fn a_specialised_family_reads_as_if_written_by_hand() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/parity");
    let specialiser = Specialiser::new();
    for case in ["llama", "gemma4_text-e"] {
        let code = specialiser.code(&fixtures.join(case).join("config.json"));
        insta::assert_snapshot!(format!("specialised-{case}"), code);
    }
}

#[test]
fn every_config_of_the_parity_cases_has_a_specialised_graph() {
    let specialiser = Specialiser::new();
    let configs = configs();
    assert!(configs.len() >= 80, "only {}", configs.len());
    for config in configs {
        let code = specialiser.code(&config);
        // What the config says stands in the code and is not asked for again.
        for asked in ["r.required", "r.get", "cfg.num_", "cfg.hidden_size", "one_word("] {
            assert!(!code.contains(asked), "{}: {asked}\n{code}", config.display());
        }
        if let Some(folder) = std::env::var_os("SPECC_WRITE_SPECIALISED") {
            let case = config.parent().unwrap().file_name().unwrap().to_str().unwrap();
            let name = format!("{}.rs", specc::ir::names::variable(case));
            std::fs::write(Path::new(&folder).join(name), code).unwrap();
        }
    }
}

#[test]
fn every_family_compiles_to_the_same_bytes_twice() {
    let (first, second) = (Library::builtin(), Library::builtin());
    let names: Vec<&str> = first.families().collect();
    assert!(names.len() >= 30, "only {names:?}");
    for name in names {
        assert_eq!(module(&first, name), module(&second, name), "{name}");
    }
}
