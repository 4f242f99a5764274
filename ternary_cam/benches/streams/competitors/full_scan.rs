// SPDX-License-Identifier: BSD-2-Clause
//! A full ternary scan with AVX-512: like a CAM, each search compares every entry in use. Of the
//! entries that match, the one with the lowest `age`, the oldest, wins.

use crate::matcher::Matcher;
#[cfg(target_arch = "x86_64")]
use ternary_cam::Source;
use ternary_cam::{Entry, Key};

/// The entries as a structure of arrays. Free places are reused; a scan ends at the highest place
/// ever used.
pub(crate) struct FullScan {
    bits: Vec<u64>,
    ignore: Vec<u64>,
    source: Vec<u32>,
    token: Vec<u32>,
    age: Vec<u64>,
    live: Vec<u8>,
    free: Vec<u32>,
    next_age: u64,
    used: usize,
}

impl FullScan {
    /// Returns `None` if this processor has no AVX-512.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let available = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
        #[cfg(not(target_arch = "x86_64"))]
        let available = false;
        let capacity = capacity.next_multiple_of(8);
        available.then(|| Self {
            bits: vec![0; capacity],
            ignore: vec![0; capacity],
            source: vec![0; capacity],
            token: vec![0; capacity],
            age: vec![0; capacity],
            live: vec![0; capacity / 8],
            free: (0..capacity as u32).rev().collect(),
            next_age: 0,
            used: 0,
        })
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn scan(&self, key: &Key) -> Option<usize> {
        use std::arch::x86_64::{
            _mm256_cmpeq_epi32_mask, _mm256_loadu_si256, _mm256_set1_epi32, _mm512_loadu_si512,
            _mm512_set1_epi64, _mm512_ternarylogic_epi64, _mm512_testn_epi64_mask,
        };
        let key_bits = _mm512_set1_epi64(key.bits.cast_signed());
        let care = _mm512_set1_epi64((!key.ignore).cast_signed());
        let from = _mm256_set1_epi32(key.source.get().unwrap_or(u32::MAX).cast_signed());
        let any = _mm256_set1_epi32(-1);
        let every = if key.source == Source::ANY { u8::MAX } else { 0 };
        let mut best: Option<usize> = None;
        for (group, &live) in self.live[..self.used.div_ceil(8)].iter().enumerate() {
            let at = group * 8;
            let (bits, ignore) = (&self.bits[at..at + 8], &self.ignore[at..at + 8]);
            let source = &self.source[at..at + 8];
            // SAFETY: each slice holds the 64, 64 and 32 bytes loaded.
            let (bits, ignore, source) = unsafe {
                (
                    _mm512_loadu_si512(bits.as_ptr().cast()),
                    _mm512_loadu_si512(ignore.as_ptr().cast()),
                    _mm256_loadu_si256(source.as_ptr().cast()),
                )
            };
            let differ = _mm512_ternarylogic_epi64::<0b0001_0100>(bits, key_bits, ignore);
            let mut hits = _mm512_testn_epi64_mask(differ, care)
                & (_mm256_cmpeq_epi32_mask(source, from)
                    | _mm256_cmpeq_epi32_mask(source, any)
                    | every)
                & live;
            while hits != 0 {
                let hit = at + hits.trailing_zeros() as usize;
                if best.is_none_or(|best| self.age[hit] < self.age[best]) {
                    best = Some(hit);
                }
                hits &= hits - 1;
            }
        }
        best
    }

    #[cfg(target_arch = "x86_64")]
    fn find_place(&self, key: &Key) -> Option<usize> {
        // SAFETY: a FullScan can only be made with AVX-512.
        unsafe { self.scan(key) }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn find_place(&self, _: &Key) -> Option<usize> {
        None
    }
}

impl Matcher for FullScan {
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        let place = self.free.pop().expect("streams never hold more than the capacity") as usize;
        self.bits[place] = entry.bits;
        self.ignore[place] = entry.ignore;
        self.source[place] = entry.source.get().unwrap_or(u32::MAX);
        self.token[place] = entry.token;
        self.age[place] = self.next_age;
        self.next_age += 1;
        self.live[place / 8] |= 1 << (place % 8);
        self.used = self.used.max(place + 1);
    }

    #[inline(always)]
    fn take(&mut self, key: &Key) -> Option<u32> {
        let place = self.find_place(key)?;
        self.live[place / 8] &= !(1 << (place % 8));
        self.free.push(place as u32);
        Some(self.token[place])
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> Option<u32> {
        self.find_place(key).map(|place| self.token[place])
    }
}
