// SPDX-License-Identifier: BSD-2-Clause
//! Pages of fingerprints, and the loop around every kernel that compares them.

use crate::bits::Bits;
use crate::kernel::lanes::LANES;

/// Number of pages that are compared before the code checks whether any fingerprint in them may
/// match.
pub(super) const GROUP: usize = 4;

/// 64 places: the fingerprints, the compared bits and the slots of their entries.
///
/// A removal changes only the bitmap. If it also overwrote a word, the next vector load of this
/// word would wait until the store completes.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Page {
    pub(super) fingerprints: [u16; LANES],
    /// The compared bits of each fingerprint. Used only if entries compare different bits.
    pub(super) cares: [u16; LANES],
    /// Slots of the entries.
    pub(crate) ids: [u16; LANES],
    /// Bit `i` is set when place `i` has an entry.
    pub(crate) live: u64,
}

/// The fingerprint of a key that is searched for, or of an entry that is stored.
#[derive(Clone, Copy)]
pub(crate) struct MaskedFingerprint {
    pub(crate) fingerprint: u16,
    /// The bits of the fingerprint that are compared.
    pub(crate) care: u16,
}

impl Page {
    pub(super) const EMPTY: Self =
        Self { fingerprints: [0; LANES], cares: [0; LANES], ids: [0; LANES], live: 0 };
}

/// Returns the lowest place from page `at` on that has an entry, whose fingerprint may match, and
/// that `accept` accepts. Returns `None` if there is no such place. `any` returns true if any
/// fingerprint of a whole group may match. `which` returns a bitmap of the fingerprints of a page
/// that may match.
#[inline(always)]
pub(super) fn first_accepted_with(
    (pages, mut at): (&[Page], usize),
    any: impl Fn(&[Page; GROUP]) -> bool,
    which: impl Fn(&Page) -> u64,
    accept: impl Fn(usize) -> bool,
) -> Option<usize> {
    while at < pages.len() {
        if let Some(group) = pages[at..].first_chunk()
            && !any(group)
        {
            at += GROUP;
            continue;
        }
        for _ in 0..GROUP {
            let page = pages.get(at)?;
            for lane in Bits(which(page)) {
                // The place nearly always has an entry. Combining both bitmaps would wait for the
                // store of the last removal; this branch does not.
                if page.live >> lane & 1 == 1 && accept(at * LANES + lane) {
                    return Some(at * LANES + lane);
                }
            }
            at += 1;
        }
    }
    None
}
