//! MLX's wheels: fetched by pip, unpacked, and compared with the sums that they carry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::Error;
use crate::cache::{files_below, sha256};
use crate::progress::Progress;
use crate::tools::run;

/// Whether a wheel's dependencies are fetched with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependencies {
    /// The wheel alone.
    None,
    /// All that it names.
    Too,
}

/// Fetches `package==version` and unpacks it into `into`, which exists.
pub(crate) fn fetch(
    package: &str,
    version: &str,
    dependencies: Dependencies,
    into: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let downloads = into.join(".downloads");
    fs::create_dir_all(&downloads).map_err(Error::io(&downloads, "create"))?;
    let what = match dependencies {
        Dependencies::None => format!("fetching {package} {version}"),
        Dependencies::Too => format!("fetching {package} {version} and NVIDIA's libraries (2 GB)"),
    };
    let step = progress.start(&what, None);
    let requirement = format!("{package}=={version}");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", &requirement])
        .args(["--only-binary=:all:", "--disable-pip-version-check", "--no-input", "-q"])
        .arg("-d")
        .arg(&downloads)
        // pip collects a download in its temporary folder: here its growth can be seen.
        .env("TMPDIR", &downloads);
    if dependencies == Dependencies::None {
        pip.arg("--no-deps");
    }
    watched(&mut pip, || step.bytes(size_below(&downloads)))?;
    unpack(&downloads, into)?;
    fs::remove_dir_all(&downloads).map_err(Error::io(&downloads, "remove"))?;
    step.done();
    Ok(())
}

/// Unpacks every wheel in `downloads` into `into`.
fn unpack(downloads: &Path, into: &Path) -> Result<(), Error> {
    let wheels: Vec<PathBuf> = fs::read_dir(downloads)
        .map_err(Error::io(downloads, "list"))?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "whl"))
        .collect();
    if wheels.is_empty() {
        return Err(Error::Content {
            path: downloads.to_owned(),
            expected: "a wheel from pip".into(),
            found: "none".into(),
        });
    }
    for wheel in &wheels {
        run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(into))?;
    }
    for file in files_below(into)? {
        if file.file_name().is_some_and(|n| n == "RECORD") {
            check_record(into, &file)?;
        }
    }
    Ok(())
}

/// Compares the unpacked files with a wheel's RECORD: lines of `path,sha256=<urlsafe base64>,size`.
fn check_record(root: &Path, record: &Path) -> Result<(), Error> {
    let record = root.join(record);
    let text = fs::read_to_string(&record).map_err(Error::io(&record, "read"))?;
    for line in text.lines() {
        let mut parts = line.rsplitn(3, ',');
        let (_, sum, Some(name)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let Some(sum) = sum.and_then(|s| s.strip_prefix("sha256=")) else { continue };
        let path = root.join(name.trim_matches('"'));
        let (hex, _) = sha256(&path)?;
        let stated = URL_SAFE_NO_PAD.decode(sum).map(|bytes| crate::cache::hex(&bytes));
        if stated.as_deref() != Ok(hex.as_str()) {
            return Err(Error::Content {
                path,
                expected: format!("the sum that its wheel states, sha256={sum}"),
                found: hex,
            });
        }
    }
    Ok(())
}

/// Runs a program to its end, calling `look` while it runs.
fn watched(command: &mut Command, look: impl Fn()) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(command.stderr(Stdio::piped())));
        while !running.is_finished() {
            look();
            std::thread::sleep(Duration::from_millis(100));
        }
        match running.join() {
            Ok(result) => result.map(drop),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn size_below(dir: &Path) -> u64 {
    let Ok(files) = files_below(dir) else { return 0 };
    files.iter().filter_map(|f| fs::metadata(dir.join(f)).ok()).map(|m| m.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacked_files_are_compared_with_the_sums_of_their_wheel() {
        let dir = tempfile::tempdir().unwrap();
        let check = |text: &str| {
            fs::write(dir.path().join("RECORD"), text).unwrap();
            check_record(dir.path(), Path::new("RECORD"))
                .map_err(|e| e.to_string().replace(dir.path().to_str().unwrap(), ""))
        };
        fs::write(dir.path().join("a,b"), "abc").unwrap();
        let sum = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";
        assert_eq!(check(&format!("\"a,b\",sha256={sum},3\nRECORD,,\n")), Ok(()));
        insta::assert_snapshot!(check(&format!("\"a,b\",sha256=A{sum},3\n")).unwrap_err(), @"/a,b: expected the sum that its wheel states, sha256=AungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0, found ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        fs::write(dir.path().join("a,b"), "abd").unwrap();
        insta::assert_snapshot!(check(&format!("\"a,b\",sha256={sum},3\n")).unwrap_err(), @"/a,b: expected the sum that its wheel states, sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0, found a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9");
        insta::assert_snapshot!(check(&format!("gone,sha256={sum},3\n")).unwrap_err(), @"/gone: cannot open: No such file or directory (os error 2)");
    }

    #[test]
    fn no_wheel_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = unpack(dir.path(), dir.path()).unwrap_err().to_string();
        insta::assert_snapshot!(error.replace(dir.path().to_str().unwrap(), "DIR"), @"DIR: expected a wheel from pip, found none");
    }
}
