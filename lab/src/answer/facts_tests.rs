// SPDX-License-Identifier: BSD-2-Clause
//! Compares the facts of recordings with counts that follow from their operations.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use matching::timing::EntryCost;
use matching::{Key, Source};
use nic::message::Envelope;
use nic::trace::{
    Encoder, End, HEADER, Header, Op, Posted, STATE, WORD, put_error, put_time, state,
};
use tempfile::TempDir;

use super::*;
use crate::results::runs::RunRecord;
use crate::traces::{Placed, Take};

/// Nanoseconds between two operations of a rank.
const PAUSE: u64 = 1000;
/// Nanoseconds between the starts of two ranks. Each rank ends before the next one starts.
const SHIFT: u64 = 2_000_000;

/// The operations of a rank: posts receives, for which no message arrives, and then gets messages of
/// source 1, for which there is no receive. Then takes the last of them, if `takes` is true.
#[derive(Clone, Copy)]
struct RankOps {
    receives: u64,
    messages: u64,
    takes: bool,
}

impl RankOps {
    fn ops(self) -> Vec<Op> {
        let post = |bits: u64| {
            let key = Key { bits, ignore: 0, source: Source::new(1) };
            Op::Post(Posted { key, len: 4096, multi: None, non_contiguous: false })
        };
        let arrive = |bits: u64| Op::Arrive(Envelope { source: 1, bits: 1 << 20 | bits, len: 8 });
        let last = (1 << 20) + self.messages - 1;
        let posts = (0..self.receives).map(post);
        posts.chain((0..self.messages).map(arrive)).chain(self.takes.then(|| post(last))).collect()
    }

    /// Picoseconds of the host with the costs `cpu-list` on a device without a table.
    fn cost(self) -> u64 {
        let entry: EntryCost = "2.7@64,4.5@1024,5.1@8192".parse().unwrap();
        let spills = (self.receives + self.messages) * 3000;
        let arrivals = self.messages * entry.of(self.receives);
        spills + arrivals + if self.takes { entry.of(self.messages) } else { 0 }
    }

    /// Nanoseconds from the start of the rank to its last operation.
    fn ns(self) -> u64 {
        (self.receives + self.messages + u64::from(self.takes)) * PAUSE
    }
}

const FIRST: RankOps = RankOps { receives: 300, messages: 20, takes: true };
const SECOND: RankOps = RankOps { receives: 100, messages: 30, takes: false };

/// Writes the trace of a rank.
fn write(directory: &Path, rank: u32, ops: RankOps, change: impl Fn(&mut Header)) {
    let mut header = Header {
        context: "tagged".to_owned(),
        layout: "mpich".to_owned(),
        host: "a".to_owned(),
        pid: rank,
        rank: Some(rank),
        address: format!("127.0.0.1:{}", 4000 + rank),
        program: "/bin/app".to_owned(),
        start_ns: 1_000_000_000 + u64::from(rank) * SHIFT,
        ..Header::default()
    };
    let origin = &mut header.origin;
    (origin.command, origin.mpi) = ("app --x".to_owned(), "MPICH 5.0.2".to_owned());
    (origin.ranks, origin.job, origin.cores) = (Some(2), Some(7), Some(4));
    origin.processors = "0-3".to_owned();
    header.config.insert("arrival".to_owned(), "nic".to_owned());
    change(&mut header);
    let (mut bytes, mut encoder) = (header.to_bytes(), Encoder::default());
    for (op, number) in ops.ops().iter().zip(1..) {
        put_time(&mut bytes, number * PAUSE).unwrap();
        if let Op::Arrive(message) = op {
            put_error(&mut bytes, message.source, 0).unwrap();
        }
        encoder.op(&mut bytes, op).unwrap();
    }
    // The recording is complete.
    let words = (bytes.len() - HEADER) / WORD;
    let end = state(words as u64, End::Closed(0)).map(u32::to_le_bytes);
    bytes[HEADER - STATE..HEADER].copy_from_slice(end.as_flattened());
    let name = format!("{rank}.{}.4000.{}.trace", header.pid, header.context);
    fs::write(directory.join(name), bytes).unwrap();
}

/// A recording in a directory of its own.
struct Recording {
    found: Found,
    _directory: TempDir,
}

/// Returns a recording of two ranks. `change` changes their headers.
fn recording(ranks: [RankOps; 2], change: impl Fn(&mut Header)) -> Recording {
    recording_with(None, ranks, change)
}

fn recording_with(
    run: Option<RunRecord>,
    ranks: [RankOps; 2],
    change: impl Fn(&mut Header),
) -> Recording {
    let directory = tempfile::tempdir().unwrap();
    for (rank, ops) in (0..).zip(ranks) {
        write(directory.path(), rank, ops, &change);
    }
    if let Some(run) = run {
        run.write(directory.path()).unwrap();
    }
    let found = files::find(&[directory.path().to_owned()], Take::default()).unwrap();
    Recording { found, _directory: directory }
}

fn facts(change: impl Fn(&mut Header)) -> Facts {
    Facts::of(&[&recording([FIRST, SECOND], change).found], models::specific(), false).unwrap()
}

fn device<'f>(facts: &'f Facts, name: &str) -> &'f DeviceResult {
    facts.devices.iter().find(|of| of.judged.device == name).unwrap()
}

fn assert_near(range: Range<f64>, [least, most]: [f64; 2]) {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * b.abs().max(1.0);
    assert!(near(range.least, least) && near(range.most, most), "{range:?}, not {least} to {most}");
}

#[test]
fn the_run_is_described_as_it_was_recorded() {
    let facts = facts(|_| {});
    assert_eq!(
        (facts.program.as_str(), facts.command.as_str(), facts.mpi.as_str()),
        ("app", "app --x", "MPICH 5.0.2")
    );
    assert_eq!((facts.ranks, facts.ranks_of, facts.hosts, facts.runs), (2, 2, 1, 1));
    assert_eq!((facts.processors, facts.crowded, facts.generated), (Some(4), false, false));
    assert_eq!((facts.exit_status, facts.nodes, facts.polled, facts.waited), (None, None, 0, 0));
    assert_eq!((facts.lack, facts.shares, facts.order), (None, None, None));
    assert_eq!(facts.messages, Range::from(50));
    assert_near(facts.seconds, [(SHIFT + SECOND.ns()) as f64 * 1e-9; 2]);
    assert!(facts.title.starts_with("app on 2 ranks"), "{}", facts.title);
    assert!(facts.sizes.is_empty());
}

#[test]
fn the_need_follows_from_the_operations() {
    let facts = facts(|_| {});
    let Needed { name, prq, umq, umq_at_least, internal, peak_total } = facts.rank;
    assert_eq!(name, "rank 0");
    assert_eq!((prq, umq, internal), (300.into(), 30.into(), 0.into()));
    // All messages before the one that was taken had to be there.
    assert_eq!((umq_at_least, peak_total), (19.into(), 320.into()));
    let Needed { name, prq, umq, umq_at_least, internal, peak_total } = facts.nic;
    assert_eq!(name, "ranks 0-1");
    // Rank 0 has taken a message before rank 1 gets messages.
    assert_eq!((prq, umq, internal), (400.into(), 49.into(), 0.into()));
    assert_eq!((umq_at_least, peak_total), (19.into(), 449.into()));
}

#[test]
fn devices_are_judged_by_their_spills() {
    let facts = facts(|_| {});
    let names: Vec<_> = facts.devices.iter().map(|of| of.judged.device.as_str()).collect();
    let expected: Vec<_> = models::specific().map(|model| model.name).collect();
    assert_eq!(names, expected);
    let of = |name: &str| {
        let DeviceResult { judged, entries, suffices_in, .. } = device(&facts, name);
        (judged.by_design, judged.overflowed, entries.as_slice(), *suffices_in)
    };
    let needs = |name: &str| device(&facts, name).needs.clone();
    // Each of four engines has as many entries as rank 0 needs, with its buffers.
    assert_eq!(needs("cassini-hybrid"), [(4 * (320 + 9)).into()]);
    assert_eq!(needs("cassini-hardware"), [(4 * (320 + 3)).into()]);
    assert_eq!(needs("cassini-software"), [0.into(); 2]);
    assert_eq!(needs("portals4-ref"), [300.into(), 30.into()]);
    assert_eq!(needs("alpu"), [300.into(), 30.into()]);
    assert_eq!(needs("uet"), [300.into(), 0.into()]);
    assert_eq!(of("cassini-hybrid"), (0, 0, &[65_536][..], 1));
    assert_eq!(of("cassini-software"), (450, 0, &[0, 0][..], 0));
    assert_eq!(of("connectx"), (50, 0, &[1023, 0][..], 0));
    assert_eq!(of("portals4-ref"), (0, 0, &[1024, 1024][..], 1));
    assert_eq!(of("alpu"), (0, 44, &[256, 256][..], 0));
    assert_eq!(of("uet"), (50, 0, &[65_536, 0][..], 0));
    // Without a table, there is no way between NIC and host.
    let seconds = (SHIFT + SECOND.ns()) as f64 * 1e-9;
    let percent = |ps: u64| [100.0 * ps as f64 * 1e-12 / seconds; 2];
    let software = device(&facts, "cassini-software");
    assert_near(software.cpu_list_percent, percent(FIRST.cost()));
    assert_near(software.with_way_percent, percent(FIRST.cost()));
    assert!(FIRST.cost() > SECOND.cost());
    // 44 receives spill, and 20 messages are compared with them.
    let entry: EntryCost = "2.7@64,4.5@1024,5.1@8192".parse().unwrap();
    let cost = 44 * 3000 + 20 * entry.of(44);
    let alpu = device(&facts, "alpu");
    assert_near(alpu.cpu_list_percent, percent(cost));
    assert_near(alpu.with_way_percent, percent(cost + 20 * 2 * WAY_NS * 1000));
    assert_near(device(&facts, "portals4-ref").with_way_percent, [0.0; 2]);
}

#[test]
fn several_runs_have_ranges() {
    let less = RankOps { receives: 200, messages: 10, takes: false };
    let polled = |header: &mut Header| {
        header.config.insert("arrival".to_owned(), "poll".to_owned());
    };
    let runs = [recording([FIRST, SECOND], |_| {}), recording([less, SECOND], polled)];
    let facts = Facts::of(&[&runs[0].found, &runs[1].found], models::specific(), false).unwrap();
    assert_eq!((facts.runs, facts.polled), (2, 1));
    assert_eq!(facts.messages, Range { least: 40, most: 50 });
    assert_eq!(facts.rank.prq, Range { least: 200, most: 300 });
    assert_eq!(facts.rank.umq_at_least, Range { least: 0, most: 19 });
    assert_eq!(facts.nic.peak_total, Range { least: 340, most: 449 });
    let hybrid = device(&facts, "cassini-hybrid");
    assert_eq!(hybrid.needs, [Range { least: 4 * (210 + 9), most: 4 * (320 + 9) }]);
    assert_eq!(device(&facts, "alpu").needs[0], Range { least: 200, most: 300 });
    let alpu = device(&facts, "alpu");
    assert_eq!((alpu.suffices_in, alpu.judged.overflowed), (1, 44));
    assert!(alpu.cpu_list_percent.least == 0.0 && alpu.cpu_list_percent.most > 0.0);
}

#[test]
fn sizes_for_a_picture_hold_the_elements_that_come_first() {
    let facts =
        Facts::of(&[&recording([FIRST, SECOND], |_| {}).found], models::specific(), true).unwrap();
    let sizes: Vec<_> = facts.sizes.iter().map(|of| of.entries as usize).collect();
    assert_eq!(sizes, sizes_below(449));
    assert!(sizes.len() > 4);
    for AtSize { entries, immediate_percent, cpu_list_percent, with_way_percent } in &facts.sizes {
        // The last message of rank 0 gives its entry back. Up to 320 entries, an element that waits
        // takes this entry.
        let held = match *entries {
            ..320 => *entries,
            320.. => 320 + (entries - 319).min(130),
        };
        assert_near(*immediate_percent, [100.0 * held as f64 / 450.0; 2]);
        assert_eq!(cpu_list_percent.most > 0.0, held < 450, "{entries}");
        assert_eq!(with_way_percent.most > cpu_list_percent.most, held < 450, "{entries}");
    }
}

#[test]
fn sizes_below_a_need_end_at_its_power_of_two() {
    assert!(sizes_below(0).is_empty());
    assert_eq!(sizes_below(1), [1]);
    for need in [7, 64, 100, 449] {
        let sizes = sizes_below(need);
        assert!(sizes.contains(&(need as usize)) && sizes.is_sorted());
        assert_eq!(*sizes.last().unwrap(), (need as usize).next_power_of_two());
        assert!(sizes[0] > 0);
    }
}

#[test]
fn a_host_with_more_ranks_than_processors_is_crowded() {
    let of = |cores: u32, processors: &str, run: Option<RunRecord>, host_of_1: &str| {
        let processors = processors.to_owned();
        let recording = recording_with(run, [FIRST, SECOND], |header| {
            header.origin.cores = Some(cores);
            header.origin.processors.clone_from(&processors);
            if header.rank == Some(1) {
                host_of_1.clone_into(&mut header.host);
            }
        });
        let Facts { processors, crowded, hosts, exit_status, .. } =
            Facts::of(&[&recording.found], models::specific(), false).unwrap();
        (processors, crowded, hosts, exit_status)
    };
    assert_eq!(of(2, "", None, "a"), (Some(2), false, 1, None));
    assert_eq!(of(1, "", None, "a"), (Some(1), true, 1, None));
    assert_eq!(of(1, "", None, "b"), (Some(1), false, 2, None));
    // Both ranks may use only one processor.
    assert_eq!(of(4, "2", None, "a"), (Some(4), true, 1, None));
    let launched = |host: &str, processors| {
        let mut run = RunRecord::new(vec!["mpiexec".to_owned()], 3, processors, 7);
        host.clone_into(&mut run.host);
        Some(run)
    };
    assert_eq!(of(4, "", launched("a", 1), "a"), (Some(1), true, 1, Some(3)));
    assert_eq!(of(4, "", launched("login", 1), "a"), (Some(4), false, 1, Some(3)));
}

#[test]
fn endpoints_of_a_process_are_one_rank() {
    // The second trace is of another endpoint of the process.
    let facts = facts(|header| {
        if header.rank == Some(1) {
            (header.pid, header.rank) = (0, Some(0));
        }
    });
    assert!(facts.shares.unwrap().starts_with("Ranks have up to 2 endpoints"));
    let seconds = (SHIFT + SECOND.ns()) as f64 * 1e-9;
    let cost = (FIRST.cost() + SECOND.cost()) as f64 * 1e-12;
    let software = facts.devices.iter().find(|of| of.judged.device == "cassini-software").unwrap();
    assert_near(software.cpu_list_percent, [100.0 * cost / seconds; 2]);
    assert!(facts.lack.unwrap().contains("rank 1"));
}

#[test]
fn generated_messages_have_no_processors() {
    let generated = |header: &mut Header| {
        NO_LIBFABRIC.clone_into(&mut header.libfabric);
        (header.origin.cores, header.origin.ranks) = (Some(1), Some(27));
    };
    let facts = facts(generated);
    assert_eq!((facts.generated, facts.processors, facts.crowded), (true, None, false));
    assert_eq!((facts.ranks, facts.ranks_of), (2, 27));
    let recorded = self::facts(|header| header.origin.ranks = Some(27));
    assert_eq!((recorded.generated, recorded.ranks, recorded.ranks_of), (false, 2, 27));
}

#[test]
fn placed_ranks_have_a_nic_on_each_node() {
    let Recording { found, _directory } = recording([FIRST, SECOND], |_| {});
    let placed = Placed { ppn: NonZeroU32::new(1), placement: None };
    let facts = Facts::of(&[&found.placed(&placed).unwrap()], models::specific(), false).unwrap();
    assert_eq!((facts.nodes, facts.nic.name.as_str()), (Some(2), "rank 0"));
    assert_eq!(facts.nic.peak_total, 320.into());
}

#[test]
fn a_run_without_tagged_messages_has_no_facts() {
    let tagged = recording([FIRST, SECOND], |_| {});
    let untagged = recording([FIRST, SECOND], |header| header.context = "msg".to_owned());
    for runs in [vec![&untagged], vec![&tagged, &untagged]] {
        let runs: Vec<_> = runs.into_iter().map(|run| &run.found).collect();
        assert!(matches!(Facts::of(&runs, models::specific(), false), Err(Error::NothingTagged)));
    }
    // One trace of tagged messages is enough.
    let half = recording([FIRST, SECOND], |header| {
        if header.rank == Some(1) {
            header.context = "msg".to_owned();
        }
    });
    let facts = Facts::of(&[&half.found], models::specific(), false).unwrap();
    assert_eq!((facts.rank.internal, facts.nic.internal), (130.into(), 130.into()));
    assert_eq!(device(&facts, "cassini-software").judged.by_design, 320);
    let cost = device(&facts, "cassini-software").cpu_list_percent;
    let seconds = (SHIFT + SECOND.ns()) as f64 * 1e-9;
    assert_near(cost, [100.0 * FIRST.cost() as f64 * 1e-12 / seconds; 2]);
}

#[test]
fn an_endpoint_may_use_all_entries_of_its_engine_but_those_of_buffers() {
    for (name, buffers) in [("cassini-hybrid", 9), ("cassini-hardware", 3)] {
        for (receives, fits_in) in [(16_384 - buffers, 1), (16_385 - buffers, 0)] {
            let many = RankOps { receives, messages: 0, takes: false };
            let Recording { found, _directory } = recording([many, SECOND], |_| {});
            let facts = Facts::of(&[&found], models::specific(), false).unwrap();
            let of = device(&facts, name);
            let need = 4 * (receives + buffers);
            assert_eq!((of.needs[0].most, of.fits_in), (need, fits_in), "{name}");
        }
    }
}
