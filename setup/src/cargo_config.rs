//! Writes the cargo override into a project's `.cargo/config.toml`, among whatever else the file holds.

use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value, value};

use crate::Error;
use crate::cache::write_atomically;

const NOTE: &str = "# Written by specc-setup; paths of this machine. Remove the table to undo.\n";
const NEW_DTAGS: &str = "-Clink-arg=-Wl,--enable-new-dtags";
const XLINKER: &str = "-Clink-arg=-Xlinker";
const RPATH: &str = "-Clink-arg=-rpath=";
/// The folder of libmlx.so ends so in every cache entry.
const LIB: &str = "/mlx/lib";

/// What a project needs to know about the prepared MLX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Override {
    /// The host triple.
    pub(crate) host: String,
    /// The folder that holds `bindings.rs` and `lib/libmlxc.a`.
    pub(crate) mlxc: String,
    /// The folder of `libmlx.so`, which the binary remembers as its RUNPATH.
    pub(crate) lib: String,
    /// Let libmlx.so need libraries that are absent while linking.
    pub(crate) undefined: bool,
}

/// Where cargo applies flags from: one place wins, so ours must join the one in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// `[target.<host>]`
    Target,
    /// `[build]`
    Build,
}

/// The config file of `dir`: cargo prefers the old name where both exist.
pub(crate) fn path(dir: &Path) -> PathBuf {
    let old = dir.join(".cargo/config");
    if old.is_file() { old } else { dir.join(".cargo/config.toml") }
}

/// What writing the config file came to.
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    /// The keys that changed; nothing was written when none did.
    pub(crate) changed: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// Merges the override into the config file of `dir`. A file that held another override of mlx-sys is kept beside
/// it.
pub(crate) fn write(dir: &Path, wanted: &Override) -> Result<Written, Error> {
    let path = path(dir);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Error::io(&path, "read")(e)),
    };
    let mut document = parse(&path, &text)?;
    let others = other_configs(dir, &path);
    let foreign = has_foreign_override(&document, &wanted.host);
    let changed = merge(&path, &mut document, wanted, &others)?;
    let mut notes = Vec::new();
    if !changed.is_empty() {
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).map_err(Error::io(folder, "create"))?;
        if foreign {
            let kept = path.with_file_name("config.toml.before-specc");
            fs::copy(&path, &kept).map_err(Error::io(&kept, "write"))?;
            notes.push(format!(
                "another override of mlx-sys was replaced; the old file is kept as {}",
                kept.display()
            ));
        }
        write_atomically(&path, &document.to_string())?;
        if !is_ignored(&path) {
            notes.push(format!(
                "{} holds paths of this machine: keep it out of git",
                path.display()
            ));
        }
    }
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS"] {
        // An empty value is how a caller builds one command without any flags.
        if std::env::var_os(name).is_some_and(|v| !v.is_empty()) {
            notes.push(format!(
                "{name} is set, so cargo ignores the flags in {}: a program will not find libmlx.so unless \
                 LD_LIBRARY_PATH names {}",
                path.display(),
                wanted.lib
            ));
        }
    }
    Ok(Written { path, changed, notes })
}

/// Whether git ignores `path`; true outside a repository.
fn is_ignored(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let check = std::process::Command::new("git")
        .args(["check-ignore", "-q"])
        .arg(path)
        .current_dir(folder)
        .stderr(std::process::Stdio::null())
        .status();
    // 1 is "not ignored"; anything else says that there is no repository, or no git.
    !check.is_ok_and(|status| status.code() == Some(1))
}

/// Whether an override of mlx-sys stands there that this program did not write.
fn has_foreign_override(document: &DocumentMut, host: &str) -> bool {
    let Some(old) = document.get("target").and_then(|t| t.get(host)).and_then(|t| t.get("mlx"))
    else {
        return false;
    };
    let folder = old.get("rustc-env").and_then(|e| e.get("OUT_DIR")).and_then(Item::as_str);
    let ours = folder.and_then(|f| Path::new(f).file_name()?.to_str()?.strip_prefix("mlxc-"));
    ours.is_none()
}

fn parse(path: &Path, text: &str) -> Result<DocumentMut, Error> {
    text.parse().map_err(|e: toml_edit::TomlError| Error::Content {
        path: path.to_owned(),
        expected: "TOML".into(),
        found: e.to_string().trim().replace('\n', " "),
    })
}

/// The other config files that cargo reads for `dir`: those of the folders above it, and cargo's home.
fn other_configs(dir: &Path, own: &Path) -> Vec<DocumentMut> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let mut paths: Vec<PathBuf> = dir.ancestors().skip(1).map(path).collect();
    paths.extend(home.map(|home| home.join("config.toml")));
    paths.sort();
    paths.dedup();
    paths
        .iter()
        .filter(|p| p.as_path() != own)
        .filter_map(|p| fs::read_to_string(p).ok()?.parse().ok())
        .collect()
}

/// Cargo reads `target.*.<key>` and ignores `build.<key>` where both exist; so ours goes where one is already.
fn place(documents: &[&DocumentMut], key: &str) -> Place {
    let in_target = documents.iter().any(|d| {
        d.get("target").and_then(Item::as_table_like).is_some_and(|targets| {
            targets.iter().any(|(_, t)| {
                t.as_table_like().and_then(|t| t.get(key)).is_some_and(|flags| !only_ours(flags))
            })
        })
    });
    let in_build = documents
        .iter()
        .any(|d| d.get("build").and_then(|b| b.get(key)).is_some_and(|flags| !only_ours(flags)));
    if in_build && !in_target { Place::Build } else { Place::Target }
}

fn only_ours(flags: &Item) -> bool {
    flags.as_array().is_some_and(|array| {
        let flags: Vec<&str> = array.iter().filter_map(Value::as_str).collect();
        without_ours(&flags).is_empty() && flags.len() == array.len()
    })
}

/// Changes `document` so that it holds `wanted`; the names of the changed keys.
pub(crate) fn merge(
    path: &Path,
    document: &mut DocumentMut,
    wanted: &Override,
    others: &[DocumentMut],
) -> Result<Vec<String>, Error> {
    let mut changed = Vec::new();
    let host = wanted.host.as_str();
    for key in ["rustflags", "rustdocflags"] {
        let mut all: Vec<&DocumentMut> = others.iter().collect();
        all.push(document);
        let place = place(&all, key);
        for (tables, here) in
            [(vec!["target", host], place == Place::Target), (vec!["build"], place == Place::Build)]
        {
            let at = |document: &DocumentMut| {
                let table = tables.iter().try_fold(document.as_item(), |item, name| item.get(name));
                table.and_then(|table| table.get(key)).cloned()
            };
            // Cargo joins the lists of all files: a folder above may give the flags already.
            let above = others.iter().filter_map(at).any(|flags| holds_ours(&flags, wanted));
            let here = here && !above;
            if !here && at(document).is_none() {
                continue;
            }
            let table = sub_table(path, document, &tables)?;
            if set_flags(path, table, key, wanted, here)? {
                changed.push(format!("{}.{key}", tables.join(".")));
            }
        }
    }

    let new = override_table(wanted);
    let is_new = |document: &DocumentMut| {
        let old = document.get("target").and_then(|t| t.get(host)).and_then(|t| t.get("mlx"));
        old.map(|old| same_values(old, &Item::Table(new.clone())))
    };
    let above = others.iter().any(|other| is_new(other) == Some(true));
    match (above, is_new(document)) {
        (true, None) | (false, Some(true)) => {}
        (true, Some(_)) => {
            sub_table(path, document, &["target", host])?.remove("mlx");
            changed.push(format!("target.{host}.mlx"));
        }
        (false, _) => {
            sub_table(path, document, &["target", host])?.insert("mlx", Item::Table(new.clone()));
            changed.push(format!("target.{host}.mlx"));
        }
    }
    Ok(changed)
}

/// Whether a list of flags ends in ours.
fn holds_ours(flags: &Item, wanted: &Override) -> bool {
    let flags: Vec<&str> =
        flags.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let ours = our_flags(wanted);
    flags.windows(ours.len()).any(|some| some.iter().zip(&ours).all(|(a, b)| a == b))
}

fn override_table(wanted: &Override) -> Table {
    let list = |items: &[String]| value(items.iter().collect::<Array>());
    let mut table = Table::new();
    table.decor_mut().set_prefix(format!("\n{NOTE}"));
    table.insert(
        "rustc-link-search",
        list(&[format!("native={}/lib", wanted.mlxc), format!("native={}", wanted.lib)]),
    );
    let libraries = ["static=mlxc", "dylib=mlx", "dylib=stdc++"];
    table.insert("rustc-link-lib", list(&libraries.map(str::to_owned)));
    let mut env = toml_edit::InlineTable::new();
    env.insert("OUT_DIR", wanted.mlxc.as_str().into());
    table.insert("rustc-env", value(env));
    table
}

/// Equal but for layout and comments.
fn same_values(a: &Item, b: &Item) -> bool {
    match (a.as_table_like(), b.as_table_like()) {
        (Some(a), Some(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, item)| b.get(key).is_some_and(|other| same_values(item, other)))
        }
        (None, None) => match (a.as_array(), b.as_array()) {
            (Some(a), Some(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.as_str() == b.as_str())
            }
            _ => a.as_str().is_some() && a.as_str() == b.as_str(),
        },
        _ => false,
    }
}

/// The table under `names`, created where absent.
fn sub_table<'a>(
    path: &Path,
    document: &'a mut DocumentMut,
    names: &[&str],
) -> Result<&'a mut dyn TableLike, Error> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut full = String::new();
    for name in names {
        full = if full.is_empty() { (*name).to_owned() } else { format!("{full}.{name}") };
        let item = table.entry(name).or_insert_with(|| {
            let mut new = Table::new();
            new.set_implicit(true);
            Item::Table(new)
        });
        let kind = item.type_name();
        table = item.as_table_like_mut().ok_or_else(|| Error::Content {
            path: path.to_owned(),
            expected: format!("a table `{full}`"),
            found: kind.to_owned(),
        })?;
    }
    Ok(table)
}

/// Makes `table.key` hold the user's flags and, if `with_ours`, ours; whether that changed anything.
fn set_flags(
    path: &Path,
    table: &mut dyn TableLike,
    key: &str,
    wanted: &Override,
    with_ours: bool,
) -> Result<bool, Error> {
    let wrong = |found: &str| Error::Content {
        path: path.to_owned(),
        expected: format!("`{key}` as a string or a list of strings"),
        found: found.to_owned(),
    };
    let old: Vec<String> = match table.get(key) {
        None => Vec::new(),
        Some(item) => match (item.as_str(), item.as_array()) {
            (Some(text), _) => text.split_whitespace().map(str::to_owned).collect(),
            (None, Some(array)) => array
                .iter()
                .map(|v| v.as_str().map(str::to_owned).ok_or_else(|| wrong(v.type_name())))
                .collect::<Result<_, _>>()?,
            (None, None) => return Err(wrong(item.type_name())),
        },
    };
    let refs: Vec<&str> = old.iter().map(String::as_str).collect();
    let mut new = without_ours(&refs);
    if with_ours {
        new.extend(our_flags(wanted));
    }
    if new == old {
        return Ok(false);
    }
    if new.is_empty() {
        table.remove(key);
    } else {
        table.insert(key, value(new.iter().collect::<Array>()));
    }
    Ok(true)
}

/// RUNPATH rather than RPATH, so that LD_LIBRARY_PATH can name another build of MLX. `-Xlinker` takes a path with
/// commas or spaces as it is.
fn our_flags(wanted: &Override) -> Vec<String> {
    let mut flags: Vec<String> = [NEW_DTAGS, XLINKER].into_iter().map(str::to_owned).collect();
    flags.push(format!("{RPATH}{}", wanted.lib));
    if wanted.undefined {
        flags.push(UNDEFINED.to_owned());
    }
    flags
}

const UNDEFINED: &str = "-Clink-arg=-Wl,--allow-shlib-undefined";

/// `flags` without those that an earlier run wrote.
fn without_ours(flags: &[&str]) -> Vec<String> {
    let mut rest = flags;
    let mut kept = Vec::new();
    while let [first, tail @ ..] = rest {
        rest = match rest {
            [NEW_DTAGS, XLINKER, path, UNDEFINED, after @ ..] if is_our_path(path) => after,
            [NEW_DTAGS, XLINKER, path, after @ ..] if is_our_path(path) => after,
            _ => {
                kept.push((*first).to_owned());
                tail
            }
        };
    }
    kept
}

fn is_our_path(flag: &str) -> bool {
    flag.starts_with(RPATH) && flag.ends_with(LIB)
}

#[cfg(test)]
mod tests;
