// SPDX-License-Identifier: BSD-2-Clause
//! The patterns, with the lengths of queues in papers.
//!
//! COL+PNP is Ghazimirsaeed, Grant, Afsahi, Parallel Computing 89 (2019); Tail queues is Dosanjh,
//! Grant, Schonbein, Bridges, CCPE 2019; hints are *Hint-driven matching* in MPC-MPI; K-means is
//! Ghazimirsaeed, Afsahi. COL+PNP has speedups and numbers of queues rather than lengths. Where it
//! prints none, the patterns are those that give its numbers of queues and the shares of Fig. 1.

use clap::ValueEnum;

use super::basis::Basis;
use super::flight::Flight;
use super::stream::{Messages, Phase, Place, Sources, tag};

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

/// The lengths of queues that a paper reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paper {
    /// Number of processes in the paper; 0 for any number.
    pub(crate) ranks: u32,
    pub(crate) prq: &'static str,
    pub(crate) umq: &'static str,
    pub(crate) source: &'static str,
    /// Origin of our lengths of PRQ and UMQ.
    pub(crate) basis: [Basis; 2],
}

impl Pattern {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Returns the default number of processes, which is that of the paper.
    pub(crate) const fn usual_ranks(self) -> u32 {
        match self {
            Self::Radix | Self::Nbody | Self::Miniamr => 512,
            Self::Fds | Self::Amg | Self::Minimd | Self::Gather => 4096,
            Self::Lammps => 240,
            Self::Allreduce | Self::Iallgather => 1024,
            Self::Shuffle | Self::Burst | Self::Reverse | Self::Pingpong => 2,
            Self::Halo | Self::Cholesky | Self::Solver | Self::Manager => 64,
        }
    }

    /// Returns true if a rank receives anything.
    pub(crate) const fn reaches(self, rank: u32) -> bool {
        rank == 0 || !matches!(self, Self::Gather | Self::Manager)
    }

    /// Returns true if the pattern has options for the messages in flight, or the receives that
    /// wait, and for the length of messages.
    pub(crate) const fn takes_messages(self) -> bool {
        matches!(self, Self::Shuffle | Self::Burst | Self::Reverse | Self::Pingpong)
    }

    pub(crate) const fn paper(self) -> Paper {
        let (ranks, prq, umq, source) = match self {
            Self::Radix => (0, "around 10", "around 10", "COL+PNP, section 5.3.1"),
            Self::Nbody => (512, "over 100 (theta)", "over 100 (theta)", "COL+PNP, section 5.4.2"),
            Self::Miniamr => (2048, "makes up to 74 queues", "", "COL+PNP, section 6"),
            Self::Fds => (4096, "24", "8147", "Tail queues, Table 2; COL+PNP has long PRQs, too"),
            Self::Amg => (4096, "543", "418", "Tail queues, Table 2"),
            Self::Minimd => (4096, "1", "11", "Tail queues, Table 2"),
            Self::Lammps => (240, "longer than UMQ", "short", "K-means, section 5.2"),
            Self::Gather => (0, "all but one process", "", "COL+PNP, section 5.2"),
            Self::Allreduce | Self::Iallgather => {
                (0, "10 to 20 queues are enough", "", "COL+PNP, section 5.2")
            }
            Self::Shuffle | Self::Burst => {
                (0, "as many as messages", "", "hints, sections V.B and V.D")
            }
            Self::Reverse => (0, "as many as messages", "", "K-means, section 5.1"),
            Self::Pingpong => (0, "one more than waits", "", "hints, section V.B"),
            Self::Cholesky => (0, "", "", "hints, section V.C, names it"),
            Self::Halo | Self::Solver | Self::Manager => (0, "", "", "no paper"),
        };
        let basis = match self {
            // The messages follow from the algorithm, for any number of ranks.
            Self::Radix
            | Self::Gather
            | Self::Allreduce
            | Self::Halo
            | Self::Cholesky
            | Self::Solver
            | Self::Manager => [Basis::Predicted; 2],
            Self::Nbody | Self::Miniamr | Self::Fds | Self::Amg | Self::Minimd | Self::Lammps => {
                [Basis::Fitted; 2]
            }
            // The number of calls at once is chosen so that they fill the paper's 10 to 20 queues.
            Self::Iallgather => [Basis::Fitted; 2],
            Self::Shuffle | Self::Burst | Self::Reverse | Self::Pingpong => {
                [Basis::Given, Basis::Predicted]
            }
        };
        Paper { ranks, prq, umq, source, basis }
    }

    /// Returns the default messages in flight.
    pub(crate) const fn usual_flight(self) -> Flight {
        let messages = match self {
            Self::Pingpong => 100,
            _ => 1024,
        };
        Flight { messages, bytes: 256 }
    }

    /// Returns the phases of one step of a rank. `flight` is for patterns that take it.
    pub(crate) fn step(self, place: Place, step: u32, flight: Flight) -> Vec<Phase> {
        let n = place.ranks;
        let others = n - 1;
        let first = |count: u32| behind(1, count.clamp(1, others));
        let collective = Messages::collective;
        let point_to_point = Messages::point_to_point;
        // Nonblocking operations have no fixed tag in MPI; their tags count up.
        let call = tag::NONBLOCKING + step % (1 << 20) * WINDOW;
        match self {
            Self::Radix => {
                let doubling = Sources::Doubling(rounds(n));
                vec![
                    Phase::on_time(vec![collective(0, call, doubling.clone())]),
                    Phase::late(vec![collective(0, tag::ALLREDUCE, doubling)]),
                    Phase::on_time(vec![point_to_point(0, first(1), 1)]),
                ]
            }
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
                vec![Phase::on_time(groups(size)), Phase::late(groups(size / 2))]
            }
            Self::Fds if place.rank > 0 => {
                let root = Sources::Listed(vec![0]);
                vec![Phase::on_time(vec![collective(0, tag::BROADCAST, root)])]
            }
            Self::Fds => vec![
                Phase::on_time(vec![
                    collective(0, tag::GATHERV, first(others)),
                    collective(1, tag::GATHERV, first(others)),
                    collective(0, tag::ALLGATHERV, first(n / 2)),
                    point_to_point(0, first(n / 16), 4),
                    point_to_point(4, first(n / 4), 1),
                ]),
                Phase::late(vec![
                    collective(0, tag::GATHERV, first(others)),
                    collective(1, tag::GATHERV, first(n / 4 * 3)),
                    point_to_point(0, first(n / 4), 1),
                ]),
            ],
            Self::Amg => vec![
                Phase::on_time(vec![point_to_point(0, first(543), 1)]),
                Phase::late(vec![point_to_point(0, first(418), 1)]),
                Phase::on_time(vec![collective(0, tag::ALLREDUCE, first(1))]),
            ],
            Self::Lammps => {
                let mut phases = swaps(others);
                phases.push(Phase::on_time(vec![point_to_point(6, first(n.isqrt()), 1)]));
                phases.push(Phase::late(vec![point_to_point(7, first(6), 1)]));
                phases
            }
            Self::Minimd => {
                let mut phases = swaps(others);
                let ahead = vec![point_to_point(6, first(6), 1), point_to_point(7, first(5), 1)];
                phases.push(Phase::late(ahead));
                phases
            }
            Self::Gather => {
                vec![Phase::on_time(vec![collective(0, tag::GATHER, first(others))])]
            }
            Self::Allreduce if !step.is_multiple_of(2) => {
                let doubling = Sources::Doubling(rounds(n));
                vec![Phase::late(vec![collective(0, tag::ALLREDUCE, doubling)])]
            }
            Self::Allreduce => (0..rounds(n))
                .map(|round| {
                    let partner = behind(1 << round, 1);
                    Phase::on_time(vec![collective(0, tag::ALLREDUCE, partner)])
                })
                .collect(),
            // The other ranks complete as much as they can without the late one.
            Self::Iallgather if !step.is_multiple_of(2) => {
                let doubling = Sources::Doubling(rounds(n));
                let calls = Messages { each: WINDOW, ..collective(0, call, doubling) };
                vec![Phase::late(vec![calls])]
            }
            Self::Iallgather => (0..rounds(n))
                .map(|round| {
                    let partner = behind(1 << round, 1);
                    let calls = Messages { each: WINDOW, ..collective(0, call, partner) };
                    let phase = Phase::on_time(vec![calls]);
                    // Later rounds of the calls begin as their sender completes them.
                    if round == 0 { phase.in_order() } else { phase }
                })
                .collect(),
            Self::Shuffle => vec![Phase::on_time(vec![flight.from(first(1))])],
            Self::Burst => vec![Phase::on_time(vec![flight.from(first(1))]).in_order()],
            Self::Reverse => vec![Phase::on_time(vec![flight.from(first(1))]).reversed()],
            Self::Pingpong => {
                let message = Messages { len: flight.bytes, ..point_to_point(0, first(1), 1) };
                let trip = Phase::on_time(vec![message]);
                let waiting = Messages { tag: 1, ..flight.from(first(1)) };
                vec![Phase::on_time(vec![waiting]).in_order().with(vec![trip; TRIPS])]
            }
            Self::Cholesky => cholesky(n, step % TILES),
            Self::Solver => solver(n, step),
            Self::Manager => {
                let answers = |tag, each| {
                    let answers = point_to_point(tag, behind(1, others), each);
                    vec![Messages { any_source: true, ..answers }]
                };
                vec![Phase::on_time(answers(0, 1)), Phase::late(answers(1, 2))]
            }
            Self::Halo => {
                let neighbours = Sources::Listed(neighbours(place));
                let faces = vec![point_to_point(0, neighbours, VARIABLES)];
                vec![if step.is_multiple_of(2) {
                    Phase::on_time(faces)
                } else {
                    Phase::late(faces)
                }]
            }
        }
    }
}

const fn behind(first: u32, count: u32) -> Sources {
    Sources::Behind { first, count }
}

/// Returns the number of rounds in which a doubling reaches every process.
const fn rounds(ranks: u32) -> u32 {
    (ranks - 1).ilog2() + 1
}

/// Returns an exchange with six neighbours, one after the other.
fn swaps(others: u32) -> Vec<Phase> {
    let swap = |side| {
        let neighbour = behind(1 + side % others, 1);
        Phase::on_time(vec![Messages::point_to_point(side, neighbour, 1)])
    };
    (0..6).map(swap).collect()
}

/// Returns the phase of the PRQ (part 1), or with half the messages that of the UMQ (part 2). Fig.
/// 1b has 25,000 and 11,000 elements.
fn nbody(part: u32, others: u32, n: u32) -> Phase {
    let partners = 16.min(others);
    let strangers = (n / 4 / part).saturating_sub(partners).min(others - partners);
    let mut sets = vec![
        Messages::collective(0, tag::ALLGATHER, behind(1, (n / 16 / part).clamp(1, others))),
        Messages::point_to_point(0, behind(1, partners), (n / 32 / part).max(1)),
    ];
    if strangers > 0 {
        sets.push(Messages::point_to_point(0, behind(1 + partners, strangers), 1));
    }
    if part == 1 { Phase::on_time(sets) } else { Phase::late(sets) }
}

/// Returns step k of the factorization of 64 by 64 tiles on a grid of p by q processes. The tiles
/// below the diagonal of column k come from the p processes that have them. The first phase is for
/// the rows of the update. The second is for its columns, and the receiver is late in every other
/// step.
fn cholesky(n: u32, k: u32) -> Vec<Phase> {
    let p = n.isqrt().max(2).min(n - 1);
    let tiles = (TILES - k).div_ceil(p);
    let panel = |tag, count| Messages::point_to_point(tag + k * TILES, behind(1, p), count);
    let columns = vec![panel(TILES / 2, tiles)];
    vec![
        Phase::on_time(vec![panel(0, tiles)]),
        if k.is_multiple_of(2) { Phase::on_time(columns) } else { Phase::late(columns) },
    ]
}

/// Returns one sweep. In even steps, half of up to 24 neighbours send faces early. In odd steps,
/// receives of faces wait. In between, the other neighbours send corners and sums are reduced; the
/// receiver is late for every other set of corners.
fn solver(n: u32, step: u32) -> Vec<Phase> {
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
            within.push(if round % 2 == 0 {
                Phase::on_time(corners)
            } else {
                Phase::late(corners)
            });
        }
        let partner = behind(1 << (round % rounds(n)), 1);
        within.push(Phase::on_time(vec![Messages::collective(0, tag::ALLREDUCE, partner)]));
    }
    let faces = of(1, early, 0, 1 << 16);
    let faces = if step.is_multiple_of(2) { Phase::late(faces) } else { Phase::on_time(faces) };
    vec![faces.with(within)]
}

/// Returns the 26 neighbours in a periodic box that is as cubic as the number of processes allows.
/// There are fewer distinct ones if a side is shorter than three.
fn neighbours(place: Place) -> Vec<u32> {
    let sides = sides(place.ranks);
    let at =
        [place.rank % sides[0], place.rank / sides[0] % sides[1], place.rank / sides[0] / sides[1]];
    let mut ranks = Vec::with_capacity(26);
    for direction in 0..27 {
        let to = [direction % 3, direction / 3 % 3, direction / 9];
        let [x, y, z] = [0, 1, 2].map(|axis| (at[axis] + sides[axis] + to[axis] - 1) % sides[axis]);
        let rank = (z * sides[1] + y) * sides[0] + x;
        if rank != place.rank {
            ranks.push(rank);
        }
    }
    ranks
}

/// Returns three factors that are as equal as possible.
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
