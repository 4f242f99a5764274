// SPDX-License-Identifier: BSD-2-Clause
//! Words of queues: searches of them are entered here, in code that is compiled for the
//! instructions of a kernel.

use super::{Kernel, scalar};
use crate::scanner::Search;

/// Runs a search with `kernel`, which must be available.
#[inline(always)]
pub(crate) fn enter<S: Search>(kernel: Kernel, search: S) -> S::Found {
    match kernel {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a scanner is only made with a kernel this processor supports.
        Kernel::Avx512 => unsafe { super::avx512::enter(search) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { super::avx2::enter(search) },
        _ => scalar::enter(search),
    }
}
