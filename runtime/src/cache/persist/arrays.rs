//! Names of types in a file of caches, and hashes.

use sha2::{Digest, Sha256};

use crate::Dtype;

/// The types that caches hold, by name.
const DTYPES: [(Dtype, &str); 7] = [
    (Dtype::Float32, "float32"),
    (Dtype::Float16, "float16"),
    (Dtype::Bfloat16, "bfloat16"),
    (Dtype::Uint32, "uint32"),
    (Dtype::Uint8, "uint8"),
    (Dtype::Int8, "int8"),
    (Dtype::Int32, "int32"),
];

pub(super) fn dtype_name(dtype: Dtype) -> Option<&'static str> {
    DTYPES.iter().find(|(d, _)| *d == dtype).map(|(_, name)| *name)
}

pub(super) fn dtype_of(name: &str) -> Option<Dtype> {
    DTYPES.iter().find(|(_, n)| *n == name).map(|(d, _)| *d)
}

/// The first 16 bytes of the SHA-256, in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// The first 8 bytes of the SHA-256.
pub(super) fn short_hash(bytes: &[u8]) -> u64 {
    Sha256::digest(bytes).iter().take(8).rev().fold(0, |n, b| n << 8 | u64::from(*b))
}
