//! The cache: folders that are either whole or absent.
//!
//! An entry is made in a staging folder beside its place, listed file by file with sizes and SHA-256 sums, and
//! renamed into place. An entry whose list is missing, or whose files differ from it, counts as absent and is made
//! again. One lock lets one set-up write at a time.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use fd_lock::{RwLock, RwLockWriteGuard};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::progress::Progress;

const LIST: &str = ".specc-files";
const STAGING: &str = ".making-";

/// How closely an entry is compared with its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Presence and sizes: milliseconds.
    Sizes,
    /// SHA-256 of every file.
    Sums,
}

/// The cache folder.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// `given`, else `$SPECC_CACHE`, else `~/.cache/specc`. The folder is not created here.
    pub(crate) fn open(given: Option<&Path>) -> Result<Self, Error> {
        let root = match given {
            Some(path) => path.to_owned(),
            None => match std::env::var_os("SPECC_CACHE").filter(|v| !v.is_empty()) {
                Some(path) => PathBuf::from(path),
                None => PathBuf::from(
                    std::env::var_os("HOME").filter(|v| !v.is_empty()).ok_or(Error::NoCache)?,
                )
                .join(".cache/specc"),
            },
        };
        let root =
            std::path::absolute(&root).map_err(Error::io(&root, "make an absolute path of"))?;
        match root.to_str() {
            Some(text) if !text.contains([':', '\n']) => Ok(Self { root }),
            _ => Err(Error::CachePath { path: root }),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the entry `name` is, whether or not it exists.
    pub(crate) fn entry(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Whether the entry is there, whole and as it was made.
    pub(crate) fn is_whole(&self, name: &str, compare: Compare) -> bool {
        is_as_listed(&self.entry(name), compare)
    }

    /// The lock that writers take.
    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        fs::create_dir_all(&self.root).map_err(Error::io(&self.root, "create"))?;
        let path = self.root.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::io(&path, "open"))?;
        Ok(Lock { path, lock: RwLock::new(file) })
    }

    /// Makes the entry `name` through `fill`, which gets an empty folder; the lock must be held.
    pub(crate) fn make(
        &self,
        _held: &Held<'_>,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        self.drop_leftovers()?;
        let entry = self.entry(name);
        let staging = tempfile::Builder::new()
            .prefix(STAGING)
            .tempdir_in(&self.root)
            .map_err(Error::io(&self.root, "create a folder in"))?;
        fill(staging.path())?;
        write_list(staging.path())?;
        if fs::symlink_metadata(&entry).is_ok() {
            // Renamed away first, so that a reader sees a whole entry or none.
            let old = tempfile::Builder::new()
                .prefix(STAGING)
                .tempdir_in(&self.root)
                .map_err(Error::io(&self.root, "create a folder in"))?;
            fs::rename(&entry, old.path().join("old")).map_err(Error::io(&entry, "move away"))?;
        }
        let staging = staging.keep();
        fs::rename(&staging, &entry).map_err(Error::io(&entry, "move into place"))?;
        Ok(entry)
    }

    /// Removes staging folders of set-ups that were killed: whoever holds the lock is alone.
    fn drop_leftovers(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.root).map_err(Error::io(&self.root, "list"))?;
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(STAGING) {
                fs::remove_dir_all(entry.path()).map_err(Error::io(entry.path(), "remove"))?;
            }
        }
        Ok(())
    }
}

/// The cache's lock, not yet held.
pub(crate) struct Lock {
    path: PathBuf,
    lock: RwLock<File>,
}

/// The lock, held until dropped.
pub(crate) struct Held<'a> {
    _guard: RwLockWriteGuard<'a, File>,
}

impl Lock {
    /// Waits until no other set-up writes; says so when it has to wait.
    pub(crate) fn hold(&mut self, progress: &Progress) -> Result<Held<'_>, Error> {
        // Two steps because the guard of a first attempt would borrow the lock for the whole function.
        let free = self.lock.try_write().is_ok();
        if !free {
            progress.say("another set-up is writing to the cache; waiting for it");
        }
        let guard = self.lock.write().map_err(Error::io(&self.path, "lock"))?;
        Ok(Held { _guard: guard })
    }
}

/// Lower-case hexadecimal SHA-256 of a file, and its length in bytes.
pub(crate) fn sha256(path: &Path) -> Result<(String, u64), Error> {
    let mut file = File::open(path).map_err(Error::io(path, "open"))?;
    let mut hash = Sha256::new();
    let length = io::copy(&mut file, &mut hash).map_err(Error::io(path, "read"))?;
    Ok((hex(&hash.finalize()), length))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// All files below `dir` but the list itself, as paths relative to it, sorted.
pub(crate) fn files_below(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        let folder = dir.join(&below);
        for entry in fs::read_dir(&folder).map_err(Error::io(&folder, "list"))? {
            let entry = entry.map_err(Error::io(&folder, "list"))?;
            let path = below.join(entry.file_name());
            let kind = entry.file_type().map_err(Error::io(entry.path(), "read"))?;
            if kind.is_dir() {
                pending.push(path);
            } else if path.as_os_str() != LIST {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn write_list(dir: &Path) -> Result<(), Error> {
    let mut text = String::new();
    for path in files_below(dir)? {
        let (sum, length) = match fs::metadata(dir.join(&path)) {
            Ok(meta) if meta.is_dir() => ("folder".to_owned(), 0),
            _ => sha256(&dir.join(&path))?,
        };
        text.push_str(&format!("{sum} {length} {}\n", path.display()));
    }
    write_atomically(&dir.join(LIST), &text)
}

fn is_as_listed(dir: &Path, compare: Compare) -> bool {
    let mut text = String::new();
    let list = File::open(dir.join(LIST)).and_then(|mut f| f.read_to_string(&mut text));
    if list.is_err() || text.is_empty() {
        return false;
    }
    text.lines().all(|line| {
        let mut parts = line.splitn(3, ' ');
        let (Some(sum), Some(length), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let path = dir.join(path);
        // Follows links: an entry whose link leads nowhere is not whole.
        let Ok(meta) = fs::metadata(&path) else { return false };
        if sum == "folder" {
            return meta.is_dir();
        }
        if length.parse() != Ok(meta.len()) {
            return false;
        }
        compare == Compare::Sizes || sha256(&path).is_ok_and(|(found, _)| found == sum)
    })
}

/// Writes `text` to a new file beside `path` and renames it over `path`.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".specc-")
        .tempfile_in(folder)
        .map_err(Error::io(folder, "create a file in"))?;
    file.write_all(text.as_bytes()).map_err(Error::io(path, "write"))?;
    if let Ok(meta) = fs::metadata(path) {
        fs::set_permissions(file.path(), meta.permissions()).map_err(Error::io(path, "write"))?;
    } else {
        use std::os::unix::fs::PermissionsExt;
        // A temporary file is private by default; what is kept is readable as any other file.
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644))
            .map_err(Error::io(path, "write"))?;
    }
    file.persist(path).map_err(|e| Error::Io {
        path: path.to_owned(),
        action: "replace",
        source: e.error,
    })?;
    Ok(())
}
