// SPDX-License-Identifier: BSD-2-Clause
//! The communication patterns that `tcam workload` generates, with the lengths of queues that
//! papers report.
//!
//! This file names the papers (see papers/papers.md) as follows. COL+PNP is Ghazimirsaeed, Grant,
//! Afsahi, Parallel Computing 89 (2019). Tail queues is Dosanjh, Grant, Schonbein, Bridges, CCPE
//! 2019. *hints* is *Hint-driven matching* in MPC-MPI. K-means is Ghazimirsaeed, Afsahi.
//!
//! COL+PNP reports speedups and numbers of queues instead of lengths of queues. For applications
//! whose lengths no paper reports, the patterns reproduce the numbers of queues and the shares in
//! Fig. 1 of COL+PNP.

use clap::ValueEnum;
use matching::TagLayout;
use nic::params::Params;
use nic::trace::Op;
use strum::IntoStaticStr;

use super::stream::{Exchange, Messages, Order, Receiver, Senders, mix, tag};
use crate::error::Error;

/// A communication pattern of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pattern {
    /// Radix sort: an allgather of about ten messages, and little else
    Radix,
    /// N bodies: 16 partners that send much, others that send little, an allgather
    Nbody,
    /// Adaptive mesh refinement: collectives of medium length
    Miniamr,
    /// Fire simulation: everything is gathered on rank 0
    Fds,
    /// Algebraic multigrid: hundreds of neighbours
    Amg,
    /// Molecular dynamics: remaps of the particle mesh and six neighbours
    Lammps,
    /// Molecular dynamics (MiniMD): six swaps one after the other, and neighbours that run ahead
    Minimd,
    /// MPI_Gather to rank 0, each rank's message by itself
    Gather,
    /// MPI_Allreduce by recursive doubling, the receiver late in every other step
    Allreduce,
    /// 16 MPI_Iallgather at once, the receiver late in every other step
    Iallgather,
    /// Receives in the order of their tags, messages in another (MadMPI)
    Shuffle,
    /// Receives and messages in the order of their tags (MadMPI)
    Burst,
    /// Receives in the order of their tags, messages in the opposite (K-means)
    Reverse,
    /// A ping-pong while receives for other messages wait (hints)
    Pingpong,
    /// Cholesky factorization by tiles: panels from a row and a column of processes
    Cholesky,
    /// An iterative solver: long messages of early neighbours wait while short ones come and go
    Solver,
    /// A manager that receives from any worker
    Manager,
    /// 26 neighbours in three dimensions, four variables each
    Halo,
}

/// Number of nonblocking allgathers in flight.
const WINDOW: u32 = 16;
/// Round trips in a step of the ping-pong.
const TRIPS: usize = 64;
/// Tiles in a column of the matrix that is factorized.
const TILES: u32 = 64;
/// Variables of a halo exchange.
const VARIABLES: u32 = 4;

/// Number and size of messages in flight, for the patterns of [`Pattern::takes_messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) messages: u32,
    /// Bytes of each message.
    pub(crate) bytes: u64,
}

/// The origin of a length of a queue in a generated trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Basis {
    /// A constant or formula of the workload was chosen to give the length in the paper.
    Fitted,
    /// The length follows from the algorithm and the workload, which were not chosen for it.
    Predicted,
    /// The command line gives the length.
    Given,
}

impl Basis {
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// The lengths of queues that a paper reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    /// Number of processes in the paper; 0 for any number.
    pub(crate) ranks: u32,
    pub(crate) prq: &'static str,
    pub(crate) umq: &'static str,
    pub(crate) source: &'static str,
    /// Origin of the lengths of PRQ and UMQ in the generated trace.
    pub(crate) basis: [Basis; 2],
}

impl Pattern {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns true if a rank receives anything.
    pub(crate) const fn reaches(self, rank: u32) -> bool {
        rank == 0 || !matches!(self, Self::Gather | Self::Manager)
    }

    /// Returns true if the pattern takes `--messages`, the number of messages in flight or of
    /// receives that wait, and `--bytes`.
    pub(crate) const fn takes_messages(self) -> bool {
        matches!(self, Self::Shuffle | Self::Burst | Self::Reverse | Self::Pingpong)
    }

    /// Returns the lengths of queues in a paper, and the default number of ranks. The default is
    /// not always the number of processes in the paper.
    pub(crate) const fn paper(self) -> (Paper, u32) {
        use Basis::{Fitted, Given, Predicted};
        const TAIL: &str = "Tail queues, Table 2";
        const FDS: &str = "Tail queues, Table 2; COL+PNP has long PRQs, too";
        const RADIX: &str = "COL+PNP, section 5.3.1";
        const COLLECTIVES: &str = "COL+PNP, section 5.2";
        const HINTS: &str = "hints, sections V.B and V.D";
        const FEW: [&str; 2] = ["10 to 20 queues are enough", ""];
        const ALL: [&str; 2] = ["as many as messages", ""];
        // For these patterns, `--messages` gives the length of the PRQ.
        const OF_FLIGHT: [Basis; 2] = [Given, Predicted];
        let (default, ranks, [prq, umq], source, basis) = match self {
            Self::Radix => (512, 0, ["around 10"; 2], RADIX, [Predicted; 2]),
            Self::Nbody => {
                (512, 512, ["over 100 (theta)"; 2], "COL+PNP, section 5.4.2", [Fitted; 2])
            }
            Self::Miniamr => {
                (512, 2048, ["makes up to 74 queues", ""], "COL+PNP, section 6", [Fitted; 2])
            }
            Self::Fds => (4096, 4096, ["24", "8147"], FDS, [Fitted; 2]),
            Self::Amg => (4096, 4096, ["543", "418"], TAIL, [Fitted; 2]),
            Self::Minimd => (4096, 4096, ["1", "11"], TAIL, [Fitted; 2]),
            Self::Lammps => {
                (240, 240, ["longer than UMQ", "short"], "K-means, section 5.2", [Fitted; 2])
            }
            Self::Gather => (4096, 0, ["all but one process", ""], COLLECTIVES, [Predicted; 2]),
            Self::Allreduce => (1024, 0, FEW, COLLECTIVES, [Predicted; 2]),
            // The number of calls at once (`WINDOW`) is chosen so that the calls fill the 10 to 20
            // queues of the paper.
            Self::Iallgather => (1024, 0, FEW, COLLECTIVES, [Fitted; 2]),
            Self::Shuffle | Self::Burst => (2, 0, ALL, HINTS, OF_FLIGHT),
            Self::Reverse => (2, 0, ALL, "K-means, section 5.1", OF_FLIGHT),
            Self::Pingpong => (2, 0, ["one more than waits", ""], "hints, section V.B", OF_FLIGHT),
            Self::Cholesky => (64, 0, [""; 2], "hints, section V.C, names it", [Predicted; 2]),
            Self::Halo | Self::Solver | Self::Manager => {
                (64, 0, [""; 2], "no paper", [Predicted; 2])
            }
        };
        (Paper { ranks, prq, umq, source, basis }, default)
    }

    /// Returns the default number and size of messages in flight.
    pub(crate) const fn usual_flight(self) -> Flight {
        let messages = match self {
            Self::Pingpong => 100,
            _ => 1024,
        };
        Flight { messages, bytes: 256 }
    }

    /// Generates every operation of one step of a rank. Only the patterns of
    /// [`Self::takes_messages`] use `flight`.
    pub(crate) fn play(
        self,
        receiver: Receiver,
        step: u32,
        flight: Flight,
        seed: u64,
        mut sink: impl FnMut(Op),
    ) {
        let seed = mix(mix(seed, u64::from(receiver.rank)), u64::from(step));
        for (exchange, number) in self.step(receiver, step, flight).iter().zip(0..) {
            exchange.play(receiver, mix(seed, number), &mut |_, op| sink(op));
        }
    }

    /// Returns the exchanges of one step of a rank.
    fn step(self, receiver: Receiver, step: u32, flight: Flight) -> Vec<Exchange> {
        let n = receiver.ranks;
        let others = n - 1;
        let is_odd = !step.is_multiple_of(2);
        let first = |count: u32| behind(1, count.clamp(1, others));
        let doubling = || Senders::Doubling(rounds(n));
        let (collective, point_to_point) = (Messages::collective, Messages::point_to_point);
        let (late, on_time) = (Exchange::late, Exchange::on_time);
        // Each message in flight has its own tag.
        let in_flight =
            |tag| Messages { len: flight.bytes, ..point_to_point(tag, first(1), flight.messages) };
        // MPICH gives each nonblocking collective operation the next tag.
        let call = tag::NONBLOCKING + step % (1 << 20) * WINDOW;
        match self {
            Self::Radix => vec![
                on_time(vec![collective(0, call, doubling())]),
                late(vec![collective(0, tag::ALLREDUCE, doubling())]),
                on_time(vec![point_to_point(0, first(1), 1)]),
            ],
            Self::Nbody => [1, 2].map(|part| nbody(part, others, n)).to_vec(),
            Self::Miniamr => {
                let size = (2 * n).isqrt();
                let groups = |second: u32| {
                    vec![
                        collective(0, tag::ALLREDUCE, first(size)),
                        collective(0, tag::ALLGATHER, first(second)),
                        point_to_point(0, first(2), 1),
                    ]
                };
                vec![on_time(groups(size)), late(groups(size / 2))]
            }
            Self::Fds if receiver.rank > 0 => {
                vec![on_time(vec![collective(0, tag::BROADCAST, Senders::Listed(vec![0]))])]
            }
            Self::Fds => vec![
                on_time(vec![
                    collective(0, tag::GATHERV, first(others)),
                    collective(1, tag::GATHERV, first(others)),
                    collective(0, tag::ALLGATHERV, first(n / 2)),
                    point_to_point(0, first(n / 16), 4),
                    point_to_point(4, first(n / 4), 1),
                ]),
                late(vec![
                    collective(0, tag::GATHERV, first(others)),
                    collective(1, tag::GATHERV, first(n / 4 * 3)),
                    point_to_point(0, first(n / 4), 1),
                ]),
            ],
            Self::Amg => vec![
                on_time(vec![point_to_point(0, first(543), 1)]),
                late(vec![point_to_point(0, first(418), 1)]),
                on_time(vec![collective(0, tag::ALLREDUCE, first(1))]),
            ],
            Self::Lammps => {
                let mut exchanges = swaps(others);
                exchanges.push(on_time(vec![point_to_point(6, first(n.isqrt()), 1)]));
                exchanges.push(late(vec![point_to_point(7, first(6), 1)]));
                exchanges
            }
            Self::Minimd => {
                let mut exchanges = swaps(others);
                let ahead = vec![point_to_point(6, first(6), 1), point_to_point(7, first(5), 1)];
                exchanges.push(late(ahead));
                exchanges
            }
            Self::Gather => vec![on_time(vec![collective(0, tag::GATHER, first(others))])],
            Self::Allreduce | Self::Iallgather => {
                let is_window = self == Self::Iallgather;
                let (tag, each) = if is_window { (call, WINDOW) } else { (tag::ALLREDUCE, 1) };
                let calls = |senders| vec![Messages { each, ..collective(0, tag, senders) }];
                if is_odd {
                    // The other ranks complete as much as they can without the late rank.
                    return vec![late(calls(doubling()))];
                }
                let partner = |round: u32| on_time(calls(behind(1 << round, 1)));
                let mut exchanges: Vec<_> = (0..rounds(n)).map(partner).collect();
                if is_window {
                    // Only the messages of the first round arrive in the order of the calls. In
                    // later rounds, a sender sends when it has completed the round before, so the
                    // order of the calls is lost.
                    exchanges[0].order = Order::Same;
                }
                exchanges
            }
            Self::Shuffle => vec![on_time(vec![in_flight(0)])],
            Self::Burst => vec![Exchange { order: Order::Same, ..on_time(vec![in_flight(0)]) }],
            Self::Reverse => {
                vec![Exchange { order: Order::Reversed, ..on_time(vec![in_flight(0)]) }]
            }
            Self::Pingpong => {
                let message = Messages { len: flight.bytes, ..point_to_point(0, first(1), 1) };
                let within = vec![on_time(vec![message]); TRIPS];
                vec![Exchange { order: Order::Same, within, ..on_time(vec![in_flight(1)]) }]
            }
            Self::Cholesky => cholesky(n, step % TILES),
            Self::Solver => solver(n, step),
            Self::Manager => {
                let answers = |tag, each| {
                    let answers = point_to_point(tag, behind(1, others), each);
                    vec![Messages { any_source: true, ..answers }]
                };
                vec![on_time(answers(0, 1)), late(answers(1, 2))]
            }
            Self::Halo => {
                let neighbours = Senders::Listed(neighbours(receiver));
                vec![Exchange::new(is_odd, vec![point_to_point(0, neighbours, VARIABLES)])]
            }
        }
    }
}

/// Returns the parameters of a job of this number of ranks over MPICH, with some of them set to
/// other values.
pub(crate) fn params(ranks: u32, set: &[(&str, &str)]) -> Result<Params, Error> {
    let ranks = ranks.to_string();
    let given = [("nprocs", ranks.as_str()), ("tag_layout", TagLayout::Mpich.name())];
    Ok(Params::from_lookup(|name| {
        let mut all = given.iter().chain(set);
        all.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })?)
}

const fn behind(first: u32, count: u32) -> Senders {
    Senders::Following { first, count }
}

/// Returns the number of rounds in which a doubling reaches every process.
const fn rounds(ranks: u32) -> u32 {
    (ranks - 1).ilog2() + 1
}

/// Returns six exchanges, each with one neighbour.
fn swaps(others: u32) -> Vec<Exchange> {
    let swap = |side| {
        let neighbour = behind(1 + side % others, 1);
        Exchange::on_time(vec![Messages::point_to_point(side, neighbour, 1)])
    };
    (0..6).map(swap).collect()
}

/// Returns an exchange of the N bodies. Part 1 fills the PRQ. Part 2 has half the messages, and
/// fills the UMQ. Fig. 1b of COL+PNP has 25,000 elements in the PRQ and 11,000 in the UMQ.
fn nbody(part: u32, others: u32, n: u32) -> Exchange {
    let partners = 16.min(others);
    let strangers = (n / 4 / part).saturating_sub(partners).min(others - partners);
    let mut sets = vec![
        Messages::collective(0, tag::ALLGATHER, behind(1, (n / 16 / part).clamp(1, others))),
        Messages::point_to_point(0, behind(1, partners), (n / 32 / part).max(1)),
    ];
    if strangers > 0 {
        sets.push(Messages::point_to_point(0, behind(1 + partners, strangers), 1));
    }
    Exchange::new(part == 2, sets)
}

/// Returns step k of the factorization of 64 by 64 tiles on a grid of p by q processes. The tiles
/// below the diagonal of column k come from the p processes that hold them. The first exchange
/// receives the tiles that the rows of the update need. The second exchange receives the tiles for
/// the columns, and the receiver is late for it in every other step.
fn cholesky(n: u32, k: u32) -> Vec<Exchange> {
    let p = n.isqrt().max(2).min(n - 1);
    let tiles = (TILES - k).div_ceil(p);
    let panel = |tag, count| Messages::point_to_point(tag + k * TILES, behind(1, p), count);
    vec![
        Exchange::on_time(vec![panel(0, tiles)]),
        Exchange::new(!k.is_multiple_of(2), vec![panel(TILES / 2, tiles)]),
    ]
}

/// Returns one sweep of the solver. In even steps, half of up to 24 neighbours send faces early. In
/// odd steps, the receives of faces wait. While the faces or receives wait, the other neighbours
/// send corners, and sums are reduced. The receiver is late for every other set of corners.
fn solver(n: u32, step: u32) -> Vec<Exchange> {
    let others = n - 1;
    let early = (others.min(24) / 2).max(1);
    let of = |first: u32, count: u32, tag, len| {
        let set = Messages::point_to_point(tag, behind(first, count), 1);
        vec![Messages { len, ..set }]
    };
    let rest = (others - early).min(early);
    let mut within = Vec::new();
    for round in 0..4 {
        if rest > 0 {
            let corners = of(1 + early, rest, 16 + round, 8 << round);
            within.push(Exchange::new(round % 2 == 1, corners));
        }
        let partner = behind(1 << (round % rounds(n)), 1);
        within.push(Exchange::on_time(vec![Messages::collective(0, tag::ALLREDUCE, partner)]));
    }
    let faces = Exchange::new(step.is_multiple_of(2), of(1, early, 0, 1 << 16));
    vec![Exchange { within, ..faces }]
}

/// Returns the 26 neighbours in a periodic box that is as cubic as the number of processes allows.
/// If a side is shorter than three, ranks are repeated, and the rank itself is left out.
fn neighbours(receiver: Receiver) -> Vec<u32> {
    let sides = sides(receiver.ranks);
    let at = [
        receiver.rank % sides[0],
        receiver.rank / sides[0] % sides[1],
        receiver.rank / sides[0] / sides[1],
    ];
    let mut ranks = Vec::with_capacity(26);
    for direction in 0..27 {
        let to = [direction % 3, direction / 3 % 3, direction / 9];
        let [x, y, z] = [0, 1, 2].map(|axis| (at[axis] + sides[axis] + to[axis] - 1) % sides[axis]);
        let rank = (z * sides[1] + y) * sides[0] + x;
        if rank != receiver.rank {
            ranks.push(rank);
        }
    }
    ranks
}

/// Returns three factors of `ranks`, chosen to be nearly equal.
fn sides(ranks: u32) -> [u32; 3] {
    let divisor = |of: u32, up_to: u32| (1..=up_to).rev().find(|side| of.is_multiple_of(*side));
    let cube = (1..=ranks).take_while(|side| side * side * side <= ranks).last().unwrap_or(1);
    let short = divisor(ranks, cube).unwrap_or(1);
    let middle = divisor(ranks / short, (ranks / short).isqrt()).unwrap_or(1);
    [ranks / short / middle, middle, short]
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
