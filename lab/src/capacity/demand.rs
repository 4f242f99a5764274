// SPDX-License-Identifier: BSD-2-Clause
//! What a recorded run demands of the NICs of Slingshot: list entries, bytes of unexpected messages,
//! and sends that wait for a receive. All ranks are replayed together, in the order of their times.

use std::collections::{BTreeMap, HashMap};

use indicatif::ProgressBar;
use nic::replay::Change;
use nic::trace::Op;

use super::list_entries::{Abort, ENGINES, Element, ListEntries, Provider, UsesEntries};
use super::polls::{self, BetweenPolls};
use super::sends::Sends;
use crate::error::Error;
use crate::settings::Settings;
use crate::text::whole;
use crate::traces::node::ByAddress;
use crate::traces::together::Step;
use crate::traces::{Found, JointReplay, Trace, play};

/// What one endpoint demands at most. Each number may be of another moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfEndpoint {
    pub(crate) rank: Option<u32>,
    /// Number of its engine among those of all NICs.
    pub(crate) engine: usize,
    /// Receives that wait, and unexpected messages.
    pub(crate) receives: u64,
    pub(crate) unexpected: u64,
    /// Bytes of unexpected messages in buffers, and their number at that moment.
    pub(crate) buffered: u64,
    pub(crate) buffered_messages: u64,
    /// Sends by rendezvous without a match.
    pub(crate) open_sends: u64,
}

impl OfEndpoint {
    /// Returns text such as `rank 3`.
    pub(crate) fn name(&self) -> String {
        self.rank.map_or_else(|| "a process".to_owned(), |rank| format!("rank {rank}"))
    }
}

/// What is known of the sends.
#[derive(Clone, Debug)]
pub(crate) enum KnownSends {
    No,
    /// Some messages did not arrive before the recording ended.
    Incomplete,
    /// The number of sends at which the program hangs, if it does, and the ranks that wait.
    Yes {
        hangs_up_to: Option<(u64, Vec<usize>)>,
    },
}

/// The demand of a run.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) endpoints: Vec<OfEndpoint>,
    /// Largest number of list entries that an engine needs in mode hardware, buffers included, in the
    /// order of the recorded times.
    pub(crate) list_entries: u64,
    /// Largest number of endpoints on an engine, and on a NIC.
    pub(crate) endpoints_an_engine: u64,
    pub(crate) endpoints_a_nic: u64,
    pub(crate) hardware: ListEntries,
    pub(crate) hybrid: ListEntries,
    pub(crate) sends: KnownSends,
    /// What comes between two polls; `None` if polls were not recorded.
    pub(crate) between_polls: Option<BetweenPolls>,
}

impl Demand {
    /// Returns text on the abort of mode hardware, with the victim and the endpoint that holds most
    /// entries. Returns `None` if the run does not abort.
    pub(crate) fn abort_text(&self) -> Option<String> {
        let abort: &Abort = self.hardware.abort.as_ref()?;
        let victim = self.endpoints[abort.victim].name();
        let held: u64 = abort.held.iter().map(|(_, held)| held).sum();
        let most = abort.held.iter().max_by_key(|(_, held)| *held);
        let own = abort.held.iter().find(|(endpoint, _)| *endpoint == abort.victim);
        let element = match abort.is_receive {
            true => format!("its receive {} that waits", whole(abort.receives + 1)),
            false => "an unexpected message".to_owned(),
        };
        let cause = match (most, own) {
            (Some((cause, most)), Some((_, own))) if most > own => {
                let cause = self.endpoints[*cause].name();
                format!(", {} of {cause} and {} of {victim}", whole(*most), whole(*own))
            }
            _ => {
                format!(", all of {victim}").repeat(usize::from(own.is_some_and(|of| of.1 == held)))
            }
        };
        Some(format!(
            "{victim} finds no entry for {element}: its engine is full ({} elements{cause}), and it has no unexpected \
             message to move to the host",
            whole(held)
        ))
    }
}

/// An unexpected message: its bytes in a buffer, and its number if it was sent by rendezvous.
type Unexpected = (u64, Option<usize>);

/// The state of a trace in the replay.
#[derive(Debug, Default)]
struct Context {
    endpoint: usize,
    is_tagged: bool,
    unexpected: HashMap<u64, Unexpected>,
    /// Places of the receives that wait.
    places: HashMap<u64, u64>,
    /// Endpoints of peers, by number of the peer.
    peers: HashMap<u32, Option<usize>>,
}

/// The endpoints of traces.
struct Endpoints {
    all: Vec<OfEndpoint>,
    /// Endpoint of each trace.
    of_traces: Vec<usize>,
    endpoints_a_nic: u64,
    by_address: ByAddress,
    /// Endpoints by rank, for generated traces, whose peer numbers are ranks.
    by_rank: HashMap<u32, usize>,
}

impl Endpoints {
    /// Finds the endpoints, and assigns them to engines in the order of the traces. Missing ranks have
    /// an engine, too, if each rank of a NIC has one endpoint and the numbers of the ranks are in steps.
    fn of(traces: &[Trace]) -> Self {
        let (mut all, mut numbers) = (Vec::new(), BTreeMap::new());
        let mut nics: BTreeMap<_, (usize, usize)> = BTreeMap::new();
        let (mut by_address, mut by_rank) = (HashMap::new(), HashMap::new());
        let mut of_trace = |trace: &Trace| {
            *numbers.entry(trace.endpoint()).or_insert_with(|| {
                let number = nics.len();
                let (nic, given) = nics.entry(trace.host()).or_insert((number, 0));
                let engine = *nic * ENGINES + *given % ENGINES;
                *given += 1;
                let rank = trace.header.rank;
                all.push(OfEndpoint { rank, engine, ..OfEndpoint::default() });
                let endpoint = all.len() - 1;
                by_address.extend(trace.address().map(|at| (at, endpoint as u32)));
                by_rank.extend(rank.filter(|_| trace.is_generated()).map(|rank| (rank, endpoint)));
                endpoint
            })
        };
        let of_traces = traces.iter().map(&mut of_trace).collect();
        give_engines(&mut all);
        let endpoints_a_nic = nics.values().map(|(_, given)| *given as u64).max().unwrap_or(0);
        Self { all, of_traces, endpoints_a_nic, by_address: ByAddress::new(by_address), by_rank }
    }
}

/// Gives the endpoints of each NIC their engines by the number of the rank, if the numbers are in equal
/// steps where ranks are there: a rank that is missing keeps its place.
fn give_engines(all: &mut [OfEndpoint]) {
    let mut nics: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, of) in all.iter().enumerate() {
        nics.entry(of.engine / ENGINES).or_default().push(at);
    }
    for (nic, members) in nics {
        let ranks: Option<Vec<u64>> =
            members.iter().map(|&at| all[at].rank.map(u64::from)).collect();
        let Some(ranks) = ranks.filter(|ranks| ranks.is_sorted_by(|one, next| one < next)) else {
            continue;
        };
        let step = ranks.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1);
        if ranks.iter().any(|rank| (rank - ranks[0]) % step != 0) {
            continue;
        }
        for (&at, rank) in members.iter().zip(&ranks) {
            let place = (rank - ranks[0]) / step;
            all[at].engine = nic * ENGINES + (place % ENGINES as u64) as usize;
        }
    }
}

/// Computes the demand of a run.
pub(crate) fn of(found: &Found, provider: Provider) -> Result<Demand, Error> {
    play::with_bar(found, 2, |bar| {
        let demand = replayed(found, provider, bar)?;
        Ok(Demand { between_polls: polls::of(found, provider, bar)?, ..demand })
    })
}

fn replayed(traces: &[Trace], provider: Provider, bar: &ProgressBar) -> Result<Demand, Error> {
    let settings = Settings::default().with([("device", &"ideal")]);
    let mut together = JointReplay::without_pool(traces.iter(), &settings)?;
    let Endpoints { mut all, of_traces, endpoints_a_nic, by_address, by_rank } =
        Endpoints::of(traces);
    let engine_of: Vec<_> = all.iter().map(|of| of.engine).collect();
    let entries = |mode| ListEntries::new(mode, provider.available, &engine_of, &of_traces);
    let mut modes = [entries(UsesEntries::Hardware), entries(UsesEntries::Hybrid)];
    let mut sends = Sends::new(all.len(), provider.eager);
    let mut contexts: Vec<Context> = Vec::with_capacity(traces.len());
    for (trace, &endpoint) in traces.iter().zip(&of_traces) {
        let is_tagged = trace.header.context == "tagged";
        contexts.push(Context { endpoint, is_tagged, ..Context::default() });
    }
    // Receives, unexpected messages, bytes of those in buffers, and the number of those.
    let mut now = vec![[0_u64; 4]; all.len()];
    let mut on_engines = vec![0_u64; 1 + engine_of.iter().max().unwrap_or(&0)];
    engine_of.iter().for_each(|engine| on_engines[*engine] += UsesEntries::Hardware.buffers());
    let mut list_entries = on_engines.iter().copied().max().unwrap_or(0);
    let mut has_threads = false;
    while let Some((Step { at, recorded, .. }, op, change)) = together.step_with_changes(bar)? {
        let Context { endpoint, is_tagged, unexpected, places, peers } = &mut contexts[at];
        let endpoint = *endpoint;
        has_threads |= together.players[at].thread().number > 0;
        let mut peer = |number: u32| {
            *peers.entry(number).or_insert_with(|| match by_rank.get(&number) {
                Some(&endpoint) => Some(endpoint),
                None => {
                    let address = together.players[at].peers().get(&number)?;
                    by_address.at(address).map(|endpoint| endpoint as usize)
                }
            })
        };
        let (mut rendezvous, mut place) = (None, 0);
        match op {
            Op::Send(sent) => match peer(sent.peer) {
                Some(to) => sends.send(endpoint, to, *is_tagged, sent.len),
                None => sends.recorded += 1,
            },
            Op::Arrive(envelope) => {
                let from = peer(envelope.source);
                rendezvous =
                    from.and_then(|from| sends.arrive(from, endpoint, *is_tagged, envelope.len));
            }
            Op::Post(_) | Op::PostAnyway(_) | Op::Claim(_) | Op::Discard(_) => {
                place = sends.place(endpoint);
            }
            _ => {}
        }
        let of = &mut now[endpoint];
        let before = of[0] + of[1];
        match change {
            Some(Change::Posted(number, _)) => {
                places.insert(number, place);
                of[0] += 1;
                modes.iter_mut().for_each(|of| of.add(at, Element::Receive(number), recorded));
            }
            Some(Change::Matched(number)) => {
                if let Some(place) = places.remove(&number) {
                    rendezvous.into_iter().for_each(|message| sends.matched(message, place));
                    of[0] -= 1;
                    modes.iter_mut().for_each(|of| of.remove(at, Element::Receive(number)));
                }
            }
            // A buffer that takes several messages has room left, or a probe found a message.
            Some(Change::Found(number)) => {
                let place = places.get(&number).copied().unwrap_or(0);
                rendezvous.into_iter().for_each(|message| sends.matched(message, place));
            }
            Some(Change::Kept(number, envelope)) => {
                let is_eager = envelope.len <= provider.eager;
                let bytes = if is_eager { envelope.len } else { provider.first_part };
                unexpected.insert(number, (bytes, rendezvous));
                of[1] += 1;
                of[2] = of[2].saturating_add(bytes);
                of[3] += u64::from(bytes > 0);
                modes.iter_mut().for_each(|of| of.add(at, Element::Message(number), recorded));
            }
            Some(Change::Taken(number)) => {
                if let Some((bytes, rendezvous)) = unexpected.remove(&number) {
                    rendezvous.into_iter().for_each(|message| sends.matched(message, place));
                    of[1] -= 1;
                    of[2] = of[2].saturating_sub(bytes);
                    of[3] -= u64::from(bytes > 0);
                    modes.iter_mut().for_each(|of| of.remove(at, Element::Message(number)));
                }
            }
            None => {}
        }
        let held = of[0] + of[1];
        let on_engine = &mut on_engines[engine_of[endpoint]];
        *on_engine = *on_engine + held - before;
        list_entries = list_entries.max(*on_engine);
        let most = &mut all[endpoint];
        most.receives = most.receives.max(of[0]);
        most.unexpected = most.unexpected.max(of[1]);
        if of[2] > most.buffered {
            (most.buffered, most.buffered_messages) = (of[2], of[3]);
        }
    }
    for (of, open) in all.iter_mut().zip(&sends.most_open) {
        of.open_sends = *open;
    }
    let sends = match (sends.recorded, sends.are_complete()) {
        (0, _) => KnownSends::No,
        (_, false) => KnownSends::Incomplete,
        // The order of the operations of two threads may be another one.
        _ if has_threads => KnownSends::Yes { hangs_up_to: None },
        _ => KnownSends::Yes { hangs_up_to: sends.hangs_up_to() },
    };
    let mut on_engine = BTreeMap::<_, u64>::new();
    all.iter().for_each(|of| *on_engine.entry(of.engine).or_default() += 1);
    let endpoints_an_engine = on_engine.into_values().max().unwrap_or(0);
    let [hardware, hybrid] = modes;
    let endpoints = all;
    Ok(Demand {
        endpoints,
        list_entries,
        endpoints_an_engine,
        endpoints_a_nic,
        hardware,
        hybrid,
        sends,
        between_polls: None,
    })
}
