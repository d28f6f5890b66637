//! What each device does badly and is therefore avoided, in one table.

use mlx_rs::{Device, DeviceType};

use crate::Result;

/// Where MLX computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// MLX's CPU build.
    Cpu,
    /// Apple GPUs.
    Metal,
    /// NVIDIA GPUs.
    Cuda,
}

/// The choices that depend on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Quantised weights become float32 at load: the quantised product is about 15 times slower
    /// than float32 through OpenBLAS.
    pub dequantise: bool,
    /// Quantised matrices whose rows are one group each become float32 at load: their product with
    /// several rows is wrong in MLX 0.32.2's CUDA build.
    pub dequantise_lone_groups: bool,
    /// Dense float16 and bfloat16 weights become float32 at load: BLAS has no product for them.
    pub widen: bool,
    /// Depthwise convolutions become sums of shifted products: the convolution itself is three to
    /// six times slower.
    pub shift_convolutions: bool,
    /// Rows that are grouped by expert are multiplied with dense experts in blocks of so many rows;
    /// `None`: by MLX's product for sorted rows, whose values are wrong in MLX 0.32.2's CUDA build.
    pub expert_block: Option<i32>,
    /// Quantised products are taken head by head: the product copies what does not lie in one
    /// piece, such as the used part of a buffer, and what is repeated over query heads.
    pub split_quantised: bool,
    /// Positions that are decoded at a time where keys and values have to be decoded to be read: so
    /// many for each layer of the model, and the most. On the CPU what is in flight stays small
    /// beside the caches of all layers, elsewhere tiles stay few.
    pub decode_tile: [i32; 2],
}

impl Backend {
    /// The device that MLX computes on by default.
    pub fn current() -> Result<Backend> {
        Ok(match Device::try_default()?.get_type()? {
            DeviceType::Cpu => Backend::Cpu,
            DeviceType::Gpu if cfg!(target_os = "macos") => Backend::Metal,
            DeviceType::Gpu => Backend::Cuda,
        })
    }

    /// Its name in a composition record.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Cpu => "cpu",
            Backend::Metal => "metal",
            Backend::Cuda => "cuda",
        }
    }

    /// Sizes of heads whose attention over many queries never holds all scores at once.
    pub fn fused_heads(self) -> &'static [i32] {
        match self {
            Backend::Cpu => &[],
            Backend::Metal => &[64, 72, 80, 96, 128],
            Backend::Cuda => &[64, 96, 128],
        }
    }

    /// The table.
    pub fn policy(self) -> Policy {
        match self {
            Backend::Cpu => Policy {
                dequantise: true,
                dequantise_lone_groups: false,
                widen: true,
                shift_convolutions: true,
                expert_block: None,
                split_quantised: true,
                decode_tile: [4, 64],
            },
            Backend::Metal => Policy {
                dequantise: false,
                dequantise_lone_groups: false,
                widen: false,
                shift_convolutions: false,
                expert_block: None,
                split_quantised: false,
                decode_tile: [1024, 1024],
            },
            Backend::Cuda => Policy {
                dequantise_lone_groups: true,
                expert_block: Some(32),
                ..Backend::Metal.policy()
            },
        }
    }
}
