// SPDX-License-Identifier: BSD-2-Clause
//! Compares long queues of the host engines with the naive list, and measures their costs. The
//! queues are long enough for an index of their elements without wildcards
//! (`engine/queue/packed/long.rs`).

use std::time::Instant;

use matching::oracle::Oracle;
use matching::{
    Element, EngineConfig, HostEngine, HostStorage, Kernel, Key, Offload, OffloadConfig, Source,
    TagLayout,
};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The mix of operations until a queue has the wanted length.
struct Phase {
    length: usize,
    tags: usize,
    sources: usize,
    /// Percentage of elements with wildcards.
    wild_elements: usize,
    /// Percentage of keys with wildcards.
    wild_keys: usize,
    /// Percentage of cancels among the removals.
    cancelled: usize,
    /// Searches look for one of the `few` oldest elements or, if `youngest`, for one of the `few`
    /// youngest.
    few: usize,
    youngest: bool,
}

/// The bits that every receive of MPICH ignores.
const PROTOCOL: u64 = 0xc0 << 48;
/// The bits of MPICH's tag.
const TAG: u64 = 0x7fff_ffff;

impl Phase {
    fn draw(random: &mut Random) -> Self {
        Self {
            length: random.of(&[0, 3, 100, 500, 520, 2000, 2047, 2048, 2049, 2100, 4200]),
            tags: random.of(&[1, 7, 3000, 1 << 20]),
            sources: random.of(&[1, 1, 2, 40]),
            wild_elements: random.of(&[0, 0, 1, 30]),
            wild_keys: random.of(&[0, 0, 5]),
            cancelled: random.of(&[0, 10, 60]),
            few: random.of(&[1, 5, 1 << 20]),
            youngest: random.percent(50),
        }
    }

    fn wild(&self, random: &mut Random, percent: usize, source: Source) -> (u64, Source) {
        if !random.percent(percent) {
            return (random.of(&[0, PROTOCOL]), source);
        }
        let ignore = random.of(&[0, PROTOCOL, PROTOCOL | TAG, 3, u64::MAX]);
        (ignore, if random.percent(50) { Source::ANY } else { source })
    }

    fn element(&self, random: &mut Random, token: u32) -> Element {
        let source = Source::new(random.below(self.sources) as u32);
        let (ignore, source) = self.wild(random, self.wild_elements, source);
        // One message in eight is of a collective operation; the others are point-to-point.
        let collective = u64::from(random.below(8) == 0) << 31;
        let protocol = random.of(&[0, 1 << 55]);
        let bits = random.below(self.tags) as u64 | collective | protocol;
        Element { bits, ignore, source, token }
    }

    fn key(&self, random: &mut Random, elements: &[Element]) -> Key {
        let rank = random.below(elements.len().min(self.few));
        let rank = if self.youngest { elements.len() - 1 - rank } else { rank };
        let of = elements[rank];
        let source = Source::new(of.source.get().unwrap_or(0));
        let (ignore, source) = self.wild(random, self.wild_keys, source);
        let bits = of.bits ^ (random.below(1 << 10) as u64 & of.ignore);
        Key { bits: if random.percent(5) { bits ^ 1 << 20 } else { bits }, ignore, source }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn long_queues_behave_like_the_list() {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    let engines = |seed| HostEngine::ALL.iter().map(move |&engine| (seed, engine));
    for (seed, engine) in (1..=20).flat_map(engines) {
        let random = &mut Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let layout = random.of(&[TagLayout::Mpich, TagLayout::Opaque]);
        let theta = random.of(&[4, 512]);
        let engine_config = EngineConfig { layout, theta, ..EngineConfig::default() };
        let kernel = random.of(&kernels);
        let (entries, depths) = (random.of(&[0, 0, 9]), random.percent(50));
        let config =
            OffloadConfig { entries, kernel, engine, engine_config, depths, ..Default::default() };
        let mut queue = Offload::new(&config).unwrap();
        let mut oracle = Oracle::default();
        let mut free: Vec<u32> = (0..5000).rev().collect();
        for _ in 0..12 {
            let phase = Phase::draw(random);
            let mut steps = 0;
            while oracle.elements().len() != phase.length || steps < 300 {
                steps += 1;
                let len = oracle.elements().len();
                let grows = if steps < 300 { 50 } else { 90 * usize::from(len < phase.length) };
                if len == 0 || len < 4900 && random.percent(grows) {
                    let element = phase.element(random, free.pop().unwrap());
                    queue.insert(element);
                    oracle.insert(element);
                    continue;
                }
                let token = if random.percent(phase.cancelled) {
                    let token = oracle.elements()[random.below(len)].token;
                    assert!(queue.cancel(token));
                    token
                } else {
                    let key = phase.key(random, oracle.elements());
                    let expected = oracle.find(&key).map(|(_, token)| token);
                    let found = queue.search(&key).map(|found| found.token);
                    assert_eq!(found, expected, "{engine}, {seed}, {key:?}");
                    let Some(token) = expected else { continue };
                    assert!(queue.remove_matched(token));
                    token
                };
                oracle.remove(token);
                free.push(token);
            }
            let tokens = oracle.elements().iter().map(|element| element.token);
            assert!(queue.iter_tokens().eq(tokens), "{engine}, {seed}");
            queue.counters().check().unwrap();
        }
    }
}

/// Measures the nanoseconds per message (insert, search and remove) in queues of several lengths.
/// Run it with `cargo test --release -p tcam-matching --test long_queues -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn cost_of_long_queues() {
    println!("{:<12}{:<10}{:>9}{:>9}{:>9}", "engine", "elements", "fifo", "reverse", "random");
    for engine in [HostEngine::List, HostEngine::ColPnp] {
        for length in [64, 512, 1024, 2048, 4096, 16_384, 65_536, 500_000] {
            let mut shuffled: Vec<u32> = (0..length).collect();
            let random = &mut Random(1);
            for i in (1..shuffled.len()).rev() {
                shuffled.swap(i, random.below(i + 1));
            }
            let orders = [(0..length).collect(), (0..length).rev().collect(), shuffled];
            let costs = orders.map(|order: Vec<u32>| cost(engine, &order));
            let [fifo, reverse, random] = costs.map(|ns| format!("{ns:>9.0}"));
            println!("{:<12}{length:<10}{fifo}{reverse}{random}", engine.name());
        }
    }
}

fn cost(engine: HostEngine, order: &[u32]) -> f64 {
    let engine_config = EngineConfig { storage: HostStorage::Packed, ..EngineConfig::default() };
    let config = OffloadConfig { entries: 0, engine, engine_config, ..Default::default() };
    let mut queue = Offload::new(&config).unwrap();
    let source = Source::new(1);
    let mut best = f64::INFINITY;
    for _ in 0..(1_000_000 / order.len()).clamp(3, 2000) {
        let before = Instant::now();
        for token in 0..order.len() as u32 {
            queue.insert(Element { bits: token.into(), ignore: 0, source, token });
        }
        for &token in order {
            let found = queue.search(&Key { bits: token.into(), ignore: 0, source });
            assert_eq!(found.map(|found| found.token), Some(token));
            queue.remove_matched(token);
        }
        best = best.min(before.elapsed().as_nanos() as f64 / order.len() as f64);
    }
    best
}
