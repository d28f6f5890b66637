//! The cache: folders that are either whole or absent.
//!
//! An entry is made in a staging folder beside its place, listed file by file with sizes and SHA-256 sums, and
//! renamed into place. An entry whose list is missing, or whose files differ from it, counts as absent and is made
//! again. One lock lets one set-up write at a time.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
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

    #[cfg(test)]
    fn root(&self) -> &Path {
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
        held: &Held<'_>,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        self.drop_leftovers()?;
        let entry = self.entry(name);
        let staging = self.scratch(held)?;
        fill(staging.path())?;
        write_list(staging.path())?;
        if fs::symlink_metadata(&entry).is_ok() {
            // Renamed away first, so that a reader sees a whole entry or none.
            let old = self.scratch(held)?;
            fs::rename(&entry, old.path().join("old")).map_err(Error::io(&entry, "move away"))?;
        }
        // A temporary folder is its owner's alone; what is kept is like any other folder.
        fs::set_permissions(staging.path(), fs::Permissions::from_mode(0o755))
            .map_err(Error::io(staging.path(), "open to readers"))?;
        let staging = staging.keep();
        fs::rename(&staging, &entry).map_err(Error::io(&entry, "move into place"))?;
        Ok(entry)
    }

    /// A folder for a moment; the lock must be held.
    pub(crate) fn scratch(&self, _held: &Held<'_>) -> Result<tempfile::TempDir, Error> {
        tempfile::Builder::new()
            .prefix(STAGING)
            .tempdir_in(&self.root)
            .map_err(Error::io(&self.root, "create a folder in"))
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(&dir.path().join("cache"))).unwrap();
        (dir, cache)
    }

    fn make(cache: &Cache, text: &str) -> Result<PathBuf, Error> {
        let mut lock = cache.lock()?;
        let held = lock.hold(&Progress::new(false))?;
        cache.make(&held, "entry", |out| {
            fs::create_dir(out.join("below")).unwrap();
            fs::write(out.join("below/a b"), text).unwrap();
            let outside = cache.root().join("../outside");
            std::os::unix::fs::symlink(outside, out.join("link")).unwrap();
            Ok(())
        })
    }

    fn names(cache: &Cache) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(cache.root())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn an_entry_is_whole_until_a_file_of_it_changes() {
        let (dir, cache) = cache();
        fs::write(dir.path().join("outside"), "x").unwrap();
        assert!(!cache.is_whole("entry", Compare::Sizes));
        let entry = make(&cache, "12345").unwrap();
        assert!(cache.is_whole("entry", Compare::Sizes));
        assert!(cache.is_whole("entry", Compare::Sums));

        fs::write(entry.join("below/a b"), "12346").unwrap();
        assert!(cache.is_whole("entry", Compare::Sizes));
        assert!(!cache.is_whole("entry", Compare::Sums));
        fs::write(entry.join("below/a b"), "1234").unwrap();
        assert!(!cache.is_whole("entry", Compare::Sizes));
        fs::remove_file(entry.join("below/a b")).unwrap();
        assert!(!cache.is_whole("entry", Compare::Sizes));

        make(&cache, "12345").unwrap();
        assert!(cache.is_whole("entry", Compare::Sums));
        fs::remove_file(dir.path().join("outside")).unwrap();
        assert!(!cache.is_whole("entry", Compare::Sizes), "a link that leads nowhere");
        assert_eq!(names(&cache), ["entry", "lock"]);
    }

    #[test]
    fn an_unfinished_entry_counts_as_absent() {
        let (_dir, cache) = cache();
        fs::create_dir_all(cache.entry("entry")).unwrap();
        fs::write(cache.entry("entry").join("a"), "x").unwrap();
        assert!(!cache.is_whole("entry", Compare::Sizes));
        fs::write(cache.entry("entry").join(LIST), "").unwrap();
        assert!(!cache.is_whole("entry", Compare::Sizes));
        fs::write(cache.entry("entry").join(LIST), "no list\n").unwrap();
        assert!(!cache.is_whole("entry", Compare::Sizes));
    }

    #[test]
    fn a_failure_leaves_the_old_entry_and_no_staging_folder() {
        let (dir, cache) = cache();
        fs::write(dir.path().join("outside"), "x").unwrap();
        make(&cache, "old").unwrap();
        // What a killed set-up leaves behind.
        fs::create_dir(cache.root().join(format!("{STAGING}killed"))).unwrap();
        let mut lock = cache.lock().unwrap();
        let held = lock.hold(&Progress::new(false)).unwrap();
        let failed = cache.make(&held, "entry", |out| {
            fs::write(out.join("half"), "x").unwrap();
            Err(Error::NoCache)
        });
        assert!(failed.is_err());
        assert_eq!(names(&cache), ["entry", "lock"]);
        assert!(cache.is_whole("entry", Compare::Sums));
    }

    #[test]
    fn one_writer_at_a_time() {
        let (_dir, cache) = cache();
        let made = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut lock = cache.lock().unwrap();
                    let held = lock.hold(&Progress::new(false)).unwrap();
                    if !cache.is_whole("entry", Compare::Sizes) {
                        let fill = |out: &Path| {
                            std::thread::sleep(std::time::Duration::from_millis(30));
                            made.fetch_add(1, Ordering::SeqCst);
                            fs::write(out.join("a"), "x").map_err(Error::io(out, "write"))
                        };
                        cache.make(&held, "entry", fill).unwrap();
                    }
                });
            }
        });
        assert_eq!(made.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_cache_folder_that_no_linker_could_name_is_refused() {
        let error = Cache::open(Some(Path::new("/tmp/a:b"))).unwrap_err();
        insta::assert_snapshot!(error, @"/tmp/a:b: a cache folder must be valid UTF-8 without ':'; set SPECC_CACHE to another one");
    }
}
