// SPDX-License-Identifier: BSD-2-Clause
//! Compares the computed need of random traces with replays at sizes around it: nothing spills at
//! the need, and something spills at smaller sizes.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use matching::{Key, Source};
use nic::message::{Envelope, MultiRecv};
use nic::trace::{Address, Encoder, Header, Op, Posted, put_error, put_peer, put_time};
use proptest::prelude::*;

use super::*;
use crate::results::summary::NO_LIBFABRIC;
use crate::traces::{Found, Placed, Take, files, play};

/// Number of sources of messages. The number of ranks that record traces is smaller.
const RANKS: u32 = 4;

fn key() -> impl Strategy<Value = Key> {
    let source = prop_oneof![1 => Just(Source::ANY), 3 => (0..RANKS).prop_map(Source::new)];
    (0..3_u64, prop_oneof![8 => Just(0_u64), 1 => Just(3)], source)
        .prop_map(|(bits, ignore, source)| Key { bits, ignore, source })
}

fn op() -> impl Strategy<Value = Op> {
    let multi = MultiRecv { len: 40, used: 0, min: 8 };
    let multi = prop_oneof![9 => Just(None), 1 => Just(Some(multi))];
    let posted = (key(), 1..40_u64, multi, any::<bool>());
    let posted = posted
        .prop_map(|(key, len, multi, non_contiguous)| Posted { key, len, multi, non_contiguous })
        .boxed();
    let envelope = (0..RANKS, 0..3_u64, 0..9_u64).prop_map(|(source, bits, len)| Envelope {
        source,
        bits,
        len,
    });
    prop_oneof![
        8 => posted.clone().prop_map(Op::Post),
        1 => posted.clone().prop_map(Op::PostAnyway),
        1 => posted.prop_map(Op::Held),
        8 => envelope.prop_map(Op::Arrive),
        1 => key().prop_map(Op::Peek),
        1 => key().prop_map(Op::Claim),
        1 => key().prop_map(Op::Discard),
        1 => (0..20_u64).prop_map(Op::Cancel),
        1 => (0..20_u64).prop_map(Op::Drop),
    ]
}

/// Operations, each with the nanoseconds since the previous operation.
type Ops = Vec<(u64, Op)>;

fn ops() -> impl Strategy<Value = Ops> {
    proptest::collection::vec((0..50_u64, op()), 0..80)
}

/// Writes a generated trace, whose operations have exact times.
fn write(path: &Path, rank: u32, context: &str, ops: &Ops) {
    let header = Header { libfabric: NO_LIBFABRIC.to_owned(), ..header(rank, context) };
    write_as(path, &header, ops);
}

/// Returns an error of the clock that all messages with these match bits have, in nanoseconds.
fn clock_error(bits: u64) -> u32 {
    [0, 90, 400][bits as usize % 3]
}

fn header(rank: u32, context: &str) -> Header {
    let [context, layout] = [context, "mpich"].map(str::to_owned);
    let address = format!("127.0.0.1:{}", 4000 + rank);
    Header { rank: Some(rank), pid: rank, context, layout, address, ..Header::default() }
}

fn write_as(path: &Path, header: &Header, ops: &Ops) {
    let (mut bytes, mut encoder, mut now) = (header.to_bytes(), Encoder::default(), 0);
    for rank in 0..RANKS {
        let address = Address { ip: 0x7f00_0001, port: 4000 + rank as u16 };
        put_peer(&mut bytes, rank, address).unwrap();
    }
    for (passed, op) in ops {
        now += passed;
        put_time(&mut bytes, now).unwrap();
        if let (Op::Arrive(message), true) = (op, header.libfabric != NO_LIBFABRIC) {
            put_error(&mut bytes, message.source, clock_error(message.bits)).unwrap();
        }
        encoder.op(&mut bytes, op).unwrap();
    }
    fs::write(path, bytes).unwrap();
}

fn device() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let of = |name: &'static str, values: &'static [&'static str]| {
        proptest::sample::select(values).prop_map(move |value| (name, value.to_owned()))
    };
    (
        of("overflow", &["spill", "prefix", "sticky", "flow-control"]),
        of("pool", &["endpoint", "node"]),
        of("pool_engines", &["1", "1", "2", "3"]),
        of("pool_reserved", &["0", "0", "2"]),
        of("pool_max", &["65536", "65536", "9"]),
        of("pool_buffers", &["0", "0", "1", "3"]),
        of("prq_entries", &["4096", "4096", "12", "0"]),
        of("umq_entries", &["4096", "4096", "12", "0"]),
        of("refuse", &["none", "none", "none", "any-source", "non-contiguous", "any-tag"]),
        of("refuse_below", &["0", "0", "0", "5"]),
        of("preemptive", &["none", "none", "pool", "posted-recv"]),
        of("rx_size", &["1024", "6"]),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i, j, k, l)| vec![a, b, c, d, e, f, g, h, i, j, k, l])
}

/// Returns true if elements of a queue spill although the device has a table for the queue.
fn spills(found: &Found, settings: &Settings, knob: Knob, has: [bool; 2]) -> bool {
    let counted = match play::all(found, settings) {
        // A pool that is too small for the reserved shares of its endpoints counts as a spill.
        Err(Error::Pool | Error::Param(_)) => return true,
        counted => counted.unwrap(),
    };
    counted
        .iter()
        .filter(|of| knob == Knob::Pool || of.trace.header.context == "tagged")
        .flat_map(|of| [&of.counters.prq, &of.counters.umq].into_iter().zip(has))
        .any(|(queue, has)| has && queue.spills > 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_need_is_the_smallest_size_of_replays_without_a_spill(
        ranks in proptest::collection::vec((ops(), ops()), 1..RANKS as usize),
        device in device(),
        ppn in 0..4_u32,
    ) {
        let directory = tempfile::tempdir().unwrap();
        for (rank, (tagged, msg)) in (0..).zip(&ranks) {
            for (context, ops) in [("tagged", tagged), ("msg", msg)] {
                let path = directory.path().join(format!("{rank}.{context}.trace"));
                write(&path, rank, context, ops);
            }
        }
        let placed = Placed { ppn: NonZeroU32::new(ppn), placement: None };
        let found = files::find(&[directory.path().to_owned()], Take::default()).unwrap();
        let found = found.placed(&placed).unwrap();
        let mut settings = Settings::default();
        device.iter().for_each(|(name, value)| settings.set(name, value));
        let params = found[0].params(&settings).unwrap();
        let knob = Knob::of(&params);
        let need = Need::of(&found, &settings, knob, &ProgressBar::hidden()).unwrap();
        let has = [params.prq_entries, params.umq_entries].map(|entries| entries > 0);
        let at = |size: u64| {
            let [prq, umq] = has.map(|has| if has || knob == Knob::Pool { size as usize } else { 0 });
            spills(&found, &knob.set(&settings, (prq, umq)), knob, has)
        };
        match need.size(knob) {
            None => prop_assert!([1, 6, 500, 65_536].into_iter().all(at), "{:?}", need),
            Some(size) => {
                let least = if knob == Knob::Pool { u64::from(params.pool_engines) } else { 0 };
                let size = size.max(least);
                prop_assert!(!at(size) && !at(size + 1), "{} and more: {:?}", size, need);
                let smaller = [size.saturating_sub(1), size / 2].into_iter().filter(|smaller| *smaller < size);
                for smaller in smaller {
                    prop_assert!(at(smaller), "{} of {}: {:?}", smaller, size, need);
                }
            }
        }
        // If the device refuses nothing, the need of a pool that all queues of a node share is the
        // largest number of elements that the queues held together at one moment.
        let plain = Settings::default();
        let shared = Need::of(&found, &plain, Knob::Pool, &ProgressBar::hidden()).unwrap();
        let peak = Range::from(shared.nic().at_peak.all());
        prop_assert_eq!((shared.pool, shared.nic().peak_total), (peak, peak));
    }

    #[test]
    fn every_order_within_the_error_of_the_clock_has_a_need_in_the_range(
        ranks in proptest::collection::vec(
            proptest::collection::vec(
                (0..250_u64, 0..=2 * CLOCKS_OF_HOST, -1.0..=1.0, op()),
                0..40,
            ),
            1..RANKS as usize,
        ),
        device in device(),
    ) {
        let recorded = tempfile::tempdir().unwrap();
        let moved = tempfile::tempdir().unwrap();
        for (rank, ops) in (0..).zip(&ranks) {
            let header = header(rank, "tagged");
            let name = format!("{rank}.trace");
            let times = ops.iter().map(|(passed, _, _, op)| (*passed, *op)).collect();
            write_as(&recorded.path().join(&name), &header, &times);
            let (mut now, mut last, mut other) = (0, 0, Ops::new());
            for (passed, error, of_clock, op) in ops {
                now += passed;
                let clock = match op {
                    Op::Arrive(message) => of_clock * f64::from(clock_error(message.bits)),
                    _ => 0.0,
                };
                let at = (now + error).saturating_add_signed(clock as i64).max(last);
                other.push((at - last, *op));
                last = at;
            }
            write(&moved.path().join(&name), rank, "tagged", &other);
        }
        let mut settings = Settings::default();
        device.iter().for_each(|(name, value)| settings.set(name, value));
        let need_of = |directory: &tempfile::TempDir| {
            let found = files::find(&[directory.path().to_owned()], Take::default()).unwrap();
            let knob = Knob::of(&found[0].params(&settings).unwrap());
            Need::of(&found, &settings, knob, &ProgressBar::hidden()).unwrap()
        };
        let (range, one) = (need_of(&recorded), need_of(&moved));
        let contains = |range: Range<u64>, one: Range<u64>| {
            one.is_one() && (range.least..=range.most).contains(&one.least)
        };
        prop_assert!(contains(range.pool, one.pool), "{:?} {:?}", range, one);
        let [range_nic, nic] = [range.nic(), one.nic()];
        prop_assert!(contains(range_nic.peak_total, nic.peak_total), "{:?} {:?}", range, one);
        prop_assert!(contains(range_nic.each.prq, nic.each.prq), "{:?} {:?}", range, one);
        prop_assert!(contains(range_nic.each.umq, nic.each.umq), "{:?} {:?}", range, one);
        prop_assert!(range.ranks.iter().all(|rank| rank.peak_total.is_one()), "{:?}", range);
        if ranks.len() == 1 {
            prop_assert!(range.pool.is_one() && range_nic.peak_total.is_one(), "{:?}", range);
        }
        prop_assert_eq!(range.tables, one.tables);
    }
}

#[test]
fn a_need_is_described_by_its_ranks_and_parts() {
    let unit = |ranks: &[u32], prq, umq, internal| PeakNeed {
        ranks: ranks.to_vec(),
        at_peak: Held { prq, umq, internal },
        peak_total: (prq + umq + internal).into(),
        ..PeakNeed::default()
    };
    let names = [&[][..], &[3], &[0, 1, 2, 3], &[1, 3], &[1, 3, 5], &[1, 3, 5, 7]];
    assert_eq!(
        names.map(|ranks| unit(ranks, 0, 0, 0).name()),
        ["a process", "rank 3", "ranks 0-3", "ranks 1 and 3", "ranks 1, 3 and 5", "4 ranks"]
    );
    let (without, with) = (unit(&[3], 1, 2000, 0), unit(&[3], 30, 1, 64));
    assert_eq!((without.at_peak.all(), with.at_peak.all()), (2001, 95));
    assert_eq!(without.parts(), "1 receive and 2,000 unexpected messages");
    assert_eq!(with.parts(), "30 receives, 1 unexpected message and 64 of the MPI itself");
    let need = |nic: &PeakNeed| Need { nics: vec![nic.clone()], ..Need::default() };
    let sentence = |needs: &[&Need]| nic_sentence(needs.iter().copied(), false).unwrap();
    assert_eq!(nic_sentence(&[], false), None);
    let (small, large) = (need(&with), need(&without));
    assert_eq!(
        sentence(&[&large]),
        "A NIC of rank 3 needs 2,001 entries: 1 receive and 2,000 unexpected messages at the same time"
    );
    assert_eq!(
        sentence(&[&small, &large]),
        "A NIC of rank 3 needs 95 to 2,001 entries: 1 receive and 2,000 unexpected messages at the same time"
    );
    let uncertain = PeakNeed { peak_total: Range { least: 1990, most: 2001 }, ..without };
    assert_eq!(
        sentence(&[&need(&uncertain)]),
        "A NIC of rank 3 needs 1,990 to 2,001 entries: 1 receive and 2,000 unexpected messages at the \
         same time in the order of the recorded times"
    );
    // Only uncertain needs have a note.
    assert_eq!(range_note([&large]), None);
    let note = |uncertain_ns| {
        let nics = vec![with.clone(), uncertain.clone()];
        range_note([&large, &Need { nics, uncertain_ns, ..Need::default() }]).unwrap()
    };
    assert!(note(999).ends_with("the order of ranks within 999 ns is unknown."));
    let note = note(1001);
    assert!(note.ends_with("within 2 us is unknown: hosts have different clocks."), "{note}");
}

#[test]
fn ranges_are_combined_by_their_bounds() {
    let range = |least, most| Range { least, most };
    assert_eq!(larger(range(1, 9), range(3, 5)), range(3, 9));
    let unit = |peak_total| PeakNeed { peak_total, ..PeakNeed::default() };
    let units = [unit(range(1, 9)), unit(range(3, 5))];
    assert_eq!(largest(&units, |unit| unit.peak_total), range(3, 9));
    assert_eq!(largest(&[], |unit| unit.peak_total), range(0, 0));
}

#[test]
fn a_meter_refuses_more_than_the_share() {
    let meter = Meter { share: Share { reserved: 1, max: 3 }, held: AtomicU64::new(0) };
    let take = || (0..2).map(|_| meter.take().is_ok()).collect::<Vec<_>>();
    assert_eq!((take(), take()), (vec![true, true], vec![true, false]));
    meter.give_back();
    assert_eq!((meter.held.load(Ordering::Relaxed), meter.is_half_taken()), (2, false));
    assert_eq!(take(), [true, false]);
    assert_eq!(meter.take(), Err(Refusal::Share));
    (0..5).for_each(|_| meter.give_back());
    assert_eq!(meter.held.load(Ordering::Relaxed), 0);
}

#[test]
fn the_peaks_of_a_recording_have_their_times() {
    let directory = tempfile::tempdir().unwrap();
    let post = |bits| {
        let key = Key { bits, ignore: 0, source: Source::new(1) };
        Op::Post(Posted { key, len: 8, multi: None, non_contiguous: false })
    };
    let arrive = |bits| Op::Arrive(Envelope { source: 1, bits, len: 8 });
    // Rank 0 holds three elements at 3 us and again at 7 us. Rank 1 holds two receives of the MPI
    // itself from 11 us on.
    let first = [post(1), post(2), arrive(3), post(3), arrive(2), post(5), post(6)];
    let first: Ops = first.map(|op| (1000, op)).into();
    let own: Ops = vec![(10_000, post(1)), (1000, post(2))];
    for (rank, context, ops) in [(0, "tagged", &first), (1, "msg", &own)] {
        let path = directory.path().join(format!("{rank}.{context}.trace"));
        write_as(&path, &header(rank, context), ops);
    }
    let found = files::find(&[directory.path().to_owned()], Take::default()).unwrap();
    let need = |knob| Need::of(&found, &Settings::default(), knob, &ProgressBar::hidden()).unwrap();
    let need_of_tables = need(Knob::Tables);
    let [rank, other] = need_of_tables.ranks.as_slice() else { panic!("two ranks") };
    assert_eq!((rank.at_peak, rank.peak_total), (Held { prq: 2, umq: 1, internal: 0 }, 3.into()));
    assert!((rank.at_s - 3e-6).abs() < 1e-12, "{}", rank.at_s);
    assert_eq!((rank.each.prq, rank.each.umq), (3.into(), 1.into()));
    assert_eq!((other.ranks.as_slice(), other.each.internal), (&[1][..], 2.into()));
    assert_eq!((other.at_peak, other.peak_total), (Held { prq: 0, umq: 0, internal: 2 }, 2.into()));
    let nic = need_of_tables.nic();
    assert_eq!(nic.at_peak, Held { prq: 3, umq: 0, internal: 2 });
    assert!((nic.at_s - 11e-6).abs() < 1e-12, "{}", nic.at_s);
    assert_eq!((nic.ranks.as_slice(), nic.peak_total), (&[0, 1][..], 5.into()));
    // Tables of untagged messages are not counted.
    assert_eq!(
        (need_of_tables.tables, need_of_tables.sizes(Knob::Tables)),
        ([3, 1], Some(3.into()))
    );
    let need_of_pool = need(Knob::Pool);
    assert_eq!((need_of_pool.pool, need_of_pool.size(Knob::Pool)), (5.into(), Some(5)));
    // Messages of the recording have an error of 90 or 400 ns. The order of operations is known to
    // 100 ns more, on both sides.
    assert_eq!(need_of_pool.uncertain_ns, 2 * CLOCKS_OF_HOST + 2 * 400);
}
