// SPDX-License-Identifier: BSD-2-Clause
//! Tests entries of many kinds, whose classes change.

use crate::entry::{Entry, Key, Source};
use crate::kernel::Kernel;
use crate::table::Table;

/// Uses more kinds of entries than there are pairs of classes, a few kinds at a time, so that the
/// pairs change while other entries stay.
#[test]
fn any_kinds_are_served_side_by_side() {
    let mut table = Table::new(256, Kernel::Scalar).unwrap();
    let mut naive = Vec::new();
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let source = |number| if number == 0 { Source::ANY } else { Source::new(number as u32) };
    for token in 0..if cfg!(miri) { 500 } else { 200_000 } {
        let first = u64::from(token) / 1000;
        let ignore = [0, 0xff, 0xff00, 0xff_0000][(first + random(1 + first % 3)) as usize % 4];
        let bits = random(1 << 24);
        let entry = Entry { bits, ignore, source: source(random(3)), token };
        naive.push((table.insert(entry).unwrap(), entry));
        while naive.len() as u64 > 48 + random(150) {
            let wanted = naive[random(naive.len() as u64) as usize].1;
            let bits = wanted.bits ^ (random(1 << 24) & wanted.ignore);
            let from = wanted.source.get().unwrap_or(1 + random(2) as u32);
            let key = Key { bits, ignore: 0, source: Source::new(from) };
            let rank = naive.iter().position(|(_, entry)| entry.matches(&key)).unwrap();
            let (handle, entry) = naive.remove(rank);
            assert_eq!(table.first_match(&key).map(|hit| hit.handle), Some(handle));
            assert_eq!(table.remove(handle), Some(entry));
        }
        if token % 64 == 0 {
            table.check();
        }
    }
}
