// SPDX-License-Identifier: BSD-2-Clause
//! Streams of posts and searches, with match bits in the layout of MPICH.

use matching::{Element, Key, Source};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Collective,
    PointToPoint,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Collective, Self::PointToPoint];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Collective => "collective",
            Self::PointToPoint => "p2p",
        }
    }
}

/// A xorshift generator: the same streams in every run.
pub(crate) struct Random(pub(crate) u64);

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

/// An element and the key that finds it, if no older element matches.
#[derive(Clone, Copy)]
pub(crate) struct Post {
    pub(crate) kind: Kind,
    pub(crate) element: Element,
    pub(crate) key: Key,
}

#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) name: String,
    /// The paper's speedups over its list: collective, point-to-point, all.
    pub(crate) paper: [&'static str; 3],
    /// Value of k_C and k_P.
    pub(crate) k: u32,
    pub(crate) processes: usize,
    /// Whether the elements are unexpected messages.
    pub(crate) unexpected: bool,
    /// Elements that stay in the queue, older than all others. If there are any, each other element
    /// is matched before the next element is posted.
    pub(crate) standing: Vec<Element>,
    pub(crate) posts: Vec<Post>,
}

/// Keys of a step with the tokens that they find.
pub(crate) type Order = [(Kind, Vec<(Key, u32)>); 2];

impl Stream {
    fn new(name: String, processes: usize) -> Self {
        let (paper, k, unexpected) = ([""; 3], 8, false);
        let (standing, posts) = (Vec::new(), Vec::new());
        Self { name, paper, k, processes, unexpected, standing, posts }
    }

    fn post(&mut self, kind: Kind, bits: u64, source: usize) -> &mut Post {
        let token = self.posts.len() as u32;
        let source = Source::new(source as u32);
        let element = Element { bits, ignore: 0, source, token };
        let key = Key { bits, ignore: 0, source };
        self.posts.push(Post { kind, element, key });
        &mut self.posts[token as usize]
    }

    /// Adds one call of a collective operation in which `n` sources send one message each.
    fn collective(mut self, communicator: u64, tag: u64, n: usize) -> Self {
        for source in 0..n {
            self.post(Kind::Collective, communicator << 32 | 1 << 31 | tag, source);
        }
        self
    }

    /// Adds `each` messages from each of these sources. All messages of a round over the sources
    /// have the same tag, and each round has another tag.
    fn point_to_point(mut self, sources: std::ops::Range<usize>, each: usize) -> Self {
        for _ in 0..each {
            let tag = self.posts.len() as u64;
            for source in sources.clone() {
                self.post(Kind::PointToPoint, tag, source);
            }
        }
        self
    }

    /// Makes the keys of a step in random order: first the point-to-point keys, because these
    /// messages overtake those of collectives, and then the collective keys.
    pub(crate) fn order(&self, random: &mut Random) -> Order {
        [Kind::PointToPoint, Kind::Collective].map(|kind| {
            let of_kind = self.posts.iter().filter(|post| post.kind == kind);
            let mut keys: Vec<_> = of_kind.map(|post| (post.key, post.element.token)).collect();
            random.shuffle(&mut keys);
            (kind, keys)
        })
    }
}

/// Adds the elements of process 0: those of the collectives, which gather all data to it, and then
/// the receives of the application.
fn fds(stream: Stream, n: usize) -> Stream {
    stream
        .collective(0, 4, n)
        .collective(1, 4, n)
        .collective(0, 8, n / 2)
        .point_to_point(0..n / 16, 4)
        .point_to_point(0..n / 4, 1)
}

/// Adds an allgather, neighbours that send many messages, and sources that send one message each.
fn nbody(stream: Stream, n: usize) -> Stream {
    stream.collective(0, 7, n / 16).point_to_point(0..16, n / 32).point_to_point(16..n / 4, 1)
}

fn radix(stream: Stream, n: usize) -> Stream {
    stream.collective(0, 14, (n / 52).max(1))
}

fn miniamr(stream: Stream, n: usize) -> Stream {
    stream.collective(0, 14, n / 16).collective(0, 7, n / 16).point_to_point(0..2, 1)
}

/// Makes streams like the paper's applications, and short queues. `shrink` divides the number of
/// processes.
pub(crate) fn papers(shrink: usize) -> Vec<Stream> {
    type Step = fn(Stream, usize) -> Stream;
    let applications: [(&str, _, _, Step); 4] = [
        ("radix-like", ["1.14", "1", "1.14"], 512, radix),
        ("nbody-like", ["1.33", "2.3", "1.89"], 512, nbody),
        ("miniamr-like", ["1.46", "1", "1.46"], 512, miniamr),
        ("fds-like", ["80", "71", "52"], 2048, fds),
    ];
    let mut streams = Vec::new();
    for (name, paper, n, step) in applications {
        let stream = Stream::new(format!("{name} n={n}"), n / shrink);
        streams.push(Stream { paper, ..step(stream, n / shrink) });
    }
    for length in [1, 2, 4, 8, 16, 32, 64, 96] {
        let stream = Stream::new(format!("short p2p {length}"), 512);
        streams.push(stream.point_to_point(0..length, 1));
    }
    streams
}

/// Makes streams of MPI_Gather with different caps on the number of queues.
pub(crate) fn sweep(shrink: usize) -> Vec<Stream> {
    let mut streams = Vec::new();
    for (n, latency) in [(1024, "1.5"), (2048, "2.4"), (4096, "5.4")] {
        for k in [1, 2, 4, 8, 16] {
            let stream = Stream::new(format!("gather n={n} k={k}"), n / shrink);
            let paper = if k == 1 { [latency, "", ""] } else { [""; 3] };
            streams.push(Stream { k, paper, ..stream.collective(0, 3, n / shrink) });
        }
    }
    streams
}

/// Tokens from this number on belong to standing elements. Tokens are small numbers, as in a
/// device.
const STANDING: u32 = 1 << 17;

/// Makes streams of receives and their messages, behind older receives that no message matches.
pub(crate) fn standing(shrink: usize) -> Vec<Stream> {
    let behind = |count: usize| {
        let stream = Stream::new(format!("behind {count}"), 512).point_to_point(0..64, 1);
        let element = |at| Element {
            bits: 1 << 20 | u64::from(at),
            ignore: 0,
            source: Source::new(1),
            token: STANDING + at,
        };
        Stream { standing: (0..count.div_ceil(shrink) as u32).map(element).collect(), ..stream }
    };
    [1, 4, 16, 64, 256, 1024, 4096].map(behind).into()
}

/// Percentage of receives without a source, and without a tag.
#[derive(Clone, Copy)]
struct Wild {
    source: usize,
    tag: usize,
}

/// Makes streams of receives with and without wildcards, which are posted or search unexpected
/// messages. All tags differ, and the sender for an any-tag receive sends nothing else. So each
/// receive finds its own message.
pub(crate) fn wildcards(shrink: usize) -> Vec<Stream> {
    const SOURCES: usize = 64;
    const ANY_TAG: u64 = 0x7fff_ffff;
    let mixes = [
        ("no wildcard", Wild { source: 0, tag: 0 }),
        ("10 % any source", Wild { source: 10, tag: 0 }),
        ("10 % any source, 10 % any tag", Wild { source: 10, tag: 10 }),
        ("all any source", Wild { source: 100, tag: 0 }),
    ];
    let mut streams = Vec::new();
    for unexpected in [false, true] {
        for (mix, wild) in mixes {
            for depth in [4, 16, 64, 256, 1024, 4096_usize] {
                let queue = if unexpected { "unexpected" } else { "posted" };
                let mut stream = Stream::new(format!("{queue}, {mix}, depth {depth}"), 512);
                stream.unexpected = unexpected;
                for at in 0..depth.div_ceil(shrink) {
                    // 37 and 100 are coprime, so each percentage is met evenly.
                    let percent = at * 37 % 100;
                    let any_tag = percent >= 100 - wild.tag;
                    let source = if any_tag { SOURCES + at } else { at % SOURCES };
                    let post = stream.post(Kind::PointToPoint, at as u64, source);
                    let (ignore, source) = if unexpected {
                        (&mut post.key.ignore, &mut post.key.source)
                    } else {
                        (&mut post.element.ignore, &mut post.element.source)
                    };
                    if percent < wild.source {
                        *source = Source::ANY;
                    } else if any_tag {
                        *ignore = ANY_TAG;
                    }
                }
                streams.push(stream);
            }
        }
    }
    streams
}
