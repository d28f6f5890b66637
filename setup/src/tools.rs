//! Programs and headers that the set-up needs, and the commands that install them.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::progress::Progress;

/// Something that a package manager installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Compiler,
    FmtHeaders,
    Python,
    Pip,
    OpenBlas,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tool::Compiler => "a C++20 compiler",
            Tool::FmtHeaders => "the headers of fmt (this compiler has no std::format)",
            Tool::Python => "python3",
            Tool::Pip => "pip for python3",
            Tool::OpenBlas => "OpenBLAS",
        })
    }
}

/// The package managers whose package names are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manager {
    Apt,
    Dnf,
    Pacman,
}

impl Manager {
    pub(crate) fn detect() -> Option<Self> {
        [("apt-get", Manager::Apt), ("dnf", Manager::Dnf), ("pacman", Manager::Pacman)]
            .into_iter()
            .find(|(program, _)| on_path(program).is_some())
            .map(|(_, manager)| manager)
    }

    fn package(self, tool: Tool) -> &'static str {
        match (self, tool) {
            (Manager::Apt, Tool::Compiler) => "g++",
            (Manager::Apt, Tool::FmtHeaders) => "libfmt-dev",
            (Manager::Apt, Tool::OpenBlas) => "libopenblas-dev",
            (Manager::Dnf, Tool::Compiler) => "gcc-c++",
            (Manager::Dnf, Tool::FmtHeaders) => "fmt-devel",
            (Manager::Dnf, Tool::OpenBlas) => "openblas-devel",
            (Manager::Pacman, Tool::Compiler) => "gcc",
            (Manager::Pacman, Tool::FmtHeaders) => "fmt",
            (Manager::Pacman, Tool::OpenBlas) => "openblas",
            (Manager::Pacman, Tool::Python) => "python",
            (Manager::Pacman, Tool::Pip) => "python-pip",
            (_, Tool::Python) => "python3",
            (_, Tool::Pip) => "python3-pip",
        }
    }

    fn install(self) -> &'static str {
        match self {
            Manager::Apt => "apt-get install -y",
            Manager::Dnf => "dnf install -y",
            Manager::Pacman => "pacman -S --noconfirm",
        }
    }
}

/// How to install `tools`: the command, with `sudo` where the user is not root.
pub(crate) fn remedy(manager: Option<Manager>, root: bool, tools: &[Tool]) -> String {
    // Debian's names are the ones that other distributions' users recognise best.
    let names: Vec<_> = tools.iter().map(|t| manager.unwrap_or(Manager::Apt).package(*t)).collect();
    let names = names.join(" ");
    match manager {
        Some(manager) => {
            let sudo = if root { "" } else { "sudo " };
            format!("install with `{sudo}{} {names}`", manager.install())
        }
        None => format!("install with your package manager (Debian's names: {names})"),
    }
}

/// The one-line error for `tools`.
pub(crate) fn missing(manager: Option<Manager>, root: bool, tools: &[Tool]) -> Error {
    let what: Vec<_> = tools.iter().map(Tool::to_string).collect();
    Error::Missing { what: what.join(", "), remedy: remedy(manager, root, tools) }
}

/// The error for `tools`, if there are any.
pub(crate) fn require(tools: &[Tool]) -> Result<(), Error> {
    if tools.is_empty() { Ok(()) } else { Err(missing(Manager::detect(), is_root(), tools)) }
}

/// Whether this process may install packages: its user is root.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Installs `tools` where that is possible without asking: root, apt-get, and `allowed`. False when it is not.
pub(crate) fn try_install(
    tools: &[Tool],
    allowed: bool,
    progress: &Progress,
) -> Result<bool, Error> {
    if tools.is_empty() {
        return Ok(true);
    }
    if !allowed || !is_root() || Manager::detect() != Some(Manager::Apt) {
        return Ok(false);
    }
    let names: Vec<_> = tools.iter().map(|t| Manager::Apt.package(*t)).collect();
    let step = progress.start(&format!("installing {} with apt-get", names.join(" ")), None);
    let install = || {
        let mut command = Command::new("apt-get");
        command.args(["install", "-y", "--no-install-recommends"]).args(&names);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        run(&mut command)
    };
    // A fresh system has no package lists yet; an old one has stale ones.
    if install().is_err() {
        run(Command::new("apt-get").args(["update", "-q"]))?;
        install()?;
    }
    step.done();
    Ok(true)
}

/// The full path of `program`, searched along PATH.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Runs a program to its end and returns its standard output; its last lines of output on failure.
pub(crate) fn run(command: &mut Command) -> Result<String, Error> {
    let program = short(command);
    let output = command.stdin(Stdio::null()).output().map_err(|source| Error::Io {
        path: program.clone().into(),
        action: "run",
        source,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Err(Error::Program { program, status: output.status.to_string(), output: telling(&text) })
}

/// The command's name and its first arguments.
fn short(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args().take(4) {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// The lines of a program's output that name an error, else its last lines; joined into one line.
fn telling(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let is_error = |l: &&&str| {
        let l = l.to_ascii_lowercase();
        l.starts_with("e: ") || l.contains("error")
    };
    let mut chosen: Vec<&str> = lines.iter().filter(is_error).take(3).copied().collect();
    if chosen.is_empty() {
        chosen = lines.iter().rev().take(3).rev().copied().collect();
    }
    chosen.join(" | ")
}

/// `python3` with pip, or what is missing of them.
pub(crate) fn missing_python() -> Vec<Tool> {
    if on_path("python3").is_none() {
        return vec![Tool::Python, Tool::Pip];
    }
    if run(Command::new("python3").args(["-m", "pip", "--version"])).is_err() {
        return vec![Tool::Pip];
    }
    Vec::new()
}

/// The folder `nvidia` of Python's packages, where it holds all that MLX's CUDA build loads.
pub(crate) fn find_nvidia() -> Option<PathBuf> {
    let code = "import sysconfig; print(sysconfig.get_path('platlib'))";
    let folder = run(Command::new("python3").args(["-c", code])).ok()?;
    let nvidia = Path::new(folder.trim()).join("nvidia");
    ["cu13/lib", "cudnn/lib", "nccl/lib"]
        .iter()
        .all(|part| nvidia.join(part).is_dir())
        .then_some(nvidia)
}

/// OpenBLAS's shared library as the system's loader would find it.
pub(crate) fn find_openblas() -> Option<PathBuf> {
    const NAME: &str = "libopenblas.so.0";
    for program in ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"] {
        if let Ok(list) = run(Command::new(program).arg("-p")) {
            return from_ldconfig(&list, NAME, std::env::consts::ARCH);
        }
    }
    ["/usr/lib64", "/usr/lib"].iter().map(|d| Path::new(d).join(NAME)).find(|p| p.exists())
}

/// The path of library `name` in the output of `ldconfig -p`, for the machine `arch`.
fn from_ldconfig(list: &str, name: &str, arch: &str) -> Option<PathBuf> {
    let tag = if arch == "aarch64" { "AArch64" } else { "x86-64" };
    list.lines().find_map(|line| {
        let (left, path) = line.split_once("=>")?;
        let (found, kind) = left.trim().split_once(' ')?;
        (found == name && kind.contains(tag)).then(|| PathBuf::from(path.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_are_named_in_one_line_with_the_command() {
        let message = |manager, root, tools: &[Tool]| missing(manager, root, tools).to_string();
        let all = [Tool::Python, Tool::Pip, Tool::Compiler, Tool::FmtHeaders];
        insta::assert_snapshot!(message(Some(Manager::Apt), true, &[Tool::FmtHeaders]), @"missing: the headers of fmt (this compiler has no std::format); install with `apt-get install -y libfmt-dev`");
        insta::assert_snapshot!(message(Some(Manager::Apt), false, &all), @"missing: python3, pip for python3, a C++20 compiler, the headers of fmt (this compiler has no std::format); install with `sudo apt-get install -y python3 python3-pip g++ libfmt-dev`");
        insta::assert_snapshot!(message(Some(Manager::Dnf), false, &all), @"missing: python3, pip for python3, a C++20 compiler, the headers of fmt (this compiler has no std::format); install with `sudo dnf install -y python3 python3-pip gcc-c++ fmt-devel`");
        insta::assert_snapshot!(message(Some(Manager::Pacman), true, &[Tool::Pip]), @"missing: pip for python3; install with `pacman -S --noconfirm python-pip`");
        insta::assert_snapshot!(message(None, false, &[Tool::Compiler, Tool::OpenBlas]), @"missing: a C++20 compiler, OpenBLAS; install with your package manager (Debian's names: g++ libopenblas-dev)");
    }

    #[test]
    fn a_library_is_found_in_the_loaders_list() {
        let list = "120 libs found in cache `/etc/ld.so.cache'\n\
            \tlibopenblas.so.0 (libc6) => /lib/i386-linux-gnu/libopenblas.so.0\n\
            \tlibopenblas.so.0 (libc6,x86-64) => /lib/x86_64-linux-gnu/libopenblas.so.0\n\
            \tlibopenblas.so (libc6,x86-64) => /lib/x86_64-linux-gnu/libopenblas.so\n";
        let find = |name, arch| from_ldconfig(list, name, arch);
        let path = |p: &str| Some(PathBuf::from(p));
        assert_eq!(
            find("libopenblas.so.0", "x86_64"),
            path("/lib/x86_64-linux-gnu/libopenblas.so.0")
        );
        assert_eq!(find("libopenblas.so.0", "aarch64"), None);
        assert_eq!(find("libopenblas", "x86_64"), None);
    }

    #[test]
    fn a_failed_program_says_why_in_one_line() {
        let error =
            run(Command::new("sh").args(["-c", "echo a; echo 'E: no such package' >&2; exit 3"]));
        insta::assert_snapshot!(error.unwrap_err(), @"sh -c echo a; echo 'E: no such package' >&2; exit 3 failed (exit status: 3): E: no such package");
        let error =
            run(Command::new("sh").args(["-c", "for i in 1 2 3 4 5; do echo $i; done; exit 1"]));
        insta::assert_snapshot!(error.unwrap_err(), @"sh -c for i in 1 2 3 4 5; do echo $i; done; exit 1 failed (exit status: 1): 3 | 4 | 5");
        let error = run(&mut Command::new("no-such-program-at-all"));
        insta::assert_snapshot!(error.unwrap_err(), @"no-such-program-at-all: cannot run: No such file or directory (os error 2)");
    }

    #[test]
    fn nothing_is_installed_where_that_is_not_allowed() {
        let progress = Progress::new(false);
        assert!(!try_install(&[Tool::OpenBlas], false, &progress).unwrap());
        assert!(try_install(&[], false, &progress).unwrap());
    }
}
