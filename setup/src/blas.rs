//! Compiles the library that stands before OpenBLAS under the name of MLX's own BLAS.

use std::fs;
use std::path::Path;

use crate::Error;
use crate::native::{compiler, failed};
use crate::tools::run;

const ONE_ROW: &str = include_str!("../native/one_row.c");

/// Identifies what is compiled here, for cache keys: eight hexadecimal digits.
pub(crate) fn recipe() -> String {
    use sha2::{Digest, Sha256};
    crate::cache::hex(&Sha256::digest(ONE_ROW))[..8].to_owned()
}

/// Compiles into `to` a BLAS that has `openblas` behind it.
pub(crate) fn compile(openblas: &Path, host: &str, to: &Path) -> Result<(), Error> {
    let source = to.with_extension("c");
    fs::write(&source, ONE_ROW).map_err(Error::io(&source, "write"))?;
    let tool = compiler(host, false).map_err(|e| failed("cc", e))?;
    let mut command = tool.to_command();
    command.args(["-shared", "-o"]).arg(to).arg(&source);
    // Needed for more than what is called here: MLX and LAPACK find the rest of BLAS through it.
    run(command.arg("-Wl,--no-as-needed").arg(openblas))?;
    fs::remove_file(&source).map_err(Error::io(&source, "remove"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::tools::find_openblas;

    /// A program that holds products of every shape, order and stride against sums in double.
    const PROGRAM: &str = include_str!("../native/one_row_test.c");

    #[test]
    fn products_are_those_of_sums() {
        let openblas =
            find_openblas().expect("libopenblas-dev is among the packages that tests need");
        let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        compile(&openblas, &host, &path("libone_row.so")).unwrap();
        fs::write(path("test.c"), PROGRAM).unwrap();
        let mut command = compiler(&host, false).unwrap().to_command();
        command.arg("-o").arg(path("test")).arg(path("test.c")).arg("-L").arg(dir.path());
        command.args(["-lone_row", "-lm"]).arg("-Wl,-rpath").arg("-Xlinker").arg(dir.path());
        run(&mut command).unwrap();
        let said = run(&mut std::process::Command::new(path("test"))).unwrap();
        assert_eq!(said.trim(), "3000 products agree");
    }
}
