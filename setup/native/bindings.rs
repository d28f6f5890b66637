//! Makes Rust bindings of mlx-c's headers: the folder of mlx-c, the file to write, then arguments for clang.
use std::path::{Path, PathBuf};
use std::{env, fs, process::ExitCode};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = env::args().skip(1);
    let (Some(mlx_c), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("expected the folder of mlx-c and the file to write".to_owned());
    };
    let mut headers: Vec<PathBuf> = fs::read_dir(Path::new(&mlx_c).join("mlx/c"))
        .map_err(|e| format!("{mlx_c}/mlx/c: {e}"))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "h"))
        .collect();
    headers.sort();
    let mut builder = bindgen::Builder::default()
        .rust_target("1.73".parse().map_err(|e| format!("{e}"))?)
        .formatter(bindgen::Formatter::None)
        .clang_arg(format!("-I{mlx_c}"))
        .clang_args(arguments)
        // As mlx-sys has it: their sizes trip a lint of rustc.
        .blocklist_function("malloc")
        .blocklist_function("realloc");
    for header in &headers {
        builder = builder.header(header.display().to_string());
    }
    let bindings = builder.generate().map_err(|e| e.to_string())?;
    bindings.write_to_file(&out).map_err(|e| format!("{out}: {e}"))
}
