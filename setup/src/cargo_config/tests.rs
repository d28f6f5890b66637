use super::*;

const HOST: &str = "x86_64-unknown-linux-gnu";

fn wanted() -> Override {
    Override {
        host: HOST.to_owned(),
        mlxc: "/cache/mlxc-1".to_owned(),
        lib: "/cache/mlx-cpu-1/mlx/lib".to_owned(),
        undefined: false,
    }
}

/// The merged text and the changed keys; `others` are configs of folders above.
fn merged(text: &str, wanted: &Override, others: &[&str]) -> Result<(String, Vec<String>), String> {
    let path = Path::new("config.toml");
    let mut document = parse(path, text).map_err(|e| e.to_string())?;
    let others: Vec<DocumentMut> = others.iter().map(|o| o.parse().unwrap()).collect();
    let changed = merge(path, &mut document, wanted, &others).map_err(|e| e.to_string())?;
    Ok((document.to_string(), changed))
}

#[test]
fn an_empty_file_gets_the_override() {
    let (text, changed) = merged("", &wanted(), &[]).unwrap();
    insta::assert_snapshot!(text, @r#"
[target.x86_64-unknown-linux-gnu]
rustflags = ["-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]
rustdocflags = ["-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]

# Written by specc-setup; paths of this machine. Remove the table to undo.
[target.x86_64-unknown-linux-gnu.mlx]
rustc-link-search = ["native=/cache/mlxc-1/lib", "native=/cache/mlx-cpu-1/mlx/lib"]
rustc-link-lib = ["static=mlxc", "dylib=mlx", "dylib=stdc++"]
rustc-env = { OUT_DIR = "/cache/mlxc-1" }
"#);
    insta::assert_snapshot!(changed.join(" "), @"target.x86_64-unknown-linux-gnu.rustflags target.x86_64-unknown-linux-gnu.rustdocflags target.x86_64-unknown-linux-gnu.mlx");
}

#[test]
fn what_the_user_wrote_stays() {
    let user = "# mine\n[build]\njobs = 3 # few\n\n[target.x86_64-unknown-linux-gnu]\nlinker = \"clang\"\n\
                rustflags = \"-C target-cpu=native\"\n\n[alias]\nb = \"build\"\n";
    let (text, changed) = merged(user, &wanted(), &[]).unwrap();
    insta::assert_snapshot!(text, @r#"
# mine
[build]
jobs = 3 # few

[target.x86_64-unknown-linux-gnu]
linker = "clang"
rustflags = ["-C", "target-cpu=native", "-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]
rustdocflags = ["-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]

# Written by specc-setup; paths of this machine. Remove the table to undo.
[target.x86_64-unknown-linux-gnu.mlx]
rustc-link-search = ["native=/cache/mlxc-1/lib", "native=/cache/mlx-cpu-1/mlx/lib"]
rustc-link-lib = ["static=mlxc", "dylib=mlx", "dylib=stdc++"]
rustc-env = { OUT_DIR = "/cache/mlxc-1" }

[alias]
b = "build"
"#);
    insta::assert_snapshot!(changed.join(" "), @"target.x86_64-unknown-linux-gnu.rustflags target.x86_64-unknown-linux-gnu.rustdocflags target.x86_64-unknown-linux-gnu.mlx");
}

#[test]
fn a_folder_below_one_that_is_set_up_needs_nothing() {
    let (above, _) = merged("", &wanted(), &[]).unwrap();
    assert_eq!(merged("", &wanted(), &[&above]).unwrap(), (String::new(), Vec::new()));
    // What an earlier run wrote here as well goes away: cargo would join both.
    let (text, changed) = merged(&above, &wanted(), &[&above]).unwrap();
    assert!(!text.contains("rustc-link-search") && !text.contains("rpath"), "{text}");
    assert_eq!(changed.len(), 3, "{changed:?}");
    // Another build above is not what is wanted here.
    let other = Override { mlxc: "/other".to_owned(), ..wanted() };
    let (above, _) = merged("", &other, &[]).unwrap();
    let (text, _) = merged("", &wanted(), &[&above]).unwrap();
    assert!(text.contains("rustc-link-search"), "{text}");
}

#[test]
fn a_second_run_changes_nothing() {
    let (text, _) = merged("[env]\nA = \"b\"\n", &wanted(), &[]).unwrap();
    assert_eq!(merged(&text, &wanted(), &[]), Ok((text.clone(), Vec::new())));
}

#[test]
fn a_new_version_replaces_the_old_paths_and_nothing_else() {
    let mut old = wanted();
    old.undefined = true;
    old.lib = "/other cache, with a comma/mlx-cuda-13-0/mlx/lib".to_owned();
    let user =
        "[target.x86_64-unknown-linux-gnu]\nrustflags = [\"-Copt\", \"-Clink-arg=-Xlinker\"]\n";
    let (before, _) = merged(user, &old, &[]).unwrap();
    assert!(before.contains("with a comma") && before.contains("allow-shlib-undefined"));
    let (after, changed) = merged(&before, &wanted(), &[]).unwrap();
    assert_eq!(after, merged(user, &wanted(), &[]).unwrap().0);
    assert_eq!(changed.len(), 3);
}

#[test]
fn flags_join_the_place_that_cargo_reads() {
    // `build.rustflags` would be ignored beside `target.*.rustflags`.
    let user = "[build]\nrustflags = [\"-Cdebuginfo=0\"]\n";
    let (text, changed) = merged(user, &wanted(), &[]).unwrap();
    insta::assert_snapshot!(text, @r#"
[build]
rustflags = ["-Cdebuginfo=0", "-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]

[target.x86_64-unknown-linux-gnu]
rustdocflags = ["-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]

# Written by specc-setup; paths of this machine. Remove the table to undo.
[target.x86_64-unknown-linux-gnu.mlx]
rustc-link-search = ["native=/cache/mlxc-1/lib", "native=/cache/mlx-cpu-1/mlx/lib"]
rustc-link-lib = ["static=mlxc", "dylib=mlx", "dylib=stdc++"]
rustc-env = { OUT_DIR = "/cache/mlxc-1" }
"#);
    insta::assert_snapshot!(changed.join(" "), @"build.rustflags target.x86_64-unknown-linux-gnu.rustdocflags target.x86_64-unknown-linux-gnu.mlx");
    // The same where a folder above holds it.
    let (text, _) = merged("", &wanted(), &[user]).unwrap();
    insta::assert_snapshot!(text, @r#"
[build]
rustflags = ["-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]

[target.x86_64-unknown-linux-gnu]
rustdocflags = ["-Clink-arg=-Wl,--enable-new-dtags", "-Clink-arg=-Xlinker", "-Clink-arg=-rpath=/cache/mlx-cpu-1/mlx/lib"]

# Written by specc-setup; paths of this machine. Remove the table to undo.
[target.x86_64-unknown-linux-gnu.mlx]
rustc-link-search = ["native=/cache/mlxc-1/lib", "native=/cache/mlx-cpu-1/mlx/lib"]
rustc-link-lib = ["static=mlxc", "dylib=mlx", "dylib=stdc++"]
rustc-env = { OUT_DIR = "/cache/mlxc-1" }
"#);
    // Flags of a target win over both.
    let target = "[target.'cfg(unix)']\nrustflags = [\"-Cdebuginfo=0\"]\n";
    let (text, changed) = merged(user, &wanted(), &[target]).unwrap();
    assert!(text.starts_with(user), "{text}");
    assert_eq!(
        changed.first().map(String::as_str),
        Some("target.x86_64-unknown-linux-gnu.rustflags")
    );
}

#[test]
fn our_flags_move_when_the_user_adds_flags_elsewhere() {
    let (first, _) = merged("", &wanted(), &[]).unwrap();
    let user = format!("[build]\nrustflags = [\"-Cdebuginfo=0\"]\n{first}");
    let (text, changed) = merged(&user, &wanted(), &[]).unwrap();
    let document: DocumentMut = text.parse().unwrap();
    assert!(document["target"][HOST].get("rustflags").is_none(), "{text}");
    assert_eq!(document["build"]["rustflags"].as_array().map(Array::len), Some(4));
    assert_eq!(changed, ["target.x86_64-unknown-linux-gnu.rustflags", "build.rustflags"]);
}

#[test]
fn inline_and_dotted_tables_are_merged_too() {
    let user = "target.x86_64-unknown-linux-gnu.linker = \"clang\"\nbuild = { jobs = 2 }\n";
    let (text, _) = merged(user, &wanted(), &[]).unwrap();
    let document: DocumentMut = text.parse().unwrap();
    assert_eq!(document["target"][HOST]["linker"].as_str(), Some("clang"));
    assert!(document["target"][HOST]["mlx"].get("rustc-link-lib").is_some(), "{text}");
    let user = "target = { x86_64-unknown-linux-gnu = { linker = \"clang\" } }\n";
    let (text, _) = merged(user, &wanted(), &[]).unwrap();
    let document: DocumentMut = text.parse().unwrap();
    assert!(document["target"][HOST]["mlx"].get("rustc-link-lib").is_some(), "{text}");
}

#[test]
fn a_file_that_cargo_would_refuse_is_refused() {
    let refused = |text: &str| merged(text, &wanted(), &[]).unwrap_err();
    insta::assert_snapshot!(refused("target = 3\n"), @"config.toml: expected a table `target`, found integer");
    insta::assert_snapshot!(refused("[target]\nx86_64-unknown-linux-gnu = []\n"), @"config.toml: expected a table `target.x86_64-unknown-linux-gnu`, found array");
    insta::assert_snapshot!(refused("[target.x86_64-unknown-linux-gnu]\nrustflags = [1]\n"), @"config.toml: expected `rustflags` as a string or a list of strings, found integer");
    insta::assert_snapshot!(refused("[target.x86_64-unknown-linux-gnu]\nrustflags = true\n"), @"config.toml: expected `rustflags` as a string or a list of strings, found boolean");
    insta::assert_snapshot!(refused("[target\n"), @"config.toml: expected TOML, found TOML parse error at line 1, column 8   | 1 | [target   |        ^ unclosed table, expected `]`");
}

#[test]
fn another_override_is_kept_beside_the_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(".cargo");
    fs::create_dir(&folder).unwrap();
    let foreign = format!("[target.{HOST}.mlx]\nrustc-link-lib = [\"mine\"]\n");
    fs::write(folder.join("config.toml"), &foreign).unwrap();
    let written = write(dir.path(), &wanted()).unwrap();
    assert_eq!(written.changed.len(), 3);
    assert!(written.notes[0].starts_with("another override of mlx-sys was replaced"));
    assert_eq!(fs::read_to_string(folder.join("config.toml.before-specc")).unwrap(), foreign);

    // Our own is replaced in silence, and nothing is left beside the file.
    fs::remove_file(folder.join("config.toml.before-specc")).unwrap();
    let newer = Override { mlxc: "/cache/mlxc-2".into(), ..wanted() };
    let written = write(dir.path(), &newer).unwrap();
    assert_eq!(written.changed, [format!("target.{HOST}.mlx")]);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    assert!(write(dir.path(), &newer).unwrap().changed.is_empty());
}

#[test]
fn the_older_file_name_is_used_where_it_stands() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(".cargo")).unwrap();
    fs::write(dir.path().join(".cargo/config"), "[build]\njobs = 1\n").unwrap();
    let written = write(dir.path(), &wanted()).unwrap();
    assert_eq!(written.path, dir.path().join(".cargo/config"));
    assert!(!dir.path().join(".cargo/config.toml").exists());
}

proptest::proptest! {
    #[test]
    fn any_flags_survive_and_ours_come_once(
        flags in proptest::collection::vec("[ -~]{0,12}|-Clink-arg=-Xlinker|-Clink-arg=-Wl,--enable-new-dtags", 0..6)
    ) {
        let array: Array = flags.iter().collect();
        let user = format!("[target.{HOST}]\nrustflags = {array}\n");
        let (once, _) = merged(&user, &wanted(), &[]).unwrap();
        let (twice, changed) = merged(&once, &wanted(), &[]).unwrap();
        proptest::prop_assert_eq!(&once, &twice);
        proptest::prop_assert!(changed.is_empty());
        let document: DocumentMut = once.parse().unwrap();
        let found: Vec<&str> =
            document["target"][HOST]["rustflags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let expected: Vec<String> = flags.iter().cloned().chain(our_flags(&wanted())).collect();
        proptest::prop_assert_eq!(found, expected);
    }
}
