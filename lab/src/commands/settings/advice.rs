// SPDX-License-Identifier: BSD-2-Clause
//! Settings of the provider cxi for a recorded program, each with its reason.
//!
//! With margin g, P receives that wait at an endpoint, N list entries of an engine, and A entries of
//! an engine that the job may use:
//!
//! ```text
//! mode        software  if g P > 65,527: receives have 16-bit IDs (cxip_msg.c:72)
//!             hardware  if g N <= A
//!             software  if mode hybrid puts more than half of an engine's elements on the host
//!             hybrid    otherwise
//! OFLOW_BUF_SIZE   E + g W / OFLOW_BUF_MIN_POSTED for W bytes of unexpected messages between two
//!                  polls. E is the longest message that is sent eagerly: a buffer takes messages
//!                  while it has room for one of E bytes (cxip_msg_hpc.c:1135)
//! DEFAULT_CQ_SIZE  2 g V for V events between two polls: above half of its slots, sends wait
//! DEFAULT_TX_SIZE  g O + 64 for O sends by rendezvous without a match
//! ```
//! Of several runs, the largest number counts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Serialize;

use super::assignments::Assignment;
use super::cxi::{self, Memory, binary};
use super::slurm::Limits;
use super::stacks::{Defaults, Mode, Stack};
use super::variables::PREFIX;
use crate::capacity::BetweenPolls;
use crate::capacity::demand::{Demand, KnownSends, OfEndpoint};
use crate::capacity::list_entries::{self, ListEntries, UsesEntries};
use crate::results::ranks;
use crate::stats::Range;
use crate::text::{count, percent, whole, whole_share};

/// Largest number of receives of an endpoint in the modes hardware and hybrid. They have 16-bit IDs,
/// of which the buffers of mode hybrid take 9.
const RECEIVE_IDS: u64 = 65_536 - UsesEntries::Hybrid.buffers();
/// Largest value of `DEFAULT_TX_SIZE` (`cxip_info.c:1241`).
const LARGEST_TX: u64 = 16_384;
/// Sizes of buffers are multiples of this, and at least [`SMALLEST_BUFFER`]. Our choice.
const STEP: u64 = 64 << 10;
const SMALLEST_BUFFER: u64 = 1 << 20;
/// Largest buffer that is proposed. Our choice.
const LARGEST_BUFFER: u64 = 64 << 20;
/// Default of `FI_CXI_CQ_FILL_PERCENT` (`cxip_info.c:1159`).
const FILL_PERCENT: u64 = 50;
/// Slots of an event queue in a huge page of 2 MiB.
const HUGE_PAGE: u64 = 32_768;
/// Default of `FI_UNIVERSE_SIZE` (libfabric, src/fabric.c).
const UNIVERSE: u32 = 256;

/// The basis of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Basis {
    /// Each run gives this value.
    EachRun,
    /// Runs differ.
    LargestRun,
    /// The recording does not contain what is needed.
    NotRecorded,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
    /// False if the stack has this value already.
    pub(super) is_change: bool,
    /// False if the program runs as well without this change.
    pub(super) is_needed: bool,
    pub(super) basis: Basis,
    pub(super) reason: String,
}

/// How a match mode serves the program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfMode {
    pub(super) mode: &'static str,
    pub(super) says: String,
    /// Number of runs that abort.
    pub(super) aborts_in: usize,
    /// Number of times that an endpoint moved its unexpected messages to the host, in the run with
    /// most.
    pub(super) flow_controls: u64,
    /// Receives and unexpected messages on the host, those that moved there included, in the run with
    /// most.
    pub(super) on_host: u64,
}

/// The demand of all runs, of each the largest number.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Needs {
    /// List entries of an engine of Cassini, those for buffers of mode hardware included.
    #[serde(skip)]
    pub(super) list_entries: Range<u64>,
    pub(super) receives: Range<u64>,
    pub(super) unexpected: Range<u64>,
    pub(super) unexpected_bytes: Range<u64>,
    /// `None` if sends were not recorded.
    pub(super) open_sends: Option<Range<u64>>,
    /// Events, and bytes of unexpected messages, that come between two polls of a rank; `None` if
    /// polls were not recorded.
    pub(super) events_between_polls: Option<Range<u64>>,
    pub(super) bytes_between_polls: Option<Range<u64>>,
}

/// Settings with their reasons. `--json` prints this.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Advice {
    pub(super) needs: Needs,
    pub(super) settings: Vec<Setting>,
    pub(super) notes: Vec<String>,
    /// `None` for other NICs than Cassini.
    #[serde(flatten)]
    pub(super) cassini: Option<OfCassini>,
}

/// The parts of the advice that only Cassini has.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OfCassini {
    /// List entries of an engine that the job may use, and that it needs.
    pub(super) available: u64,
    list_entries: Range<u64>,
    /// Limits of Slurm, with `--site`.
    #[serde(skip_serializing_if = "Option::is_none")]
    slurm: Option<Limits>,
    /// A sentence on the sends with which the program hangs.
    pub(super) hangs: Option<String>,
    pub(super) modes: Vec<OfMode>,
    #[serde(rename = "bytes_a_rank")]
    memory: Memory,
    #[serde(skip)]
    memory_of_stack: Memory,
}

impl Advice {
    /// Makes the advice for another NIC than Cassini.
    pub(super) fn of_settings(needs: Needs, settings: Vec<Setting>) -> Self {
        Self { needs, settings, notes: Vec::new(), cassini: None }
    }
}

/// The conditions of the advice, beside the demand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) stack: &'static Stack,
    pub(super) margin: f64,
    pub(super) available: u64,
    pub(super) ranks: u32,
}

impl Given {
    /// Returns a number with the margin, rounded up.
    pub(super) fn with_margin(&self, number: u64) -> u64 {
        (number as f64 * self.margin).ceil() as u64
    }

    /// Returns the bytes of the longest message that is sent eagerly.
    pub(super) fn eager(&self) -> u64 {
        let Defaults { rdzv_threshold, rdzv_get_min, .. } = self.stack.values;
        rdzv_threshold + rdzv_get_min
    }
}

/// Returns the range over all runs of the largest number of an endpoint.
pub(super) fn of_endpoints(runs: &[Demand], number: impl Fn(&OfEndpoint) -> u64) -> Range<u64> {
    Range::of(runs.iter().map(|run| run.endpoints.iter().map(&number).max().unwrap_or(0)))
}

/// Returns the range over all runs of what comes between two polls, or `None` if a run has no polls.
fn between_polls(runs: &[Demand], number: impl Fn(&BetweenPolls) -> u64) -> Option<Range<u64>> {
    let numbers: Option<Vec<_>> =
        runs.iter().map(|run| run.between_polls.as_ref().map(&number)).collect();
    Some(Range::of(numbers?.into_iter()))
}

pub(super) fn basis(of: Range<u64>) -> Basis {
    if of.is_one() { Basis::EachRun } else { Basis::LargestRun }
}

/// Returns the settings for runs of one program, of which there is at least one.
/// `limits` are those of Slurm, if they are known.
pub(super) fn of(runs: &[Demand], given: Given, limits: Option<Limits>) -> Advice {
    let needs = Needs::of(runs);
    let defaults = given.stack.values;
    let mode = mode(runs, &needs, given);
    let mut settings = vec![of_match_mode(mode, runs, &needs, given)];
    settings.extend(buffers(mode, &needs, given));
    let mut notes = Vec::new();
    settings.push(sends(runs, &needs, given));
    settings.push(event_queue(mode, runs, &needs, given));
    let flow = runs.iter().any(|run| run.hardware.endpoints.iter().any(|of| of.moves > 0));
    if mode == Mode::Hardware && flow && given.ranks > UNIVERSE {
        settings.push(Setting {
            name: "FI_UNIVERSE_SIZE".to_owned(),
            value: given.ranks.to_string(),
            is_change: true,
            is_needed: false,
            basis: Basis::EachRun,
            reason: "the number of ranks, because flow control is expected".to_owned(),
        });
    }
    notes.extend(slurm(mode, runs, &needs, given, limits.as_ref()));
    let set = |settings: &[Setting]| {
        let changed = settings.iter().filter(|of| of.is_change);
        let assignments: Vec<_> = changed
            .map(|Setting { name, value, .. }| Assignment {
                name: name.clone(),
                value: Some(value.clone()),
                place: String::new(),
            })
            .collect();
        cxi::check(&assignments, defaults, None).memory
    };
    let (memory, memory_of_stack) = (set(&settings), set(&settings[..1]));
    let modes = of_modes(runs, &needs, given.available);
    let (available, list_entries) = (given.available, needs.list_entries);
    let hangs = hang_sentence(runs, given);
    let slurm = limits;
    let cassini =
        OfCassini { available, list_entries, slurm, hangs, modes, memory, memory_of_stack };
    Advice { needs, settings, notes, cassini: Some(cassini) }
}

impl Needs {
    /// Returns the needs of runs, of which there is at least one.
    pub(super) fn of(runs: &[Demand]) -> Self {
        let known = runs.iter().all(|run| matches!(run.sends, KnownSends::Yes { .. }));
        Self {
            list_entries: Range::of(runs.iter().map(|run| run.list_entries)),
            receives: of_endpoints(runs, |of| of.receives),
            unexpected: of_endpoints(runs, |of| of.unexpected),
            unexpected_bytes: of_endpoints(runs, |of| of.buffered),
            open_sends: known.then(|| of_endpoints(runs, |of| of.open_sends)),
            events_between_polls: between_polls(runs, |of| of.events),
            bytes_between_polls: between_polls(runs, |of| of.bytes),
        }
    }
}

/// Returns the largest share of the elements of an engine that come after their endpoint has left the
/// hardware, in per cent.
fn host_share(run: &Demand) -> f64 {
    let mut engines = BTreeMap::<_, [u64; 2]>::new();
    for (endpoint, of) in run.endpoints.iter().zip(&run.hybrid.endpoints) {
        let [on_host, all] = engines.entry(endpoint.engine).or_default();
        *on_host += of.receives_on_host + of.messages_on_host;
        *all += of.all_receives + of.all_messages;
    }
    engines.into_values().map(|[on_host, all]| percent(on_host, all)).fold(0.0, f64::max)
}

fn mode(runs: &[Demand], needs: &Needs, given: Given) -> Mode {
    if given.with_margin(needs.receives.most) > RECEIVE_IDS {
        return Mode::Software;
    }
    if given.with_margin(needs.list_entries.most) <= given.available {
        return Mode::Hardware;
    }
    match runs.iter().any(|run| host_share(run) > 50.0) {
        true => Mode::Software,
        false => Mode::Hybrid,
    }
}

fn of_match_mode(mode: Mode, runs: &[Demand], needs: &Needs, given: Given) -> Setting {
    let available = given.available;
    let entries = needs.list_entries.most;
    let with_margin = |number: u64| match given.margin > 1.0 {
        true => {
            format!(", {} with the margin of {}", whole(given.with_margin(number)), given.margin)
        }
        false => String::new(),
    };
    let of_entries = format!(
        "an engine needs {} of {} list entries{}",
        whole(entries),
        whole(available),
        with_margin(entries)
    );
    let has_ids = given.with_margin(needs.receives.most) <= RECEIVE_IDS;
    let reason = match mode {
        Mode::Software if !has_ids => format!(
            "{} receives wait at a rank{}, and hardware and hybrid have {} IDs for them",
            whole(needs.receives.most),
            with_margin(needs.receives.most),
            whole(RECEIVE_IDS)
        ),
        Mode::Software => format!(
            "{of_entries}, and in mode hybrid more than half of an engine's elements would come to \
             the host"
        ),
        Mode::Hardware | Mode::Hybrid => of_entries,
    };
    let fits = |run: &Demand| given.with_margin(run.list_entries) <= available;
    let each = runs.iter().all(fits) || !runs.iter().any(fits);
    // Mode hardware goes on if all elements without an entry find messages that can move.
    let goes_on = entries > available && runs.iter().all(|run| run.hardware.abort.is_none());
    Setting {
        name: format!("{PREFIX}RX_MATCH_MODE"),
        value: mode.name().to_owned(),
        is_change: mode != given.stack.values.mode,
        is_needed: !has_ids || !goes_on,
        basis: if each { Basis::EachRun } else { Basis::LargestRun },
        reason,
    }
}

/// Returns the sizes of the buffers of a mode.
fn buffers(mode: Mode, needs: &Needs, given: Given) -> Vec<Setting> {
    let values = given.stack.values;
    // Without polls, those that wait at one moment are the most that a program without them has.
    let (bytes, when) = match needs.bytes_between_polls {
        Some(bytes) => (bytes, "between two polls"),
        None => (needs.unexpected_bytes, "at one moment"),
    };
    let of = |name: &str, size: u64, posted: u64| {
        let each = given.with_margin(bytes.most).div_ceil(posted);
        let needed = (given.eager() + each).max(SMALLEST_BUFFER).next_multiple_of(STEP);
        let (is_small, value) = (needed > size, needed.min(LARGEST_BUFFER).max(size.min(needed)));
        let unexpected = format!("{} of unexpected messages {when} at most", binary(bytes.most));
        let stack = format!("the stack has {posted} buffers of {}", binary(size));
        let reason = match (needed > LARGEST_BUFFER, is_small) {
            (true, _) => format!(
                "{unexpected}: {stack}, and {} would be needed. A smaller {PREFIX}RDZV_THRESHOLD leaves \
                 {} of each long message in a buffer",
                binary(needed),
                binary(values.rdzv_eager_size)
            ),
            (_, true) => format!("{unexpected}: {stack}, and senders would wait"),
            (_, false) => format!("{unexpected}: {stack}, and smaller ones save memory"),
        };
        Setting {
            name: format!("{PREFIX}{name}"),
            value: value.to_string(),
            is_change: value != size,
            is_needed: false,
            basis: basis(bytes),
            reason,
        }
    };
    let overflow = of("OFLOW_BUF_SIZE", values.oflow_buf_size, values.oflow_buf_min_posted);
    let request = of("REQ_BUF_SIZE", values.req_buf_size, values.req_buf_min_posted);
    match mode {
        Mode::Hardware => vec![overflow],
        Mode::Hybrid => vec![overflow, request],
        Mode::Software => vec![request],
    }
}

/// Returns the number of slots of an event queue.
fn event_queue(mode: Mode, runs: &[Demand], needs: &Needs, given: Given) -> Setting {
    let Defaults { cq_size: has, rx_size, .. } = given.stack.values;
    // The provider takes whole huge pages, and slots for its receives.
    let has_slots = has.max(2 * rx_size + 36).next_multiple_of(HUGE_PAGE);
    let aborts = runs.iter().any(|run| run.hardware.abort.is_some());
    let other = match aborts || needs.receives.most > RECEIVE_IDS {
        true => {
            "; a larger queue does not help here, because receives wait for list entries or IDs and not \
             for events"
        }
        false => "",
    };
    let all = match mode {
        Mode::Hybrid => between_polls(runs, |of| of.events_in_hybrid),
        Mode::Hardware | Mode::Software => needs.events_between_polls,
    };
    let (value, basis, reason) = match all {
        None => (has, Basis::NotRecorded, "events between two polls are not recorded".to_owned()),
        Some(events) => {
            // Above this share of its slots, a queue holds sends and probes back.
            let needed = given.with_margin(events.most).saturating_mul(100 / FILL_PERCENT);
            let without_entry = match needs.events_between_polls {
                Some(of) if of.most < events.most => " (receives without an entry included)",
                _ => "",
            };
            let reason = format!(
                "{} come between two polls at most{without_entry}, and sends of the rank wait \
                 while more than {FILL_PERCENT} % of the queue are full",
                count(events.most, "event")
            );
            let value = needed.max(1).next_multiple_of(HUGE_PAGE);
            (if value == has_slots { has } else { value }, basis(events), reason)
        }
    };
    Setting {
        name: format!("{PREFIX}DEFAULT_CQ_SIZE"),
        value: value.to_string(),
        is_change: value != has,
        is_needed: false,
        basis,
        reason: reason + other,
    }
}

/// Returns the number of sends with which a run hangs, and the ranks that wait; the run with the most.
fn hang(runs: &[Demand]) -> Option<(u64, String)> {
    let hangs = runs.iter().filter_map(|run| match &run.sends {
        KnownSends::Yes { hangs_up_to: Some((most, waiting)) } => Some((*most, waiting, run)),
        _ => None,
    });
    let (most, waiting, run) = hangs.max_by_key(|(most, ..)| *most)?;
    let waiting = waiting.iter().filter_map(|&of| run.endpoints[of].rank).collect();
    Some((most, ranks::named(&ranks::ranges(&waiting))))
}

/// Returns a sentence on the sends with which the program hangs, if it does.
fn hang_sentence(runs: &[Demand], given: Given) -> Option<String> {
    let (most, ranks) = hang(runs)?;
    let has = given.stack.values.tx_size;
    let begin = match most >= has {
        true => "The program hangs with this stack, and with every",
        false => "The program hangs with",
    };
    let end = match most >= LARGEST_TX {
        true => "; no allowed value is enough",
        false => "",
    };
    Some(format!(
        "{begin} {PREFIX}DEFAULT_TX_SIZE up to {}: {ranks} wait in sends, and post the receives of these \
         sends later{end}",
        whole(most)
    ))
}

/// Returns the number of sends.
fn sends(runs: &[Demand], needs: &Needs, given: Given) -> Setting {
    let has = given.stack.values.tx_size;
    let setting = |value: u64, basis, reason| Setting {
        name: format!("{PREFIX}DEFAULT_TX_SIZE"),
        value: value.to_string(),
        is_change: value != has,
        is_needed: hang(runs).is_some_and(|(most, _)| most >= has),
        basis,
        reason,
    };
    let Some(open) = needs.open_sends else {
        let is_incomplete = |run: &Demand| matches!(run.sends, KnownSends::Incomplete);
        let reason = match runs.iter().any(is_incomplete) {
            true => {
                "some messages had not arrived when a recording ended, so nothing is said of sends"
            }
            false => {
                "sends are not recorded; `tcam run --trace DIR --set trace_sends=on` records them"
            }
        };
        return setting(has, Basis::NotRecorded, reason.to_owned());
    };
    let needed = given.with_margin(open.most) + 64;
    let longer = format!("longer than {}", binary(given.eager()));
    let sends = format!("{} {longer} wait for a receive at most", count(open.most, "send"));
    if needed <= has {
        let none = format!("no send {longer} waits for a receive");
        return setting(has, basis(open), if open.most == 0 { none } else { sends });
    }
    let reason = match (needed > LARGEST_TX, open.most < has) {
        (true, _) => format!(
            "{sends}, and the provider allows {}: bound the sends in flight, or send them eagerly with a \
             larger {PREFIX}RDZV_THRESHOLD",
            whole(LARGEST_TX)
        ),
        (_, true) => format!(
            "{sends}, {} less than the stack has",
            whole_share(percent(has - open.most, has))
        ),
        (_, false) => format!(
            "{sends}, and the stack has {}. If the program waits for a later one, it hangs",
            whole(has)
        ),
    };
    setting(needed.min(LARGEST_TX), basis(open), reason)
}

/// Returns the largest number of endpoints on an engine.
fn endpoints_an_engine(runs: &[Demand]) -> u64 {
    runs.iter().map(|run| run.endpoints_an_engine).max().unwrap_or(0)
}

/// Returns notes on the list entries that Slurm must leave to the job.
fn slurm(
    mode: Mode,
    runs: &[Demand],
    needs: &Needs,
    given: Given,
    limits: Option<&Limits>,
) -> Vec<String> {
    let buffers = UsesEntries::Hybrid.buffers() * endpoints_an_engine(runs);
    match (limits, mode) {
        (Some(limits), _) => limits.notes((mode == Mode::Hybrid).then_some(buffers)),
        (None, Mode::Hardware) => vec![format!(
            "Slurm: max_les must be {} or more (its default is {})",
            whole(given.with_margin(needs.list_entries.most)),
            whole(list_entries::ENTRIES)
        )],
        (None, Mode::Hybrid) => vec![format!(
            "Slurm: def_les times the processors of a step must be {} or more, for the buffers on each \
             engine; --site FILE compares with slurm.conf",
            whole(buffers)
        )],
        (None, Mode::Software) => Vec::new(),
    }
}

/// Returns how each mode serves the program.
fn of_modes(runs: &[Demand], needs: &Needs, available: u64) -> Vec<OfMode> {
    let own = UsesEntries::Hybrid.buffers() * endpoints_an_engine(runs);
    let on_host = |entries: &ListEntries| {
        let of = entries.endpoints.iter();
        of.map(|of| of.receives_on_host + of.messages_on_host + of.moved).sum::<u64>()
    };
    let flows = |entries: &ListEntries| entries.endpoints.iter().map(|of| of.moves).sum::<u64>();
    let most = |number: &dyn Fn(&Demand) -> u64| runs.iter().map(number).max().unwrap_or(0);
    let aborts: Vec<_> = runs.iter().filter_map(Demand::abort_text).collect();
    let flow_controls = most(&|run| flows(&run.hardware));
    let says = match (aborts.first(), flow_controls) {
        (Some(abort), _) => format!("aborts{}: {abort}", of_runs(aborts.len(), runs.len())),
        (None, 0) => "holds all elements".to_owned(),
        (None, times) => format!(
            "runs: flow control moves unexpected messages to the host {}",
            count(times, "time")
        ),
    };
    let hardware = OfMode {
        mode: "hardware",
        says,
        aborts_in: aborts.len(),
        flow_controls,
        on_host: most(&|run| on_host(&run.hardware)),
    };
    let endpoints = runs.iter().flat_map(|run| run.endpoints.iter().zip(&run.hybrid.endpoints));
    let left = endpoints.filter(|(_, of)| of.moves > 0);
    let worst = left.max_by_key(|(_, of)| of.receives_on_host + of.messages_on_host + of.moved);
    let says = match worst {
        _ if needs.receives.most > RECEIVE_IDS => format!(
            "hangs: {} receives wait at a rank, and there are {} IDs",
            whole(needs.receives.most),
            whole(RECEIVE_IDS)
        ),
        _ if own > available => format!(
            "aborts: buffers need {} list entries of an engine, and there are {}",
            whole(own),
            whole(available)
        ),
        Some((endpoint, of)) => {
            let part = |number: u64, all: u64, noun: &str| {
                let share = whole_share(percent(number, all));
                (number > 0).then(|| format!("{} ({share})", count(number, noun)))
            };
            let parts = [
                part(of.receives_on_host, of.all_receives, "receive"),
                part(of.messages_on_host, of.all_messages, "unexpected message"),
                (of.moved > 0).then(|| format!("{} from its entries", count(of.moved, "message"))),
            ];
            format!(
                "runs, but {} leaves the hardware when its engine is full: its host then has {}",
                endpoint.name(),
                parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
            )
        }
        None => "holds all elements".to_owned(),
    };
    let hybrid = OfMode {
        mode: "hybrid",
        says,
        aborts_in: 0,
        flow_controls: most(&|run| flows(&run.hybrid)),
        on_host: most(&|run| on_host(&run.hybrid)),
    };
    let all = |run: &Demand| {
        let of = run.hybrid.endpoints.iter().map(|of| of.all_receives + of.all_messages);
        of.sum::<u64>()
    };
    let software = OfMode {
        mode: "software",
        says: "matches all elements on the host".to_owned(),
        aborts_in: 0,
        flow_controls: 0,
        on_host: most(&all),
    };
    vec![hardware, hybrid, software]
}

/// Returns text such as ` in 2 of 3 runs`; empty for one run.
fn of_runs(some: usize, all: usize) -> String {
    if all == 1 { String::new() } else { format!(" in {some} of {all} runs") }
}

impl OfCassini {
    /// Returns a sentence on the memory of a rank, and of a node.
    pub(super) fn memory_sentence(&self, ppn: Option<NonZeroU32>) -> String {
        let sentence = self.memory.sentence(ppn);
        if self.memory == self.memory_of_stack {
            return sentence;
        }
        let sentence = sentence.trim_end_matches('.');
        let stack = binary(self.memory_of_stack.all());
        format!("{sentence}; with the sizes of the stack {stack} a rank.")
    }
}
