//! `specc init`: a project of one's own.

use std::path::Path;
use std::process::Command;

use super::{Failure, InitArgs, Outcome, output, program};

pub fn run(args: &InitArgs) -> Outcome {
    let dir = &args.dir;
    if dir.join("Cargo.toml").exists() {
        return Err(Failure::Message(format!("{} holds a Cargo.toml already", dir.display())));
    }
    // `.` is a folder with a name, too.
    let whole = std::path::absolute(dir)?;
    let Some(name) = whole.file_name().and_then(|name| name.to_str()) else {
        return Err(Failure::Usage(format!("{} names no folder", dir.display())));
    };
    let package = package_name(name);
    let family = family_name(&package);
    let checkout = program::checkout(args.specc.as_ref())?;
    program::write(&dir.join("Cargo.toml"), &cargo(&package, &checkout))?;
    // The versions that the checkout is tested with.
    if let Ok(lock) = std::fs::read_to_string(checkout.join("Cargo.lock")) {
        program::write(&dir.join("Cargo.lock"), &lock)?;
    }
    program::write(&dir.join("build.rs"), BUILD)?;
    program::write(&dir.join("src").join("main.rs"), MAIN)?;
    program::write(&dir.join(".gitignore"), "/target\n/.cargo/config.toml\n")?;
    program::write(&dir.join("specs").join(format!("{family}.toml")), &spec(&family))?;
    if !args.no_setup {
        setup(&checkout, dir)?;
    }
    output::print(&format!(
        "{}: a project with the family {family}\n\n  cd {}\n  specc check                 # the spec\n  specc check --model DIR     # the spec against a model\n  cargo run --release -- generate --model DIR --prompt \"Once upon a time\"\n",
        dir.display(),
        shell_word(&dir.display().to_string()),
    ))
}

/// The name of the family that a package starts with: the package's, unless a built-in one has it.
fn family_name(package: &str) -> String {
    let name = package.replace('-', "_");
    let taken = specc::library::Library::builtin().families().any(|known| known == name);
    if taken { format!("my_{name}") } else { name }
}

/// A word as a shell takes it.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Names that cargo refuses for a package with a command.
const REFUSED: [&str; 5] = ["build", "deps", "examples", "incremental", "test"];

/// A folder's name as a package name: lower-case letters, digits and `-`.
pub fn package_name(folder: &str) -> String {
    let mut name: String = folder
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' })
        .collect();
    while name.contains("--") {
        name = name.replace("--", "-");
    }
    let name = name.trim_matches(['-', '_']).to_owned();
    let keyword = syn::parse_str::<syn::Ident>(&name.replace('-', "_")).is_err();
    let ours = name == "specc" || name.starts_with("specc-");
    if keyword || ours || REFUSED.contains(&name.as_str()) {
        return format!("specs-{name}").trim_end_matches('-').to_owned();
    }
    name
}

fn cargo(package: &str, checkout: &Path) -> String {
    let path = |part: &str| program::quoted(&checkout.join(part));
    format!(
        r#"[package]
name = "{package}"
version = "0.1.0"
edition = "2024"
rust-version = "1.88"
publish = false

[features]
# The built-in families beside those of specs/.
builtin = []

[dependencies]
specc-runtime = {{ path = {runtime}, features = ["cli"] }}

[build-dependencies]
specc = {{ path = {compiler} }}

[profile.dev]
opt-level = 1

[workspace]
"#,
        runtime = path("runtime"),
        compiler = path("compiler"),
    )
}

const BUILD: &str = r#"//! Compiles the specs.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builtin = std::env::var_os("CARGO_FEATURE_BUILTIN").is_some();
    Ok(specc::Build::new().specs("specs").builtin(builtin).compile()?)
}
"#;

const MAIN: &str = r#"//! Runs the families of this project.

include!(concat!(env!("OUT_DIR"), "/families.rs"));

fn main() -> std::process::ExitCode {
    specc_runtime::cli::main(families())
}
"#;

fn spec(family: &str) -> String {
    let library = specc::library::Library::builtin();
    let base = library.generic().unwrap_or_default();
    format!(
        r#"# What the family is. Everything not said here is {base}'s; `specc expand {family}` shows it all.
[family]
name        = "{family}"
model_types = ["{family}"]   # `model_type` of config.json
extends     = "{base}"
label       = "{label}"

# [config]                  # keys of config.json: type, default (an expression), other places
# rope_theta = {{ type = "float", default = 1e6 }}

# [graph]                   # parameters of the blocks; `specc expand {base} --emit graph` shows them
# attention = {{ qk_norm = "head" }}

# [weights]                 # tensors that are not wanted, other names for others
# drop = ["...", "*.extra"]
"#,
        label = super::new::label(family)
    )
}

/// Prepares MLX with the checkout's own command.
fn setup(checkout: &Path, dir: &Path) -> Outcome {
    let dir = std::fs::canonicalize(dir)?;
    let mut command = Command::new("cargo");
    command
        .args(["run", "--quiet", "-p", "specc-setup", "--manifest-path"])
        .arg(checkout.join("Cargo.toml"))
        .arg("--")
        .arg(&dir)
        .current_dir(checkout);
    let again = format!(
        "cargo run --manifest-path {} -p specc-setup -- {}",
        checkout.join("Cargo.toml").display(),
        dir.display()
    );
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Failure::Message(format!("MLX is not set up; try again with: {again}"))),
        Err(error) => Err(Failure::Message(format!(
            "cargo cannot be run ({error}); set MLX up with: {again}"
        ))),
    }
}
