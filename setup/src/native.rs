//! Compiles mlx-c, as mlx-sys's own build script does on macOS.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use crate::Error;
use crate::bindings;
use crate::progress::Progress;
use crate::tools::{Tool, run};

/// Raised when what is compiled changes without a change of the files below.
const RECIPE: &str = "1";
pub(crate) const HALF: &str = include_str!("../native/half_linux.h");
const FORMAT: &str = include_str!("../native/format_linux.h");
const MACH_TIME: &str = include_str!("../native/mach_time_linux.c");

/// Identifies this way of compiling mlx-c, for cache keys: eight hexadecimal digits.
pub(crate) fn recipe() -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for part in [RECIPE, HALF, FORMAT, MACH_TIME, bindings::PROGRAM, bindings::BINDGEN] {
        hash.update(part);
        hash.update([0]);
    }
    crate::cache::hex(&hash.finalize())[..8].to_owned()
}

pub(crate) fn compiler(host: &str, cpp: bool) -> Result<cc::Tool, cc::Error> {
    let mut build = cc::Build::new();
    build.cargo_metadata(false).cargo_warnings(false).warnings(false);
    build.host(host).target(host).opt_level(2).pic(true).cpp(cpp);
    build.try_get_compiler()
}

/// The tools that compiling needs and this system lacks.
pub(crate) fn missing(host: &str, scratch: &Path) -> Result<Vec<Tool>, Error> {
    write_native(scratch)?;
    let probe = |includes: &[&str]| {
        let Ok(tool) = compiler(host, true) else { return false };
        let mut command = tool.to_command();
        command.args(["-std=c++20", "-fsyntax-only"]).current_dir(scratch);
        for file in includes {
            command.args(["-include", file]);
        }
        run(command.args(["-x", "c++", "/dev/null"])).is_ok()
    };
    Ok(if !probe(&["vector", "stdlib.h"]) {
        // Without a compiler nobody knows whether it would need fmt; naming both saves a second run.
        let fmt = !Path::new("/usr/include/fmt/format.h").exists();
        if fmt { vec![Tool::Compiler, Tool::FmtHeaders] } else { vec![Tool::Compiler] }
    } else if !probe(&["format_linux.h"]) {
        vec![Tool::FmtHeaders]
    } else {
        Vec::new()
    })
}

fn write_native(dir: &Path) -> Result<(), Error> {
    for (name, text) in
        [("half_linux.h", HALF), ("format_linux.h", FORMAT), ("mach_time_linux.c", MACH_TIME)]
    {
        let path = dir.join(name);
        fs::write(&path, text).map_err(Error::io(&path, "write"))?;
    }
    Ok(())
}

/// Compiles mlx-c in `mlx_c` against MLX's headers in `mlx_include`, into `out/lib/libmlxc.a`.
pub(crate) fn compile(
    mlx_c: &Path,
    mlx_include: &Path,
    host: &str,
    out: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let work = out.join("objects");
    let lib = out.join("lib");
    for dir in [&work, &lib] {
        fs::create_dir_all(dir).map_err(Error::io(dir, "create"))?;
    }
    write_native(&work)?;
    let mut sources: Vec<String> = fs::read_dir(mlx_c.join("mlx/c"))
        .map_err(Error::io(mlx_c, "list"))?
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|name| name.ends_with(".cpp"))
        .collect();
    sources.sort();

    let cores = thread::available_parallelism().map_or(1, usize::from);
    let groups = groups(&sources, cores.min(8));
    let step = progress.start("compiling mlx-c", Some(groups.len() as u64 + 1));
    let cpp = compiler(host, true).map_err(|e| failed("c++", e))?;
    let compile_one = |name: &str, text: &str| -> Result<PathBuf, Error> {
        let source = work.join(format!("{name}.cpp"));
        fs::write(&source, text).map_err(Error::io(&source, "write"))?;
        let object = work.join(format!("{name}.o"));
        let mut command = cpp.to_command();
        command.args(["-std=c++20", "-w"]);
        for include in [mlx_include, mlx_c] {
            command.arg("-I").arg(include);
        }
        for header in ["half_linux.h", "format_linux.h"] {
            command.arg("-include").arg(work.join(header));
        }
        run(command.arg("-c").arg(&source).arg("-o").arg(&object))?;
        Ok(object)
    };
    let include = |file: &String| format!("#include \"mlx/c/{file}\"\n");
    let compile_group = |index: usize, files: &[String]| -> Result<Vec<PathBuf>, Error> {
        // One unit for many files: parsing MLX's headers takes most of the time.
        let text: String = files.iter().map(include).collect();
        if let Ok(object) = compile_one(&format!("group{index}"), &text) {
            return Ok(vec![object]);
        }
        // Files of another mlx-c may clash within one unit; this also yields the error's own file.
        files.iter().map(|f| compile_one(f.trim_end_matches(".cpp"), &include(f))).collect()
    };

    let queue: Mutex<VecDeque<_>> = Mutex::new(groups.iter().enumerate().collect());
    let next = || queue.lock().ok().and_then(|mut q| q.pop_front());
    let worker = || -> Result<Vec<PathBuf>, Error> {
        let mut objects = Vec::new();
        while let Some((index, files)) = next() {
            objects.extend(compile_group(index, files)?);
            step.advance();
        }
        Ok(objects)
    };
    let mut objects = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::new();
        for handle in workers {
            match handle.join() {
                Ok(objects) => all.extend(objects?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, Error>(all)
    })?;
    let clock = work.join("mach_time_linux.o");
    let c = compiler(host, false).map_err(|e| failed("cc", e))?;
    run(c.to_command().arg("-c").arg(work.join("mach_time_linux.c")).arg("-o").arg(&clock))?;
    objects.push(clock);
    objects.sort();
    let mut build = cc::Build::new();
    build.cargo_metadata(false).cargo_warnings(false).host(host).target(host).opt_level(2);
    let mut ar = build.try_get_archiver().map_err(|e| failed("ar", e))?;
    run(ar.arg("crs").arg(lib.join("libmlxc.a")).args(&objects))?;
    fs::remove_dir_all(&work).map_err(Error::io(&work, "remove"))?;
    step.advance();
    step.done();
    Ok(())
}

pub(crate) fn failed(program: &str, error: cc::Error) -> Error {
    Error::Program {
        program: program.to_owned(),
        status: "not usable".to_owned(),
        output: error.to_string(),
    }
}

/// Splits `files` into `count` groups of nearly equal number; none is empty.
fn groups(files: &[String], count: usize) -> Vec<Vec<String>> {
    let mut groups = vec![Vec::new(); count.clamp(1, files.len().max(1))];
    let n = groups.len();
    for (i, file) in files.iter().enumerate() {
        // In turn, so that the long files, which are neighbours in no order, spread.
        if let Some(group) = groups.get_mut(i % n) {
            group.push(file.clone());
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_every_file_once() {
        let files: Vec<String> = (0..7).map(|i| format!("{i}.cpp")).collect();
        for count in 0..10 {
            let groups = groups(&files, count);
            assert!(groups.iter().all(|g| !g.is_empty()));
            let mut all: Vec<String> = groups.concat();
            all.sort();
            assert_eq!(all, files);
        }
    }

    #[test]
    fn the_recipe_is_a_short_key() {
        let key = recipe();
        assert_eq!((key.len(), key.chars().all(|c| c.is_ascii_hexdigit())), (8, true));
    }
}
