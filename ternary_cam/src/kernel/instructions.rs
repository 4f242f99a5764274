// SPDX-License-Identifier: BSD-2-Clause
//! The instruction sets of the kernels.

/// The instruction set that a table compares with, chosen at its construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// 512-bit vectors: AVX-512 F, BW and VL, with POPCNT.
    Avx512,
    /// 256-bit vectors: AVX2, with POPCNT.
    Avx2,
    /// Plain Rust, on every processor.
    Scalar,
}

impl Kernel {
    /// All kernels, fastest first.
    pub(super) const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Scalar];

    /// Returns the fastest kernel that this processor supports.
    #[must_use]
    pub fn best() -> Self {
        Self::available().next().unwrap_or(Self::Scalar)
    }

    /// Returns every kernel that this processor supports, fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// Returns true if this processor supports the kernel.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Scalar => true,
        }
    }
}

/// A kernel that this processor supports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Available(Kernel);

impl Available {
    /// Returns `None` if this processor does not support the kernel.
    pub(crate) fn new(kernel: Kernel) -> Option<Self> {
        kernel.is_available().then_some(Self(kernel))
    }

    pub(crate) const fn get(self) -> Kernel {
        self.0
    }
}

impl std::fmt::Display for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Scalar => "scalar",
        })
    }
}

/// A text that is not the name of a [`Kernel`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kernel: expected one of avx512, avx2, scalar")]
pub struct UnknownKernel(String);

impl std::str::FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kernel| kernel.to_string() == name)
            .ok_or_else(|| UnknownKernel(name.to_owned()))
    }
}
