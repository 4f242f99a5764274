// SPDX-License-Identifier: BSD-2-Clause
//! Replays traces on one table or on several at once, for counts and capacity curves.
//!
//! ```text
//! for every trace, as many at a time as there are cores:
//!     read a batch of operations; at the same time, replay the previous batch on each table
//! ```
//! Reading takes as long as matching, so tables that are compared share the reading. If there are
//! fewer traces than cores, the tables and the reader of a trace are distributed over the cores.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use indicatif::ProgressBar;
use matching::pool::LocalPool;
use matching::{Curve, Overflow};
use nic::config::{self, DeviceConfig};
use nic::params::{Params, types::PoolOwner};
use nic::report::{Report, WrittenAt};
use nic::trace::{Address, Op, Sites};
use rayon::prelude::*;

use super::player::{BATCH, TableReplay, TraceReader};
use super::{Counted, JointReplay, NicEngines, Player, Trace, counted, files};
use crate::error::Error;
use crate::results::summary::MAX_NAMED;
use crate::results::{Endpoint, reports};
use crate::settings::Settings;
use crate::text::{count, progress};

/// Bytes of records whose replay takes a second or more.
pub(crate) const LONG: u64 = 16 << 20;
const BAR: &str = "{bar:30} {bytes}/{total_bytes} of traces, {bytes_per_sec}, {left}";

/// Returns a progress bar for `times` replays of all traces. The bar is hidden for short traces.
pub(crate) fn bar(traces: &[Trace], times: usize) -> ProgressBar {
    length(traces, times).map_or_else(ProgressBar::hidden, |length| progress::bar(length, BAR))
}

/// Calls `work` with a progress bar for `times` replays of all traces.
pub(crate) fn with_bar<T>(
    traces: &[Trace],
    times: usize,
    work: impl FnOnce(&ProgressBar) -> Result<T, Error>,
) -> Result<T, Error> {
    let bar = bar(traces, times);
    let done = work(&bar);
    bar.finish_and_clear();
    done
}

/// Returns the length of the progress bar, the maximum number of bytes of records that are
/// replayed. Returns `None` for a short replay.
fn length(traces: &[Trace], times: usize) -> Option<u64> {
    let all = |of: fn(&Trace) -> u64| {
        traces.iter().map(of).fold(0, u64::saturating_add).saturating_mul(times as u64)
    };
    // The length includes the window at the beginning of each trace, because a long recording fills
    // it (see `nic::trace`).
    (all(Trace::records) >= LONG).then(|| all(|trace| trace.bytes))
}

/// Replays every trace, as many at a time as there are cores. Traces that share a pool are replayed
/// together, in the order of their times.
pub(crate) fn all(traces: &[Trace], settings: &Settings) -> Result<Vec<Counted>, Error> {
    let settings = std::slice::from_ref(settings);
    let counted = with_bar(traces, 1, |bar| all_to_each(traces, settings, bar));
    Ok(counted?.pop().unwrap_or_default())
}

/// Replays every trace on several tables. Returns the counts of each table, by trace. All tables
/// are replayed at once if each of their queues stays below its share of `max_queue`, else one
/// after the other.
pub(crate) fn all_to_each(
    traces: &[Trace],
    settings: &[Settings],
    bar: &ProgressBar,
) -> Result<Vec<Vec<Counted>>, Error> {
    match at_once(traces, settings, settings.len(), bar) {
        Err(Error::QueueTooLong { .. }) if settings.len() > 1 => {}
        played => return played,
    }
    bar.reset();
    let mut counted = Vec::with_capacity(settings.len());
    for one in settings {
        counted.append(&mut at_once(traces, std::slice::from_ref(one), 1, bar)?);
    }
    Ok(counted)
}

/// Replays every trace on all tables at once. Each queue may have up to
/// `max_queue / tables_at_once` elements.
fn at_once(
    traces: &[Trace],
    settings: &[Settings],
    tables_at_once: usize,
    bar: &ProgressBar,
) -> Result<Vec<Vec<Counted>>, Error> {
    let (mut pooled, mut alone) = (Vec::new(), Vec::new());
    for (at, settings) in settings.iter().enumerate() {
        let params = files::params(traces, settings)?;
        let pool = params.iter().any(|params| params.pool == PoolOwner::Node);
        if pool { &mut pooled } else { &mut alone }.push(at);
    }
    let play_together = || -> Vec<_> {
        pooled.par_iter().map(|&at| together(traces, &settings[at], tables_at_once, bar)).collect()
    };
    let play_alone = || {
        if alone.is_empty() {
            return Ok(Vec::new());
        }
        each(traces, bar, |trace, bar| {
            let devices: Result<Vec<_>, _> =
                alone.iter().map(|&at| trace.device(&trace.params(&settings[at])?)).collect();
            play_to_each(trace, devices?, tables_at_once, bar)
        })
    };
    let (played_together, played_alone) = rayon::join(play_together, play_alone);
    let mut counted = vec![Vec::with_capacity(traces.len()); settings.len()];
    for (&at, played) in pooled.iter().zip(played_together) {
        counted[at] = played?;
    }
    for played in played_alone? {
        for (&at, played) in alone.iter().zip(played) {
            counted[at].push(played);
        }
    }
    Ok(counted)
}

/// Replays a trace once, on each of some devices.
fn play_to_each(
    trace: &Trace,
    devices: Vec<DeviceConfig>,
    tables_at_once: usize,
    bar: &ProgressBar,
) -> Result<Vec<Counted>, Error> {
    let mut source = TraceReader::new(trace)?;
    let played: Result<Vec<_>, _> =
        devices.into_iter().map(|device| TableReplay::new(trace, device, tables_at_once)).collect();
    let mut played = played?;
    let (mut batch, mut next) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    let mut more = source.batch(&mut batch)?;
    let mut shown = 0;
    while !batch.is_empty() {
        let (read, stepped) = rayon::join(
            || if more { source.batch(&mut next) } else { Ok(false) },
            || played.par_iter_mut().try_for_each(|played| played.steps(&batch)),
        );
        stepped?;
        more = read?;
        bar.inc((source.taken() - shown) * played.len() as u64);
        shown = source.taken();
        mem::swap(&mut batch, &mut next);
        next.clear();
    }
    Ok(played.iter().map(|played| played.counted(&source)).collect())
}

/// One trace, the counts of the table that it was replayed on, and the curves of PRQ and UMQ.
pub(crate) struct Curves {
    pub(crate) counted: Counted,
    pub(crate) curves: [Curve; 2],
}

/// Replays every trace once for the capacity curves.
pub(crate) fn curves(
    traces: &[Trace],
    settings: &Settings,
    bar: &ProgressBar,
) -> Result<Vec<Curves>, Error> {
    each(traces, bar, |trace, bar| {
        let mut player = Player::new(trace, settings)?;
        player.played.replay.keep_curves();
        player.play(bar)?;
        let curves = player.replay().context().curves().map(|curves| curves.map(Clone::clone));
        Ok(Curves { counted: player.counted(), curves: curves.unwrap_or_default() })
    })
}

/// Reads a trace, and calls `each` with every operation, the number of its site, and the peers that
/// the trace has named. Returns its sites.
pub(crate) fn scan(
    trace: &Trace,
    each: impl FnMut(&Op, u32, &BTreeMap<u32, Address>),
) -> Result<Sites, Error> {
    TraceReader::new(trace)?.scan(each)
}

/// Applies `work` to every trace, as many at a time as there are cores.
pub(crate) fn each<T: Send>(
    traces: &[Trace],
    bar: &ProgressBar,
    work: impl Fn(&Trace, &ProgressBar) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let results: Vec<_> = traces.par_iter().map(|trace| work(trace, bar)).collect();
    // If several traces fail, the error of the first of them in `traces` is returned, not the
    // earliest.
    results.into_iter().collect()
}

/// Replays traces whose endpoints share the pool of their host.
fn together(
    traces: &[Trace],
    settings: &Settings,
    tables_at_once: usize,
    bar: &ProgressBar,
) -> Result<Vec<Counted>, Error> {
    let number = traces[0].params(settings)?.pool_engines as usize;
    let engines = NicEngines::of(traces, number);
    let mut pools: BTreeMap<usize, LocalPool> = BTreeMap::new();
    let mut together =
        JointReplay::new(traces.iter(), settings, tables_at_once, |trace, params| {
            let entries = params.pool_entries / params.pool_engines;
            let engine = engines.engine(&trace.endpoint());
            let pool = pools.entry(engine).or_insert_with(|| LocalPool::new(entries));
            let member = pool.join(config::share_of(params)).map_err(|_| Error::Pool)?;
            config::take_buffers(params, &member);
            Ok(Arc::new(member))
        })?;
    while together.step(bar)?.is_some() {}
    Ok(together.players.iter().map(Player::counted).collect())
}

/// Replays the traces of endpoints without a complete report, and adds their counts to `drafts`.
/// The processes of these endpoints were killed, or ended without `MPI_Finalize`. `has_report`
/// returns true for an endpoint with a complete report. A draft is the incomplete report of an
/// endpoint. It contains less than the traces of the endpoint, so it is replaced, except the counts
/// of the channels, which no trace contains. Returns a note with the number of these endpoints, or
/// `None` if all endpoints have a complete report.
pub(crate) fn add_unreported(
    has_report: impl Fn(&Endpoint) -> bool,
    drafts: &mut Vec<Report>,
    traces: &[Trace],
) -> Result<Option<String>, Error> {
    let silent: Vec<_> =
        traces.iter().filter(|trace| !has_report(&trace.endpoint())).cloned().collect();
    if silent.is_empty() {
        return Ok(None);
    }
    let settings = Settings::default();
    let mut replayed = counted::reports(&all(&silent, &settings)?, &settings)?;
    // If a recording ended early, the draft may contain later operations, so the draft is kept.
    let stopped: BTreeSet<Endpoint> =
        silent.iter().filter(|trace| trace.cut().is_some()).map(Trace::endpoint).collect();
    for report in &mut replayed {
        report.written_at = WrittenAt::Running;
        let endpoint = reports::endpoint(report);
        if let Some(at) = drafts.iter().position(|draft| reports::endpoint(draft) == endpoint) {
            let draft = drafts.swap_remove(at);
            if stopped.contains(&endpoint) {
                *report = draft;
            } else {
                (report.processes, report.channels) = (draft.processes, draft.channels);
            }
        }
    }
    let endpoints = count(replayed.len() as u64, "endpoint");
    let ranks = replayed.iter().filter_map(|report| report.rank).take(MAX_NAMED);
    let names: Vec<_> = ranks.map(|rank| rank.to_string()).collect();
    let ranks =
        if names.is_empty() { String::new() } else { format!(" (rank {})", names.join(", ")) };
    drafts.extend(replayed);
    Ok(Some(format!(
        "No complete report of {endpoints}{ranks}: counted from traces, except the channels"
    )))
}

/// Returns true if one of the devices uses flow control, which holds messages back.
pub(crate) fn holds_back(params: &[Params]) -> bool {
    params.iter().any(|params| params.overflow == Overflow::FlowControl)
}

/// Prints that a replay holds no message back. A trace contains the messages in the order in which
/// they arrived, and a replay does not change this order.
pub(crate) fn note_flow_control(what: &str) {
    eprintln!(
        "{what}: a replay holds no message back and fails no receive; what does not fit spills"
    );
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nic::trace::Header;

    use super::super::take::Take;
    use super::*;

    #[test]
    fn the_bar_of_a_replay_has_the_length_of_the_records() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.trace");
        let header = Header { window: 64 << 10, ..Header::default() };
        fs::write(&path, header.to_bytes()).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let bytes = LONG + (128 << 10);
        file.set_len(bytes).unwrap();
        let take = Take { cut_off: true, ..Take::default() };
        let found = files::find(std::slice::from_ref(&path), take).unwrap();
        let room = bytes - nic::trace::HEADER as u64;
        assert_eq!(length(&found, 3), Some(3 * room), "the window may be full");
        file.set_len(LONG - 1).unwrap();
        let found = files::find(&[path], take).unwrap();
        assert_eq!(length(&found, 1), None);
    }

    #[test]
    fn a_queue_that_grows_too_long_ends_the_replay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.trace");
        let header = Header { rank: Some(3), layout: "mpich".to_owned(), ..Header::default() };
        let envelope = nic::message::Envelope { source: 1, bits: 2, len: 0 };
        let mut bytes = header.to_bytes();
        nic::trace::Encoder::default().op(&mut bytes, &Op::Arrive(envelope)).unwrap();
        bytes.extend(nic::trace::repeat_record(99).to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let play = |max_queue| {
            let take = Take { max_queue, cut_off: true, ..Default::default() };
            let found = files::find(std::slice::from_ref(&path), take).unwrap();
            let settings = Settings::default();
            (
                all(&found, &settings).map(|of| of.len()),
                curves(&found, &settings, &ProgressBar::hidden()).map(|of| of.len()),
            )
        };
        assert!(matches!(play(100), (Ok(1), Ok(1))));
        let (one, other) = play(99);
        // Then several tables are replayed one after the other.
        let take = Take { max_queue: 100, cut_off: true, ..Default::default() };
        let found = files::find(std::slice::from_ref(&path), take).unwrap();
        let settings = [Settings::default(), Settings::default()];
        let played = all_to_each(&found, &settings, &ProgressBar::hidden()).unwrap();
        assert!(played.iter().flatten().all(|of| of.counters.umq.high_water == 100));
        for error in [one.unwrap_err(), other.unwrap_err()] {
            let expected = "x.trace: the UMQ of rank 3 has more than 99 elements";
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_trace_that_is_cut_does_not_replace_its_draft() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.trace");
        let (context, layout) = ("tagged".to_owned(), "mpich".to_owned());
        let header = Header { rank: Some(3), pid: 7, context, layout, ..Header::default() };
        let envelope = nic::message::Envelope { source: 1, bits: 2, len: 0 };
        let mut bytes = header.to_bytes();
        nic::trace::Encoder::default().op(&mut bytes, &Op::Arrive(envelope)).unwrap();
        for (cut, arrivals) in [(0, 1), (1, 40)] {
            // With `cut`, the last record is incomplete.
            let mut written = bytes.clone();
            written.extend(&1_u32.to_le_bytes()[..2 * cut]);
            fs::write(&path, written).unwrap();
            let take = Take { cut_off: true, ..Take::default() };
            let found = files::find(std::slice::from_ref(&path), take).unwrap();
            let mut draft = Report { pid: 7, rank: Some(3), ..Report::default() };
            draft.tagged.arrivals = 40;
            let mut drafts = vec![draft];
            let note = add_unreported(|_| false, &mut drafts, &found).unwrap();
            assert!(note.unwrap().contains("1 endpoint (rank 3)"));
            assert_eq!((drafts.len(), drafts[0].tagged.arrivals), (1, arrivals), "{cut}");
        }
    }

    #[test]
    fn several_tables_at_once_count_as_each_alone() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("traces");
        crate::commands::workload::tests::write_to(&out);
        let found = files::find(&[out], Take::default()).unwrap();
        let of = |sets: &[(&str, u64)]| {
            let mut settings = Settings::default();
            sets.iter().for_each(|(name, value)| settings.set(name, value));
            settings
        };
        let settings = [
            of(&[]),
            of(&[("prq_entries", 3), ("umq_entries", 2)]),
            of(&[("pool_entries", 16)]),
            of(&[("prq_entries", 0), ("umq_entries", 0)]),
        ];
        let together = all_to_each(&found, &settings, &ProgressBar::hidden()).unwrap();
        for (settings, together) in settings.iter().zip(&together) {
            let alone = all(&found, settings).unwrap();
            assert_eq!(alone.len(), found.len());
            for (alone, together) in alone.iter().zip(together) {
                assert_eq!(alone.trace.path, together.trace.path);
                assert_eq!(alone.counters, together.counters);
                assert_eq!(
                    (alone.operations, alone.seconds),
                    (together.operations, together.seconds)
                );
            }
        }
    }
}
