// SPDX-License-Identifier: BSD-2-Clause
//! Computes the demand of a recorded run on the NICs of Slingshot: list entries, bytes of unexpected
//! messages, and sends that wait for a receive. All ranks are replayed together, in the order of their
//! times.

use std::collections::{BTreeMap, HashMap};

use indicatif::ProgressBar;
use nic::replay::Change;
use nic::trace::{Address, Op};

use super::list_entries::{Abort, ENGINES, Element, ListEntries, Provider, UsesEntries};
use super::polls::{self, BetweenPolls};
use super::sends::{Moment, Sends};
use crate::error::Error;
use crate::settings::Settings;
use crate::text::{count, whole};
use crate::traces::node::ByAddress;
use crate::traces::together::Step;
use crate::traces::{Found, JointReplay, NicEngines, Trace, play};

/// The largest numbers of one endpoint. Each may be of another moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfEndpoint {
    pub(crate) rank: Option<u32>,
    /// Number of its engine among those of all NICs.
    pub(crate) engine: usize,
    /// Receives that wait, and unexpected messages.
    pub(crate) receives: u64,
    pub(crate) unexpected: u64,
    /// Bytes of unexpected messages in buffers.
    pub(crate) buffered: u64,
    /// Sends by rendezvous without a match.
    pub(crate) open_sends: u64,
    /// Nanoseconds since the run began when it left the hardware in mode hybrid.
    pub(crate) left_at: Option<u64>,
}

impl OfEndpoint {
    /// Returns text such as `rank 3`.
    pub(crate) fn name(&self) -> String {
        self.rank.map_or_else(|| "a process".to_owned(), |rank| format!("rank {rank}"))
    }
}

/// The knowledge about sends.
#[derive(Clone, Debug)]
pub(crate) enum KnownSends {
    /// Sends were not recorded.
    No,
    /// Some messages did not arrive before the recording ended.
    Incomplete,
    /// The number of sends at which the program hangs, if it does, and the ranks that wait.
    Yes { hangs_up_to: Option<(u64, Vec<usize>)> },
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
    /// The largest numbers between two polls; `None` if polls were not recorded.
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
            (_, Some((_, own))) if *own == held => format!(", all of {victim}"),
            _ => String::new(),
        };
        Some(format!(
            "{victim} finds no entry for {element}: its engine is full ({}{cause}), and it \
             has no unexpected message to move to the host",
            count(held, "element")
        ))
    }
}

/// An unexpected message: its bytes in a buffer, and its number if it was sent by rendezvous.
type Unexpected = (u64, Option<usize>);

/// The state of a trace in the replay.
#[derive(Debug, Default)]
struct OfTrace {
    endpoint: usize,
    is_tagged: bool,
    unexpected: HashMap<u64, Unexpected>,
    /// Moments at which the receives that wait were posted.
    posted: HashMap<u64, Moment>,
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
    /// Finds the endpoints of the traces.
    fn of(traces: &[Trace]) -> Self {
        let (mut all, mut numbers) = (Vec::new(), BTreeMap::new());
        let engines = NicEngines::of(traces, ENGINES);
        let (mut by_address, mut by_rank) = (HashMap::new(), HashMap::new());
        let mut of_trace = |trace: &Trace| {
            *numbers.entry(trace.endpoint()).or_insert_with(|| {
                let engine = engines.engine(&trace.endpoint());
                let rank = trace.header.rank;
                all.push(OfEndpoint { rank, engine, ..OfEndpoint::default() });
                let endpoint = all.len() - 1;
                by_address.extend(trace.address().map(|at| (at, endpoint as u32)));
                by_rank.extend(rank.filter(|_| trace.is_generated()).map(|rank| (rank, endpoint)));
                endpoint
            })
        };
        let of_traces = traces.iter().map(&mut of_trace).collect();
        let endpoints_a_nic = engines.endpoints_a_nic as u64;
        Self { all, of_traces, endpoints_a_nic, by_address: ByAddress::new(by_address), by_rank }
    }

    /// Returns the endpoint of a peer number of a trace, whose peers have these addresses.
    fn of_peer(&self, number: u32, peers: &BTreeMap<u32, Address>) -> Option<usize> {
        let of_address = || self.by_address.at(peers.get(&number)?).map(|of| of as usize);
        self.by_rank.get(&number).copied().or_else(of_address)
    }
}

/// Computes the demand of a run.
pub(crate) fn of(found: &Found, provider: Provider) -> Result<Demand, Error> {
    play::with_bar(found, 2, |bar| {
        let (demand, of_traces) = replayed(found, provider, bar)?;
        let left_at: Vec<_> = of_traces.iter().map(|&of| demand.endpoints[of].left_at).collect();
        Ok(Demand { between_polls: polls::of(found, provider, &left_at, bar)?, ..demand })
    })
}

/// Returns true if a trace has the sends of its rank, of which there may be none.
fn records_sends(trace: &Trace) -> bool {
    trace.header.config.get("trace_sends").is_some_and(|value| value == "on")
}

/// Replays all traces. Returns the demand without polls, and the endpoint of each trace.
fn replayed(
    traces: &[Trace],
    provider: Provider,
    bar: &ProgressBar,
) -> Result<(Demand, Vec<usize>), Error> {
    let settings = Settings::default().with([("device", &"ideal")]);
    let mut together = JointReplay::without_pool(traces.iter(), &settings)?;
    let endpoints = Endpoints::of(traces);
    let mut counted = Counted::new(&endpoints, traces, provider);
    let mut has_threads = false;
    while let Some((Step { at, recorded, .. }, op, change)) = together.step_with_changes(bar)? {
        let player = &together.players[at];
        has_threads |= player.thread().number > 0;
        let peer = |number| endpoints.of_peer(number, player.peers());
        let met = counted.operation(at, &op, recorded, peer);
        if let Some(change) = change {
            counted.change(at, change, met);
            counted.note_left(at, recorded);
        }
    }
    let Counted { mut all, modes: [hardware, hybrid], sends, list_entries, .. } = counted;
    for (of, open) in all.iter_mut().zip(sends.most_open()) {
        of.open_sends = open;
    }
    let sends = match (sends.recorded, sends.are_complete()) {
        (0, _) if !traces.iter().any(records_sends) => KnownSends::No,
        (_, false) => KnownSends::Incomplete,
        // The order of the operations of two threads may be another one.
        _ if has_threads => KnownSends::Yes { hangs_up_to: None },
        _ => KnownSends::Yes { hangs_up_to: sends.hangs_up_to() },
    };
    let mut on_engine = BTreeMap::<_, u64>::new();
    all.iter().for_each(|of| *on_engine.entry(of.engine).or_default() += 1);
    let demand = Demand {
        endpoints: all,
        list_entries,
        endpoints_an_engine: on_engine.into_values().max().unwrap_or(0),
        endpoints_a_nic: endpoints.endpoints_a_nic,
        hardware,
        hybrid,
        sends,
        between_polls: None,
    };
    Ok((demand, endpoints.of_traces))
}

/// The elements of an endpoint now.
#[derive(Clone, Copy, Debug, Default)]
struct Elements {
    receives: u64,
    unexpected: u64,
    /// Bytes of the unexpected messages in buffers.
    buffered: u64,
}

/// A message that an operation brought, and the moment of the operation.
#[derive(Clone, Copy, Debug)]
struct Met {
    /// Number of the message that arrived, if it was sent by rendezvous.
    rendezvous: Option<usize>,
    moment: Moment,
}

/// The counts of the replay.
struct Counted {
    provider: Provider,
    contexts: Vec<OfTrace>,
    /// The largest numbers of each endpoint.
    all: Vec<OfEndpoint>,
    held: Vec<Elements>,
    /// List entries of each engine in mode hardware now, if an engine had any number of them.
    on_engines: Vec<u64>,
    list_entries: u64,
    modes: [ListEntries; 2],
    sends: Sends,
}

impl Counted {
    fn new(endpoints: &Endpoints, traces: &[Trace], provider: Provider) -> Self {
        let Endpoints { all, of_traces, .. } = endpoints;
        let engine_of: Vec<_> = all.iter().map(|of| of.engine).collect();
        let entries = |mode| ListEntries::new(mode, provider.available, &engine_of, of_traces);
        let mut on_engines = vec![0; engine_of.iter().map(|of| of + 1).max().unwrap_or(0)];
        engine_of.iter().for_each(|of| on_engines[*of] += UsesEntries::Hardware.buffers());
        let contexts = traces.iter().zip(of_traces).map(|(trace, &endpoint)| OfTrace {
            endpoint,
            is_tagged: trace.header.context == "tagged",
            ..OfTrace::default()
        });
        Self {
            provider,
            contexts: contexts.collect(),
            all: all.clone(),
            held: vec![Elements::default(); all.len()],
            list_entries: on_engines.iter().copied().max().unwrap_or(0),
            on_engines,
            modes: [entries(UsesEntries::Hardware), entries(UsesEntries::Hybrid)],
            sends: Sends::new(all.len(), provider.eager),
        }
    }

    /// Counts an operation of the trace `at`, `now` nanoseconds since the run began. `peer` returns
    /// the endpoint of a peer number.
    fn operation(
        &mut self,
        at: usize,
        op: &Op,
        now: u64,
        peer: impl Fn(u32) -> Option<usize>,
    ) -> Met {
        let Self { contexts, sends, .. } = self;
        let OfTrace { endpoint, is_tagged, peers, .. } = &mut contexts[at];
        let (endpoint, is_tagged) = (*endpoint, *is_tagged);
        let mut peer = |number| *peers.entry(number).or_insert_with(|| peer(number));
        let mut met = Met { rendezvous: None, moment: Moment::START };
        match op {
            Op::Send(sent) => match peer(sent.peer) {
                Some(to) => sends.send(endpoint, to, is_tagged, sent.len, now),
                None => sends.recorded += 1,
            },
            Op::Arrive(envelope) => {
                met.rendezvous = peer(envelope.source)
                    .and_then(|from| sends.arrive(from, endpoint, is_tagged, envelope.len));
            }
            Op::Post(_) | Op::PostAnyway(_) | Op::Claim(_) | Op::Discard(_) => {
                met.moment = sends.moment(endpoint, now);
            }
            _ => {}
        }
        met
    }

    /// Notes the time of an operation of the trace `at` with which its endpoint left the hardware.
    fn note_left(&mut self, at: usize, now: u64) {
        let endpoint = self.contexts[at].endpoint;
        if self.modes[1].endpoints[endpoint].has_left {
            self.all[endpoint].left_at.get_or_insert(now);
        }
    }

    /// Counts the change that the operation `met` made in the queues of the trace `at`.
    fn change(&mut self, at: usize, change: Change, met: Met) {
        let Self { contexts, sends, modes, .. } = self;
        let OfTrace { endpoint, unexpected, posted, .. } = &mut contexts[at];
        let held = &mut self.held[*endpoint];
        let before = held.receives + held.unexpected;
        let mut matched = |message: Option<usize>, received| {
            message.into_iter().for_each(|message| sends.matched(message, received));
        };
        match change {
            Change::Posted(number, _) => {
                posted.insert(number, met.moment);
                held.receives += 1;
                modes.iter_mut().for_each(|of| of.add(at, Element::Receive(number)));
            }
            Change::Matched(number) => {
                if let Some(received) = posted.remove(&number) {
                    matched(met.rendezvous, received);
                    held.receives -= 1;
                    modes.iter_mut().for_each(|of| of.remove(at, Element::Receive(number)));
                }
            }
            // A buffer that takes several messages has room left, or a probe found a message.
            Change::Found(number) => {
                matched(met.rendezvous, posted.get(&number).copied().unwrap_or(Moment::START));
            }
            Change::Kept(number, envelope) => {
                let (_, bytes) = self.provider.buffered(envelope.len);
                unexpected.insert(number, (bytes, met.rendezvous));
                held.unexpected += 1;
                held.buffered = held.buffered.saturating_add(bytes);
                modes.iter_mut().for_each(|of| of.add(at, Element::Message(number)));
            }
            Change::Taken(number) => {
                if let Some((bytes, rendezvous)) = unexpected.remove(&number) {
                    matched(rendezvous, met.moment);
                    held.unexpected -= 1;
                    held.buffered = held.buffered.saturating_sub(bytes);
                    modes.iter_mut().for_each(|of| of.remove(at, Element::Message(number)));
                }
            }
        }
        let most = &mut self.all[*endpoint];
        most.receives = most.receives.max(held.receives);
        most.unexpected = most.unexpected.max(held.unexpected);
        most.buffered = most.buffered.max(held.buffered);
        let on_engine = &mut self.on_engines[most.engine];
        *on_engine = *on_engine + held.receives + held.unexpected - before;
        self.list_entries = self.list_entries.max(*on_engine);
    }
}
