// SPDX-License-Identifier: BSD-2-Clause
//! Prints in pages, and the loop around every kernel that compares them.

use crate::bits::Bits;
use crate::kernel::lanes::LANES;

/// Pages that are compared before one asks whether there is a print in them that may match.
pub(super) const GROUP: usize = 4;

/// 64 places: prints, what of each is compared, and what the owner keeps of their entries.
///
/// An entry that leaves only leaves the bitmap: a word that was written a moment ago could not
/// be read as a part of a vector without waiting for the write.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Page {
    pub(super) prints: [u16; LANES],
    /// Written where entries are mixed.
    pub(super) cares: [u16; LANES],
    /// Slots of the entries.
    pub(crate) ids: [u16; LANES],
    /// Bit `i` is set when place `i` has an entry.
    pub(crate) live: u64,
}

/// What is searched for.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    pub(crate) print: u16,
    /// Its bits that are compared.
    pub(crate) care: u16,
}

impl Page {
    pub(super) const EMPTY: Self =
        Self { prints: [0; LANES], cares: [0; LANES], ids: [0; LANES], live: 0 };
}

/// The loop around every kernel, from the page `at` on. `any` says whether some print of a whole
/// group may match, `which` which of a page may.
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
                // Nearly always it is: a bitmap of both would wait for what the last removal
                // wrote, and this branch does not.
                if page.live >> lane & 1 == 1 && accept(at * LANES + lane) {
                    return Some(at * LANES + lane);
                }
            }
            at += 1;
        }
    }
    None
}
