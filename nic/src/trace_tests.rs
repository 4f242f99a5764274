// SPDX-License-Identifier: BSD-2-Clause
//! Tests that traces are read as they were written, and that damage is an error.

use matching::{Key, Source};
use proptest::prelude::*;

use super::code::LARGEST_SOURCE;
use super::*;
use crate::message::{Envelope, MultiRecv};

fn key() -> impl Strategy<Value = Key> {
    let source = prop_oneof![Just(Source::ANY), (0..=LARGEST_SOURCE).prop_map(Source::new)];
    (any::<u64>(), any::<u64>(), source).prop_map(|(bits, ignore, source)| Key {
        bits,
        ignore,
        source,
    })
}

fn posted() -> impl Strategy<Value = Posted> {
    let multi = proptest::option::of(
        (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(len, used, min)| MultiRecv {
            len,
            used: used.min(len),
            min,
        }),
    );
    let len = prop_oneof![0..70_000_u64, any::<u64>()];
    (key(), len, multi, any::<bool>()).prop_map(|(key, len, multi, non_contiguous)| Posted {
        key,
        len: multi.map_or(len, |multi| multi.len),
        multi,
        non_contiguous,
    })
}

fn op() -> impl Strategy<Value = Op> {
    let envelope = (0..=LARGEST_SOURCE, any::<u64>(), any::<u64>())
        .prop_map(|(source, bits, len)| Envelope { source, bits, len });
    let sent = (0..=LARGEST_SOURCE, any::<u64>(), any::<u64>())
        .prop_map(|(peer, bits, len)| Sent { peer, bits, len });
    prop_oneof![
        sent.prop_map(Op::Send),
        posted().prop_map(Op::Post),
        posted().prop_map(Op::PostAnyway),
        posted().prop_map(Op::Held),
        envelope.prop_map(Op::Arrive),
        key().prop_map(Op::Peek),
        key().prop_map(Op::Claim),
        key().prop_map(Op::Discard),
        any::<u64>().prop_map(Op::Cancel),
        any::<u64>().prop_map(Op::Drop),
        any::<u32>().prop_map(Op::Processes),
    ]
}

fn header() -> Header {
    let config = [("prq_entries".to_owned(), "7".to_owned())].into();
    Header { context: "tagged".to_owned(), rank: Some(3), config, ..Header::default() }
}

fn file(ops: &[(u64, Op)]) -> Vec<u8> {
    let mut bytes = header().to_bytes();
    let mut encoder = Encoder::default();
    for (time, op) in ops {
        put_time(&mut bytes, *time).unwrap();
        encoder.op(&mut bytes, op).unwrap();
        if let Op::Stop(stop) = op {
            tell_stop(&mut bytes, *stop);
        }
    }
    bytes
}

fn tell_stop(bytes: &mut [u8], stop: Stop) {
    let state = state(0, End::Stopped(stop)).map(u32::to_le_bytes);
    bytes[HEADER - STATE..HEADER].copy_from_slice(state.as_flattened());
}

fn read(bytes: &[u8]) -> Result<Vec<Timed>, TraceError> {
    Reader::new(bytes)?.collect()
}

proptest! {
    #[test]
    fn a_written_trace_is_read_back(
        ops in proptest::collection::vec((any::<u64>(), op()), 0..50),
        stop in proptest::option::of(prop_oneof![Just(Stop::Size), Just(Stop::Disk)]),
        zeros in 0..3_usize,
    ) {
        let time = ops.last().map_or(0, |(time, _)| *time);
        let mut ops = ops;
        ops.extend(stop.map(|stop| (time, Op::Stop(stop))));
        let mut bytes = file(&ops);
        // A killed process leaves zeros after the last record.
        bytes.resize(bytes.len() + zeros * WORD, 0);
        let reader = Reader::new(&bytes[..]).unwrap();
        prop_assert_eq!(reader.header(), &header());
        prop_assert_eq!(read(&bytes).unwrap(), ops);
    }

    #[test]
    fn damage_is_an_error_or_other_operations_and_nothing_else(
        ops in proptest::collection::vec((any::<u64>(), op()), 1..20),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = file(&ops);
        let len = cut.index(bytes.len() + 1);
        bytes.truncate(len);
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        // Damaged bytes may be read as operations of at least one word each, or as a word that
        // repeats an operation.
        if let Ok(found) = read(&bytes) {
            let words = bytes.len().saturating_sub(HEADER) / WORD;
            prop_assert!(found.len() <= words * MOST_REPEATS as usize + 1);
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let whole = file(&[(5, Op::Cancel(3)), (6, Op::Drop(1))]);
    let error = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(error(b""), "an empty file: nothing was recorded");
    assert_eq!(error(b"PNG"), "not a tcam trace");
    assert_eq!(
        error(b"tcam-trace 1\n{}"),
        "a trace in the format of another version of tcam: record it again"
    );
    assert_eq!(error(&whole[..5]), "cut off before the first record, after 5 bytes");
    assert_eq!(error(&whole[..100]), "cut off before the first record, after 100 bytes");
    assert_eq!(error(&whole[..whole.len() - 3]), "cut off in record 3");
    let mut damaged = whole.clone();
    damaged[HEADER + 3 * WORD] = 0x1f;
    assert_eq!(error(&damaged), "record 1 is damaged");
    let mut damaged = whole.clone();
    damaged[HEADER - 1] = 1;
    assert_eq!(error(&damaged), "the end of the header is damaged");
    let mut damaged = whole;
    damaged[MAGIC.len()] = b'x';
    assert!(error(&damaged).starts_with("the header is damaged: "));
}

#[test]
fn the_error_of_a_peer_is_that_of_its_messages() {
    let arrival = |source| Op::Arrive(Envelope { source, bits: 0, len: 0 });
    let mut bytes = header().to_bytes();
    put_error(&mut bytes, 3, 70).unwrap();
    put_error(&mut bytes, LARGEST_SOURCE, 80).unwrap();
    Encoder::default().op(&mut bytes, &arrival(3)).unwrap();
    let mut reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.bytes_read(), 0);
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!(reader.bytes_read(), (bytes.len() - HEADER) as u64);
    let errors = [arrival(3), arrival(LARGEST_SOURCE), arrival(4), Op::Cancel(3)];
    assert_eq!(errors.map(|op| reader.error(&op)), [70, 80, 0, 0]);
    put_error(&mut bytes, LARGEST_SOURCE + 1, 80).unwrap();
    assert!(read(&bytes).unwrap_err().to_string().ends_with("is damaged"));
}

#[test]
fn a_window_has_whole_words_and_a_limit() {
    let bytes = vec![7; 3 * WORD];
    let read = |length: usize| read_window(&mut &bytes[..], length as u32);
    assert!(read(0).unwrap().is_empty());
    assert_eq!(read(3 * WORD).unwrap(), bytes);
    let error = |length| read(length).unwrap_err().to_string();
    assert!(error(WORD + 1).contains("a window of 5 bytes"));
    assert!(error(LARGEST_WINDOW as usize + WORD).contains("names a window"));
    let cut = HEADER + bytes.len();
    for length in [4 * WORD, LARGEST_WINDOW as usize] {
        assert_eq!(error(length), format!("cut off before the first record, after {cut} bytes"));
    }
}

#[test]
fn a_source_number_above_the_limit_is_damage() {
    let arrival = |source| file(&[(5, Op::Arrive(Envelope { source, bits: 0, len: 0 }))]);
    assert_eq!(read(&arrival(LARGEST_SOURCE)).unwrap().len(), 1);
    let error = read(&arrival(LARGEST_SOURCE + 1)).unwrap_err().to_string();
    assert_eq!(error, "record 1 is damaged");
}

#[test]
fn an_operation_is_repeated_count_times() {
    let op = Op::Cancel(3);
    let repeated = |count: u32| {
        let mut bytes = file(&[(5, op)]);
        put_time(&mut bytes, 6).unwrap();
        bytes.put([repeat_record(count)]).unwrap();
        Encoder::default().op(&mut bytes, &Op::Drop(1)).unwrap();
        read(&bytes)
    };
    let others = [(6, Op::Drop(1))];
    assert_eq!(repeated(2).unwrap(), [&[(5, op), (6, op), (6, op)], &others[..]].concat());
    assert_eq!(repeated(MOST_REPEATS).unwrap().len(), MOST_REPEATS as usize + 2);
    for count in [0, MOST_REPEATS + 1, 0xffff] {
        assert_eq!(repeated(count).unwrap_err().to_string(), "record 3 is damaged");
    }
    let mut bytes = header().to_bytes();
    bytes.put([repeat_record(1)]).unwrap();
    assert_eq!(read(&bytes).unwrap_err().to_string(), "record 0 is damaged");
}

#[test]
fn a_recording_may_end_between_the_two_records_of_a_post() {
    let key = Key { bits: 1, ignore: 0, source: Source::ANY };
    let multi = Some(MultiRecv { len: 100, used: 0, min: 8 });
    let post = Op::Post(Posted { key, len: 100, multi, non_contiguous: false });
    let stop = Op::Stop(Stop::Size);
    let mut bytes = file(&[(5, post)]);
    tell_stop(&mut bytes, Stop::Size);
    assert_eq!(read(&bytes).unwrap(), [(5, post), (5, stop)]);
    // The records of time, length and key are still there, but not that of the post.
    bytes.truncate(bytes.len() - WORD);
    assert_eq!(read(&bytes).unwrap(), [(5, stop)]);
}

#[test]
fn an_unclosed_recording_is_reported() {
    for (end, unfinished) in
        [(End::Open, true), (End::Closed(0), false), (End::Stopped(Stop::Disk), false)]
    {
        let mut bytes = header().to_bytes();
        let state = state(0, end).map(u32::to_le_bytes);
        bytes[HEADER - STATE..HEADER].copy_from_slice(state.as_flattened());
        assert_eq!(Reader::new(&bytes[..]).unwrap().is_unfinished(), unfinished);
    }
}

#[test]
fn a_generated_trace_that_is_cut_at_a_record_is_an_error() {
    let operations = [(5, Op::Cancel(3)), (6, Op::Drop(1))];
    let mut bytes = file(&operations);
    let words = (bytes.len() - HEADER) / WORD;
    let state = state(words as u64, End::Closed(0)).map(u32::to_le_bytes);
    bytes[HEADER - STATE..HEADER].copy_from_slice(state.as_flattened());
    assert_eq!(read(&bytes).unwrap(), operations);
    for len in HEADER..bytes.len() {
        let error = read(&bytes[..len]).unwrap_err();
        assert!(matches!(error, TraceError::Cut(_)), "{error}");
    }
    // Words after the records are no records.
    bytes.extend([0xff; WORD]);
    assert_eq!(read(&bytes).unwrap(), operations);
}

#[test]
fn a_length_that_does_not_fit_its_field_takes_a_record() {
    let key = Key { bits: 1, ignore: 0, source: Source::new(7) };
    let size = |len| {
        let post = Op::Post(Posted { key, len, multi: None, non_contiguous: false });
        let bytes = file(&[(5, post)]);
        assert_eq!(read(&bytes).unwrap(), [(5, post)]);
        bytes.len()
    };
    assert_eq!([0, 0xffff].map(size), [size(64); 2]);
    assert_eq!([0x1_0000, u64::MAX].map(size), [size(64) + 3 * WORD; 2]);
    // A *long* record before a record that has no length.
    let mut bytes = header().to_bytes();
    bytes.put([4, 1, 0]).unwrap();
    Encoder::default().op(&mut bytes, &Op::Peek(key)).unwrap();
    assert_eq!(read(&bytes).unwrap_err().to_string(), "record 2 is damaged");
}

#[test]
fn sends_name_their_receiver_and_have_a_thread() {
    let sent = |len| Op::Send(Sent { peer: 3, bits: 9, len });
    let thread = |number, ns| Thread { number, is_device: number == 2, cpu_ns: Some(ns) };
    let (mut bytes, mut encoder) = (header().to_bytes(), Encoder::default());
    encoder.op(&mut bytes, &sent(8)).unwrap();
    for (at, len) in [(1, 0xffff), (2, 0x1_0000)] {
        put_thread(&mut bytes, thread(at, 10 << 32 | u64::from(at))).unwrap();
        encoder.op(&mut bytes, &sent(len)).unwrap();
    }
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let told: Vec<_> =
        std::iter::from_fn(|| Some((reader.next()?.unwrap().1, reader.thread()))).collect();
    let threads = [(1, 0xffff), (2, 0x1_0000)]
        .map(|(at, len)| (sent(len), thread(at, 10 << 32 | u64::from(at))));
    assert_eq!(told, [&[(sent(8), Thread::default())], &threads[..]].concat());
    assert!(matches!(read(&bytes[..bytes.len() - 3]), Err(TraceError::Cut(_))));
    // A send whose key names any source is damage.
    let mut odd = header().to_bytes();
    encoder.op(&mut odd, &Op::Peek(Key { bits: 1, ignore: 0, source: Source::ANY })).unwrap();
    let [.., low, high, _, _] = odd[..] else { unreachable!("a record has four bytes") };
    odd.put([u32::from(low) & 0xc0 | u32::from(high) << 8 | 19]).unwrap();
    assert!(matches!(read(&odd), Err(TraceError::Record(2))));
}

/// Operations with the threads that did them.
fn threads_of(bytes: &[u8]) -> Result<Vec<(Op, Thread)>, TraceError> {
    let mut reader = Reader::new(bytes)?;
    let mut told = Vec::new();
    while let Some(next) = reader.next() {
        told.push((next?.1, reader.thread()));
    }
    Ok(told)
}

proptest! {
    #[test]
    fn each_operation_has_the_thread_that_was_recorded_last(
        done in proptest::collection::vec(
            (op(), proptest::option::of((0..1_u32 << 26, any::<bool>(), any::<Option<u64>>()))),
            1..30,
        ),
    ) {
        let (mut bytes, mut encoder) = (header().to_bytes(), Encoder::default());
        let (mut now, mut expected) = (Thread::default(), Vec::new());
        for (op, turn) in done {
            if let Some((number, is_device, cpu_ns)) = turn {
                now = Thread { number, is_device, cpu_ns };
                let before = bytes.len();
                put_thread(&mut bytes, now).unwrap();
                let words = if cpu_ns.is_some() { 4 } else { 1 };
                prop_assert_eq!(bytes.len() - before, words * WORD);
            }
            encoder.op(&mut bytes, &op).unwrap();
            expected.push((op, now));
        }
        prop_assert_eq!(threads_of(&bytes).unwrap(), expected);
    }
}

#[test]
fn a_trace_of_one_thread_is_as_long_as_without_threads() {
    let ops = [(5, Op::Cancel(3)), (6, Op::Drop(1))];
    let bytes = file(&ops);
    assert_eq!(bytes.len(), HEADER + 2 * (3 + 3) * WORD);
    assert_eq!(threads_of(&bytes).unwrap(), ops.map(|(_, op)| (op, Thread::default())));
}

#[test]
fn a_turn_applies_to_repetitions_that_follow_it() {
    let turn = |number| Thread { number, ..Thread::default() };
    let (mut bytes, op) = (file(&[(5, Op::Cancel(3))]), Op::Cancel(3));
    bytes.put([repeat_record(1)]).unwrap();
    put_thread(&mut bytes, turn(7)).unwrap();
    bytes.put([repeat_record(2)]).unwrap();
    let told = [0, 0, 7, 7].map(|number| (op, turn(number)));
    assert_eq!(threads_of(&bytes).unwrap(), told);
    // The file ends before the last record, or within it.
    let whole = bytes.len();
    for (len, expected) in [(whole - WORD, Ok(2)), (whole - 1, Err("cut off in record 5"))] {
        let found = threads_of(&bytes[..len]).map(|told| told.len());
        assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }
}

#[test]
fn a_thread_number_above_the_limit_is_damage() {
    let most = u32::MAX >> 6;
    let file = |words: [u32; 4]| {
        let mut bytes = header().to_bytes();
        bytes.put(words).unwrap();
        Encoder::default().op(&mut bytes, &Op::Drop(1)).unwrap();
        threads_of(&bytes).map(|told| told[0].1.number).map_err(|error| error.to_string())
    };
    assert_eq!(file([20, most, 0, 0]), Ok(most));
    assert_eq!(file([20, most + 1, 0, 0]), Err("record 0 is damaged".to_owned()));
    assert_eq!(file([21 | 3 << 6, 14, 14, 14]), Ok(3));
    // All threads above the largest number are recorded with it.
    let mut bytes = header().to_bytes();
    put_thread(&mut bytes, Thread { number: u32::MAX, ..Thread::default() }).unwrap();
    Encoder::default().op(&mut bytes, &Op::Drop(1)).unwrap();
    assert_eq!(threads_of(&bytes).unwrap()[0].1.number, most);
}

#[test]
fn the_first_key_is_written_whatever_it_is() {
    let key = Key { bits: 0, ignore: 0, source: Source::new(0) };
    let (head, _) = Op::Peek(key).short().unwrap();
    let (mut bytes, mut encoder) = (header().to_bytes(), Encoder::default());
    assert_eq!(encoder.known(head, &key), None);
    encoder.short(&mut bytes, head, key).unwrap();
    assert!(encoder.known(head, &key).is_some());
    assert_eq!(read(&bytes).unwrap(), [(0, Op::Peek(key))]);
}

#[test]
fn words_of_few_bits_are_read_and_other_versions_refused() {
    let key = Key { bits: 0, ignore: 0, source: Source::new(0) };
    let post = Posted { key, len: 0, multi: None, non_contiguous: true };
    let message = Envelope { source: 0, bits: 0, len: 9 };
    let mut bytes = header().to_bytes();
    // A non-contiguous post, a message and a peek, all with the key that every place holds at
    // first.
    [5 | 1 << 5, 8 | 9 << 16, 9].iter().for_each(|&word| bytes.put([word]).unwrap());
    let mut reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.thread(), Thread::default());
    let ops: Vec<_> = reader.by_ref().map(|it| it.unwrap().1).collect();
    assert_eq!(ops, [Op::Post(post), Op::Arrive(message), Op::Peek(key)]);
    for cut in 1..WORD {
        assert!(matches!(read(&bytes[..bytes.len() - cut]), Err(TraceError::Cut(2))));
    }
    // The next version has sites, and the same records.
    bytes[11] = b'8';
    assert_eq!(read(&bytes).unwrap().len(), 3);
    for version in [b'6', b'9', b'x'] {
        bytes[11] = version;
        assert!(matches!(read(&bytes), Err(TraceError::Version)), "version {version}");
    }
}

proptest! {
    #[test]
    fn each_operation_has_its_own_time(
        done in proptest::collection::vec((prop_oneof![0..200_u64, 0..1_u64 << 28], op()), 1..50),
        start in 0..1_u64 << 60,
    ) {
        let (mut bytes, mut encoder) = (header().to_bytes(), Encoder::default());
        put_time(&mut bytes, start).unwrap();
        let (mut now, mut expected) = (start, Vec::new());
        for (passed, op) in done {
            now += passed;
            match step_record(passed) {
                Some(step) => bytes.put([step]).unwrap(),
                None => put_time(&mut bytes, now).unwrap(),
            }
            prop_assert_eq!(step_record(passed).is_some(), passed < 1 << 26);
            encoder.op(&mut bytes, &op).unwrap();
            expected.push((now, op));
        }
        prop_assert_eq!(read(&bytes).unwrap(), expected);
    }
}

#[test]
fn an_operation_is_repeated_later() {
    let later = |ns| later_record(ns).unwrap();
    let mut bytes = file(&[(5, Op::Cancel(3))]);
    [later(7), repeat_record(1), later(0), later((1 << 26) - 1)]
        .into_iter()
        .for_each(|word| bytes.put([word]).unwrap());
    let times = [5, 12, 12, 12, 12 + (1 << 26) - 1];
    assert_eq!(read(&bytes).unwrap(), times.map(|time| (time, Op::Cancel(3))));
    assert_eq!(later_record(1 << 26), None);
    let mut odd = header().to_bytes();
    odd.put([later(7)]).unwrap();
    assert!(matches!(read(&odd), Err(TraceError::Record(0))));
}

#[test]
fn a_step_of_a_damaged_trace_does_not_overflow() {
    let mut bytes = header().to_bytes();
    put_time(&mut bytes, u64::MAX).unwrap();
    bytes.put([step_record(5).unwrap()]).unwrap();
    Encoder::default().op(&mut bytes, &Op::Drop(1)).unwrap();
    assert_eq!(read(&bytes).unwrap(), [(u64::MAX, Op::Drop(1))]);
}

#[test]
fn peers_are_read_along_with_the_operations() {
    let key = Key { bits: 1, ignore: 0, source: Source::new(7) };
    let multi = Some(MultiRecv { len: 100, used: 0, min: 8 });
    let ops = [Op::Post(Posted { key, len: 100, multi, non_contiguous: false }), Op::Peek(key)];
    let mut bytes = header().to_bytes();
    let (mut encoder, address) = (Encoder::default(), Address { ip: 0x7f00_0001, port: 4711 });
    put_peer(&mut bytes, 7, address).unwrap();
    ops.iter().for_each(|op| encoder.op(&mut bytes, op).unwrap());
    let mut reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.by_ref().map(|it| it.unwrap().1).collect::<Vec<_>>(), ops);
    assert_eq!(reader.peers().get(&7), Some(&address));
    let mut odd = header().to_bytes();
    put_peer(&mut odd, LARGEST_SOURCE + 1, address).unwrap();
    assert!(matches!(read(&odd), Err(TraceError::Record(0))));
}

#[test]
fn a_header_too_long_loses_its_paths_only() {
    let mut long = header();
    long.config.insert("report".to_owned(), "x".repeat(2 * HEADER));
    long.program = "x".repeat(4096);
    let bytes = long.to_bytes();
    assert_eq!(bytes.len(), HEADER);
    let read = Reader::new(&bytes[..]).unwrap().header().clone();
    assert_eq!(read, Header { program: String::new(), ..header() });
}

#[test]
fn no_value_of_a_parameter_but_a_path_is_too_long_for_a_header() {
    for param in crate::params::PARAMS {
        let longest = match param.values {
            crate::params::Values::Words(words) => words.iter().map(|word| word.len()).max(),
            crate::params::Values::Set(words) => Some(words.join(",").len()),
            _ => None,
        };
        assert!(longest.unwrap_or_default() <= LONGEST_VALUE, "{}", param.name);
    }
}

fn module(path: &str) -> Module {
    Module { build_id: String::new(), path: path.to_owned() }
}

#[test]
fn operations_have_the_site_that_was_recorded_last() {
    let named = Module { build_id: "5f0e".to_owned(), path: "/opt/my app/a".to_owned() };
    let long = module(&format!("/{}", "x".repeat(4000)));
    let caller = |module, offset| Caller { module, offset };
    let sites = [
        Site { function: "MPI_Irecv".to_owned(), callers: vec![caller(1, 0x1a2b), caller(0, 3)] },
        Site { function: "MPI_Recv".to_owned(), callers: Vec::new() },
    ];
    let mut bytes = Header { sites: true, ..header() }.to_bytes();
    let (mut encoder, op) = (Encoder::default(), |number| Op::Cancel(number));
    encoder.op(&mut bytes, &op(0)).unwrap();
    for module in [&named, &long] {
        put_module(&mut bytes, module).unwrap();
    }
    for (site, number) in sites.iter().zip(1..) {
        put_site(&mut bytes, site).unwrap();
        bytes.put([site_record(number)]).unwrap();
        encoder.op(&mut bytes, &op(number.into())).unwrap();
    }
    bytes.put([site_record(0)]).unwrap();
    encoder.op(&mut bytes, &op(3)).unwrap();
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let mut told = Vec::new();
    while let Some(next) = reader.next() {
        told.push((next.unwrap().1, reader.site()));
    }
    assert_eq!(told, [(op(0), 0), (op(1), 1), (op(2), 2), (op(3), 0)]);
    assert!(reader.header().sites && !Reader::new(&file(&[])[..]).unwrap().header().sites);
    assert_eq!(*reader.sites(), Sites { modules: vec![named, long], sites: sites.into() });
}

#[test]
fn entries_of_sites_that_name_nothing_are_damage() {
    let error = |put: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = header().to_bytes();
        put(&mut bytes);
        read(&bytes).unwrap_err().to_string()
    };
    let caller = Caller { module: 1, offset: 3 };
    let site = Site { function: "MPI_Irecv".to_owned(), callers: vec![caller] };
    assert_eq!(error(&|bytes| bytes.put([site_record(1)]).unwrap()), "record 0 is damaged");
    let of_no_module = |bytes: &mut Vec<u8>| {
        put_module(bytes, &module("a")).unwrap();
        put_site(bytes, &site).unwrap();
    };
    // The entry of the site has two parts.
    assert_eq!(error(&of_no_module), "record 1 is damaged");
    assert_eq!(
        error(&|bytes| bytes.put([26 | 25 << 16, 0, 0, 0, 0, 0, 0]).unwrap()),
        "record 0 is damaged"
    );
    assert_eq!(
        error(&|bytes| bytes.put([26 | 1 << 5 | 2 << 16, 0xff, 0, 0, 0, 0, 0]).unwrap()),
        "record 0 is damaged"
    );
}

#[test]
fn polls_are_beside_the_operations() {
    let op = |number| Op::Cancel(number);
    let (mut bytes, mut encoder) = (header().to_bytes(), Encoder::default());
    encoder.op(&mut bytes, &op(0)).unwrap();
    put_poll(&mut bytes, 1 << 40).unwrap();
    put_poll(&mut bytes, 1 << 41).unwrap();
    encoder.op(&mut bytes, &op(1)).unwrap();
    encoder.op(&mut bytes, &op(2)).unwrap();
    put_poll(&mut bytes, 7).unwrap();
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let mut told = Vec::new();
    loop {
        let next = reader.next().map(|next| next.unwrap());
        told.push((next, reader.take_polled()));
        if next.is_none() {
            break;
        }
    }
    let ops = [(0, None), (1, Some(1 << 41)), (2, None)];
    let expected = ops.map(|(number, polled)| (Some((0, op(number))), polled));
    assert_eq!(told[..3], expected);
    assert_eq!(told[3..], [(None, Some(7))]);
}
