// SPDX-License-Identifier: BSD-2-Clause
//! Prefetches cache lines that move between cores.
#![allow(unsafe_code, reason = "an instruction without an intrinsic")]

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Maximum number of cache lines that a core prefetches at a time.
const READS: usize = 16;

/// Prefetches the cache lines of `len` bytes from `at` on, for writing.
///
/// A line that a peer read last is in the cache of that peer. Stores would fetch such lines one
/// after the other, about 0.1 us each. After a prefetch of all lines, the fetches overlap. The
/// instruction is only a hint, so any address is allowed.
#[inline]
pub(crate) fn expect_writes(at: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if x86_64::knows_prefetchw() {
        for offset in (0..len).step_by(LINE) {
            // SAFETY: this processor has the instruction, which changes nothing and cannot fault.
            unsafe {
                std::arch::asm!(
                    "prefetchw [{}]",
                    in(reg) at.wrapping_add(offset),
                    options(nostack, preserves_flags, readonly),
                );
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, len, LINE);
}

/// Prefetches the first cache lines of `len` bytes from `at` on, for reading: as many as a core
/// fetches at a time. The hardware fetches the others while the first are copied.
#[inline]
pub(crate) fn expect_reads(at: *const u8, len: usize) {
    for offset in (0..len.min(READS * LINE)).step_by(LINE) {
        expect_read(at.wrapping_add(offset));
    }
}

/// Prefetches the cache line at this address, for reading. The instruction is only a hint, so any
/// address is allowed.
#[inline(always)]
pub(crate) fn expect_read(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, which cannot fault.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::{arch::x86_64::__cpuid, sync::LazyLock};

    const EXTENDED: u32 = 0x8000_0000;
    const PREFETCHW: u32 = 1 << 8;

    /// Returns whether this processor has `prefetchw`.
    #[inline]
    pub(crate) fn knows_prefetchw() -> bool {
        static KNOWS: LazyLock<bool> = LazyLock::new(|| {
            // SAFETY: every processor of this architecture has the instruction.
            #[allow(unused_unsafe, reason = "older compilers do not know that")]
            let leaf = |number| unsafe { __cpuid(number) };
            leaf(EXTENDED).eax > EXTENDED && leaf(EXTENDED + 1).ecx & PREFETCHW != 0
        });
        *KNOWS
    }
}

#[cfg(test)]
mod tests {
    use super::{expect_reads, expect_writes};

    #[test]
    fn a_hint_changes_nothing() {
        let bytes = [7_u8; 1000];
        for len in [0, 1, 64, 65, 1000] {
            expect_writes(bytes.as_ptr(), len);
            expect_reads(bytes.as_ptr(), len);
        }
        expect_writes(std::ptr::null(), 4096);
        expect_reads(std::ptr::null(), 4096);
        assert_eq!(bytes, [7; 1000]);
    }
}
