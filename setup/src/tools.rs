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

/// The command that installs `tools`, with `sudo` where the user is not root.
pub(crate) fn install_command(manager: Option<Manager>, root: bool, tools: &[Tool]) -> String {
    let Some(manager) = manager else {
        // Debian's names are the ones that other distributions' users recognise best.
        let names: Vec<_> = tools.iter().map(|t| Manager::Apt.package(*t)).collect();
        return format!("your package manager (Debian's names: {})", names.join(" "));
    };
    let names: Vec<_> = tools.iter().map(|t| manager.package(*t)).collect();
    let sudo = if root { "" } else { "sudo " };
    format!("{sudo}{} {}", manager.install(), names.join(" "))
}

/// The one-line error for `tools`.
pub(crate) fn missing(manager: Option<Manager>, root: bool, tools: &[Tool]) -> Error {
    let what: Vec<_> = tools.iter().map(Tool::to_string).collect();
    Error::Missing { what: what.join(", "), command: install_command(manager, root, tools) }
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
