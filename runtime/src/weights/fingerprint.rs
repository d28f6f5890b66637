//! Which weights a model has, told from little of them.

use std::fs::File;
use std::os::unix::fs::FileExt;

use sha2::{Digest, Sha256};

use super::ModelSource;
use super::source::Fill;
use crate::{Error, Result};

/// Tensors whose bytes are looked at; of more they are spread evenly.
const SAMPLED: usize = 4096;

/// Bytes of a piece of a tensor.
const PIECE: u64 = 64;

impl ModelSource {
    /// A sum that tells checkpoints of one configuration apart: over names, types and shapes of all
    /// tensors, and over two pieces of each of at most 4096 of them, less than a megabyte in all.
    /// Weights that no file holds are told apart by what they are made from.
    ///
    /// # Errors
    /// A file of weights cannot be read any more.
    pub fn fingerprint(&self) -> Result<String> {
        let mut sum = Sha256::new();
        match self.fill() {
            Fill::Files => self.sample(&mut sum)?,
            Fill::Shapes => sum.update(b"shapes"),
            Fill::Random(weights) => {
                sum.update(format!("{weights:?} {}", self.config().json()));
            }
        }
        Ok(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn sample(&self, sum: &mut Sha256) -> Result<()> {
        let tensors = self.index().tensors();
        for tensor in tensors {
            sum.update(format!("{}\0{:?} {:?}\0", tensor.name, tensor.dtype, tensor.shape));
        }
        let mut files: Vec<Option<File>> = self.index().files().iter().map(|_| None).collect();
        for tensor in tensors.iter().step_by(tensors.len().div_ceil(SAMPLED).max(1)) {
            let path = self.index().file_path(tensor.file);
            let failed =
                |e: std::io::Error| Error::Io { file: path.to_owned(), reason: e.to_string() };
            let slot = files.get_mut(tensor.file.0 as usize);
            let file = match slot {
                Some(Some(file)) => file,
                Some(slot) => slot.insert(File::open(path).map_err(failed)?),
                None => continue,
            };
            let length = tensor.bytes.end - tensor.bytes.start;
            let piece = PIECE.min(length);
            for third in [1, 2] {
                let at = tensor.bytes.start + (length - piece) / 3 * third;
                let mut bytes = [0; PIECE as usize];
                let bytes = bytes.get_mut(..piece as usize).unwrap_or_default();
                file.read_exact_at(bytes, at).map_err(failed)?;
                sum.update(&*bytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::Dtype;
    use safetensors::tensor::TensorView;

    use crate::weights::{LoadOptions, ModelSource, Synthetic};

    fn of(folder: &Path, config: &str, tensors: &[(&str, [usize; 2], f32)]) -> String {
        std::fs::write(folder.join("config.json"), config).unwrap();
        let bytes: Vec<Vec<u8>> = tensors
            .iter()
            .map(|(_, [a, b], x)| (0..a * b).flat_map(|i| (x + i as f32).to_le_bytes()).collect())
            .collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap())
        });
        let file = safetensors::serialize(views, None).unwrap();
        std::fs::write(folder.join("model.safetensors"), file).unwrap();
        ModelSource::open(folder, LoadOptions::default()).unwrap().fingerprint().unwrap()
    }

    #[test]
    fn checkpoints_are_told_apart_by_their_weights() {
        let folder = tempfile::tempdir().unwrap();
        let config = r#"{"model_type": "acme"}"#;
        let (a, b) = (("a", [8, 8], 0.0), ("b", [1, 2], 1.0));
        let base = of(folder.path(), config, &[a, b]);
        assert_eq!(base, of(folder.path(), r#"{"model_type": "other"}"#, &[a, b]));
        let others = [
            of(folder.path(), config, &[("a", [8, 8], 0.5), b]),
            of(folder.path(), config, &[a, ("b", [1, 2], 2.0)]),
            of(folder.path(), config, &[("a", [16, 4], 0.0), b]),
            of(folder.path(), config, &[("c", [8, 8], 0.0), b]),
            of(folder.path(), config, &[a]),
        ];
        assert!(others.iter().all(|other| *other != base));
    }

    #[test]
    fn weights_that_no_file_holds_are_what_they_are_made_from() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let of = |config: &str, seed: u64| {
            std::fs::write(&file, config).unwrap();
            let dtype = crate::Dtype::Float32;
            ModelSource::synthetic(&file, Synthetic { dtype, quantisation: None, seed }).unwrap()
        };
        let sum = |source: ModelSource| source.fingerprint().unwrap();
        assert_eq!(sum(of("{}", 1)), sum(of("{}", 1)));
        assert_ne!(sum(of("{}", 1)), sum(of("{}", 2)));
        assert_ne!(sum(of("{}", 1)), sum(of(r#"{"a": 1}"#, 1)));
        assert_eq!(sum(of("{}", 1).shapes_only()), sum(of("{}", 2).shapes_only()));
    }
}
