// SPDX-License-Identifier: BSD-2-Clause
//! Queue search time of the host engines on streams like the paper's
//! (Ghazimirsaeed, Grant, Afsahi 2019, sections 5.2 and 5.3).
//!
//! ```text
//! cargo bench -p matching -- [--only TEXT] [--ms N]
//! ```
//!
//! A stream is a step that is repeated: receives are posted, then each is matched
//! by an arrival, in another order in every step. The first steps, in which engines
//! profile and make queues, are not measured. A number is the time of a search and
//! the removal of what it found; posting is measured apart. Every answer is checked,
//! and a small instance of every stream is replayed against the oracle first.
//!
//! The paper's figures are of MVAPICH on clusters: gather is the latency of the
//! whole operation, the applications are queue search time (PRQ).

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use matching::{
    ColPnp, Element, Engine, EngineConfig, Key, List, RankArray, Source, TagLayout, oracle::Oracle,
};

/// Steps before those that are measured.
const WARM_UP: usize = 4;
/// Orders of arrival that are prepared.
const ORDERS: usize = 8;
const ENGINES: [&str; 5] = ["list", "rank-array", "col-list", "list-pnp", "col-pnp"];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Collective,
    PointToPoint,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Collective => "collective",
            Self::PointToPoint => "p2p",
        }
    }
}

/// A xorshift generator: the same streams in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// What is posted in a step: bits as MPICH lays them out.
#[derive(Default)]
struct Step {
    posts: Vec<(Kind, Element)>,
}

impl Step {
    fn post(&mut self, kind: Kind, bits: u64, source: usize) {
        let token = self.posts.len() as u32;
        let source = Source::new(source as u32);
        self.posts.push((kind, Element { bits, ignore: 0, source, token }));
    }

    /// One call of a collective operation in which `n` sources send one message each.
    fn collective(mut self, communicator: u64, tag: u64, n: usize) -> Self {
        for source in 0..n {
            self.post(Kind::Collective, communicator << 32 | 1 << 31 | tag, source);
        }
        self
    }

    /// `each` messages from each of these sources, tag by tag, no tag used twice.
    fn point_to_point(mut self, sources: std::ops::Range<usize>, each: usize) -> Self {
        for _ in 0..each {
            let tag = self.posts.len() as u64;
            for source in sources.clone() {
                self.post(Kind::PointToPoint, tag, source);
            }
        }
        self
    }
}

struct Stream {
    name: String,
    /// The paper's speedups over its list: collective, point-to-point, all.
    paper: [&'static str; 3],
    /// k_C and k_P.
    k: u32,
    processes: usize,
    step: Step,
}

/// Receives of the application before and behind the collectives of a process 0
/// that everything is gathered to.
fn fds(n: usize) -> Step {
    Step::default()
        .collective(0, 4, n)
        .collective(1, 4, n)
        .collective(0, 8, n / 2)
        .point_to_point(0..n / 16, 4)
        .point_to_point(0..n / 4, 1)
}

/// Neighbours that send much, others that send little, and an allgather.
fn nbody(n: usize) -> Step {
    Step::default()
        .collective(0, 7, n / 16)
        .point_to_point(0..16, n / 32)
        .point_to_point(16..n / 4, 1)
}

fn streams(shrink: usize) -> Vec<Stream> {
    let mut streams = Vec::new();
    for (n, latency) in [(1024, "1.5"), (2048, "2.4"), (4096, "5.4")] {
        for k in [1, 8] {
            streams.push(Stream {
                name: format!("gather n={n} k={k}"),
                paper: if k == 1 { [latency, "", ""] } else { [""; 3] },
                k,
                processes: n / shrink,
                step: Step::default().collective(0, 3, n / shrink),
            });
        }
    }
    let mut stream = |name: &str, paper, n: usize, step: fn(usize) -> Step| {
        let processes = n / shrink;
        let step = step(processes);
        streams.push(Stream { name: format!("{name} n={n}"), paper, k: 8, processes, step });
    };
    stream("radix-like", ["1.14", "1", "1.14"], 512, |n| Step::default().collective(0, 14, n / 52));
    stream("nbody-like", ["1.33", "2.3", "1.89"], 512, nbody);
    stream("miniamr-like", ["1.46", "1", "1.46"], 512, |n| {
        Step::default().collective(0, 14, n / 16).collective(0, 7, n / 16).point_to_point(0..2, 1)
    });
    stream("fds-like", ["80", "71", "52"], 2048, fds);
    for length in [1, 2, 4, 8, 16, 32, 64, 96] {
        streams.push(Stream {
            name: format!("short p2p {length}"),
            paper: [""; 3],
            k: 8,
            processes: 512,
            step: Step::default().point_to_point(0..length, 1),
        });
    }
    streams
}

/// Arrivals of a step: point-to-point ones, which overtake, then the collectives.
fn arrivals(step: &Step, random: &mut Random) -> [(Kind, Vec<(Key, u32)>); 2] {
    [Kind::PointToPoint, Kind::Collective].map(|kind| {
        let mut elements: Vec<_> =
            step.posts.iter().filter(|post| post.0 == kind).map(|post| post.1).collect();
        random.shuffle(&mut elements);
        let key = |e: Element| (Key { bits: e.bits, ignore: 0, source: e.source }, e.token);
        (kind, elements.into_iter().map(key).collect())
    })
}

/// Nanoseconds and operations.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: Duration,
    operations: usize,
}

impl Cost {
    fn add(&mut self, time: Duration, operations: usize) {
        self.time += time;
        self.operations += operations;
    }

    fn each(self) -> f64 {
        self.time.as_nanos() as f64 / self.operations.max(1) as f64
    }
}

#[derive(Default)]
struct Costs {
    post: Cost,
    search: BTreeMap<Kind, Cost>,
    dedicated: (usize, usize),
}

impl Costs {
    fn all(&self) -> Cost {
        let mut all = Cost::default();
        for cost in self.search.values() {
            all.add(cost.time, cost.operations);
        }
        all
    }
}

fn measure<E: Engine>(mut engine: E, stream: &Stream, time: Duration) -> Costs {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let orders: Vec<_> = (0..ORDERS).map(|_| arrivals(&stream.step, &mut random)).collect();
    let mut costs = Costs::default();
    let mut age = 0;
    let began = Instant::now();
    for (step, order) in orders.iter().cycle().enumerate() {
        if step > WARM_UP + ORDERS && began.elapsed() > time {
            break;
        }
        let measured = step >= WARM_UP;
        let before = Instant::now();
        for (_, element) in &stream.step.posts {
            engine.insert(*element, age);
            age += 1;
        }
        if measured {
            costs.post.add(before.elapsed(), stream.step.posts.len());
        }
        for (kind, keys) in order {
            let before = Instant::now();
            for (key, token) in keys {
                let hit = engine.first_match(key).expect("every arrival has a receive");
                assert_eq!(engine.remove(hit.handle).token, *token);
            }
            if measured && !keys.is_empty() {
                costs.search.entry(*kind).or_default().add(before.elapsed(), keys.len());
            }
        }
    }
    costs.dedicated = engine.dedicated();
    costs
}

/// Steps of a stream that overlap, with other answers than its own tokens.
fn check<E: Engine>(mut engine: E, stream: &Stream) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut oracle = Oracle::default();
    let posts = stream.step.posts.len();
    let post = |step: usize, engine: &mut E, oracle: &mut Oracle| {
        for (at, (_, element)) in stream.step.posts.iter().enumerate() {
            let element = Element { token: (step * posts + at) as u32, ..*element };
            engine.insert(element, u64::from(element.token));
            oracle.insert(element);
        }
    };
    post(0, &mut engine, &mut oracle);
    for step in 1..6 {
        post(step, &mut engine, &mut oracle);
        for (key, _) in arrivals(&stream.step, &mut random).into_iter().flat_map(|(_, keys)| keys) {
            let hit = engine.first_match(&key).expect("every arrival has a receive");
            assert_eq!(Some(hit.token), oracle.find(&key).map(|(_, token)| token));
            engine.remove(hit.handle);
            oracle.remove(hit.token);
        }
    }
    assert_eq!(engine.len(), posts);
}

fn config(stream: &Stream, k_collective: u32, k_point_to_point: u32) -> EngineConfig {
    EngineConfig {
        layout: TagLayout::Mpich,
        k_collective,
        k_point_to_point,
        processes: stream.processes as u32,
        ..EngineConfig::default()
    }
}

/// Calls `with` with each engine, in the order of [`ENGINES`].
macro_rules! for_each_engine {
    ($stream:expr, $with:ident $(, $argument:expr)*) => {{
        let k = $stream.k;
        let col_pnp = |col, pnp| ColPnp::new(&config($stream, col, pnp));
        [
            $with(List::default(), $stream $(, $argument)*),
            $with(RankArray::default(), $stream $(, $argument)*),
            $with(col_pnp(k, 0), $stream $(, $argument)*),
            $with(col_pnp(0, k), $stream $(, $argument)*),
            $with(col_pnp(k, k), $stream $(, $argument)*),
        ]
    }};
}

fn row(name: &str, of: [Cost; 5], paper: &str) {
    let [list, ..] = of.map(Cost::each);
    let speedups: String = of[1..]
        .iter()
        .map(|cost| format!("{:>9.0} {:>6.2}x", cost.each(), list / cost.each()))
        .collect();
    println!("  {name:<12}{list:>9.0}{speedups}   {paper}");
}

fn main() {
    let mut only = String::new();
    let mut time = Duration::from_millis(200);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = |args: &mut dyn Iterator<Item = String>| {
            args.next().unwrap_or_else(|| panic!("{arg} wants a value"))
        };
        match arg.as_str() {
            "--bench" => {}
            "--only" => only = value(&mut args),
            "--ms" => time = Duration::from_millis(value(&mut args).parse().expect("milliseconds")),
            _ => panic!("there are --only TEXT and --ms N"),
        }
    }
    for stream in &streams(32) {
        for_each_engine!(stream, check);
    }
    println!("answers agree with the oracle; ns a search, speedup over list, paper's col-pnp");
    let [list, others @ ..] = ENGINES;
    println!("  {:<12}{list:>9}{}   paper", "", others.map(|name| format!("{name:>17}")).concat());
    for stream in streams(1).iter().filter(|stream| stream.name.contains(&only)) {
        println!("{}, {} elements", stream.name, stream.step.posts.len());
        let costs = for_each_engine!(stream, measure, time);
        for (kind, paper) in [Kind::Collective, Kind::PointToPoint].into_iter().zip(stream.paper) {
            if costs[0].search.contains_key(&kind) {
                row(kind.name(), costs.each_ref().map(|costs| costs.search[&kind]), paper);
            }
        }
        if costs[0].search.len() > 1 {
            row("all", costs.each_ref().map(Costs::all), stream.paper[2]);
        }
        row("post", costs.each_ref().map(|costs| costs.post), "");
        let (collective, point_to_point) = costs[4].dedicated;
        println!("  col-pnp made {collective} + {point_to_point} queues");
    }
}
