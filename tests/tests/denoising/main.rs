//! The block-denoising family: its passes and whole runs beside those of an independent program, and
//! what requests may and may not do. `cargo test -p specc-tests --test denoising [-- NAME…]`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails says where")]

mod passes;
mod requests;
mod traces;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// The oracle's model in float32 (`tiny`) or quantised (`tiny-q`).
fn folder(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "fixtures/diffusion_gemma", name].iter().collect()
}

/// Starts this process anew with products that are not fused, as the runs were recorded: a step's
/// signal is made of the step before, and a last bit that differs is another token ten steps on.
/// OpenBLAS chooses its kernels when it is loaded.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn plain_products() {
    use std::os::unix::process::CommandExt;
    const NAME: &str = "OPENBLAS_CORETYPE";
    if std::env::var_os(NAME).is_none() && std::is_x86_feature_detected!("avx") {
        let program = std::env::current_exe().unwrap();
        let arguments = std::env::args_os().skip(1);
        let mut again = std::process::Command::new(program);
        panic!("{}", again.args(arguments).env(NAME, "Sandybridge").exec());
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn plain_products() {}

/// A test of one of the folders.
type OfFolder = fn(&Path);

fn main() -> ExitCode {
    plain_products();
    let mut arguments = Arguments::from_args();
    // One thread owns MLX.
    arguments.test_threads = Some(1);
    let mut trials = Vec::new();
    for model in ["tiny", "tiny-q"] {
        let dir = folder(model);
        let tests: [(&str, OfFolder); 3] = [
            ("canvases", passes::canvases),
            ("mixture", passes::mixture),
            ("interface", passes::interface),
        ];
        for (name, test) in tests {
            let dir = dir.clone();
            trials.push(Trial::test(format!("{model}::{name}"), move || {
                test(&dir);
                Ok(())
            }));
        }
        for (name, trace) in traces::read(&dir) {
            let dir = dir.clone();
            trials.push(Trial::test(format!("{model}::{name}"), move || {
                traces::replay(&dir, &trace);
                Ok(())
            }));
        }
    }
    for (name, test) in requests::ALL {
        trials.push(Trial::test(*name, move || {
            test();
            Ok(())
        }));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
