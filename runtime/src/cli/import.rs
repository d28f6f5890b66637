//! `import-gguf`

use super::Families;
use super::args::ImportArgs;
use super::console::{Bar, complain};
use crate::gguf::{GgufMap, import};

pub(super) fn run(families: Families, args: &ImportArgs) -> anyhow::Result<()> {
    let maps: Vec<&GgufMap> = families.iter().filter_map(|family| family.gguf).collect();
    let mut bar = None;
    let report = import(&args.file, &args.out, &maps, &mut |done, total| {
        bar.get_or_insert_with(|| Bar::new("importing", total, true)).set(done);
    })?;
    if let Some(bar) = bar {
        bar.end();
    }
    complain(&format!(
        "{}: architecture {}, {} tensors, {} kept quantised, the others {}",
        args.out.display(),
        report.architecture,
        report.tensors,
        report.quantised,
        report.float_type,
    ));
    Ok(())
}
