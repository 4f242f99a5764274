// SPDX-License-Identifier: BSD-2-Clause
//! Tests of receives that the device refuses, and of queues that leave their tables.

use super::*;

#[test]
fn receives_the_device_does_not_take_are_on_the_host_and_matched_in_order() {
    let refuse =
        Refuse { any_source: true, non_contiguous: true, any_tag: false, ..Refuse::default() };
    let mut device = Device::<u32, ()>::new(&DeviceConfig { refuse, ..config(8) }).unwrap();
    let key = Key { bits: 5, ignore: 0, source: Source::new(3) };
    let receives = [
        Receive { key, ..any_source(0, 0) },
        any_source(5, 1),
        Receive { key, non_contiguous: true, ..any_source(0, 2) },
        Receive { key, ..any_source(0, 3) },
    ];
    for mut receive in receives {
        assert!(matches!(device.tagged.post(&mut receive), Post::Pending));
    }
    let prq = device.tagged.counters().prq;
    assert_eq!((prq.table_occupancy, prq.block_reasons.refused), (2, 2));
    for expected in 0..4 {
        let envelope = Envelope { source: 3, bits: 5, len: 0 };
        assert_eq!(device.tagged.arrive(&envelope).unwrap().data, expected);
    }
    device.tagged.counters().check().unwrap();
}

#[test]
fn a_context_leaves_both_tables_and_takes_unexpected_messages_along() {
    let set = |name: &str| {
        let of = [("prq_entries", "4"), ("umq_entries", "4"), ("overflow", "sticky")];
        of.iter().find(|(param, _)| *param == name).map(|(_, value)| (*value).to_owned())
    };
    let params = crate::params::Params::from_lookup(set).unwrap();
    let config = DeviceConfig::from_params(&params, TagLayout::Opaque);
    let mut context: Context<(), ()> = Context::new(&config).unwrap();
    let key = |bits| Key { bits, ignore: 0, source: Source::new(1) };
    let envelope = |bits| Envelope { source: 1, bits, len: 0 };
    let arrive = |context: &mut Context<(), ()>, bits| {
        if context.arrive(&envelope(bits)).is_none() {
            context.keep(envelope(bits), ());
        }
    };
    let post = |context: &mut Context<(), ()>, bits| {
        let mut receive =
            Receive { key: key(bits), multi: None, non_contiguous: false, len: 8, data: () };
        context.post(&mut receive)
    };
    for bits in 10..13 {
        arrive(&mut context, bits);
    }
    for bits in 0..4 {
        post(&mut context, bits);
    }
    assert_eq!(context.occupancy(), [(4, 0), (3, 0)]);
    post(&mut context, 4);
    // Receives stay in the table until they match; unexpected messages move to the host.
    assert_eq!(context.occupancy(), [(4, 1), (0, 3)]);
    arrive(&mut context, 13);
    assert_eq!(context.occupancy(), [(4, 1), (0, 4)]);
    arrive(&mut context, 0);
    post(&mut context, 5);
    assert!(matches!(post(&mut context, 10), Post::Matched { .. }));
    let counters = context.counters();
    counters.check().unwrap();
    assert_eq!((counters.umq.onloads, counters.umq.spills), (3, 1));
    assert_eq!((counters.prq.onloads, counters.prq.spills), (0, 2));
    assert_eq!(counters.umq.block_reasons.sticky, 1);
    let reasons = &counters.prq.block_reasons;
    assert_eq!((reasons.table_full, reasons.sticky), (1, 1));
}

#[test]
fn preemptive_switches_leave_the_tables_before_they_are_full() {
    for (word, bits, prq, umq) in [
        ("posted-recv", 0..4_u64, [(2, 2), (0, 0)], 0),
        ("unexpected-msg", 10..14, [(0, 0), (0, 4)], 1),
    ] {
        let set = |name: &str| match name {
            "overflow" => Some("sticky".to_owned()),
            "preemptive" => Some(word.to_owned()),
            "rx_size" => Some("2".to_owned()),
            _ => None,
        };
        let params = crate::params::Params::from_lookup(set).unwrap();
        let config = DeviceConfig::from_params(&params, TagLayout::Opaque);
        let mut context: Context<(), ()> = Context::new(&config).unwrap();
        for bits in bits {
            let envelope = Envelope { source: 1, bits, len: 0 };
            if umq == 1 {
                assert!(context.arrive(&envelope).is_none());
                context.keep(envelope, ());
            } else {
                let key = Key { bits, ignore: 0, source: Source::new(1) };
                context.post(&mut Receive {
                    key,
                    multi: None,
                    non_contiguous: false,
                    len: 8,
                    data: (),
                });
            }
        }
        assert_eq!(context.occupancy(), prq, "{word}");
        let counters = context.counters();
        counters.check().unwrap();
        let reasons = [&counters.prq, &counters.umq][umq].block_reasons.clone();
        assert_eq!((reasons.preemptive, reasons.sticky), (1, 1), "{word}");
    }
}

#[test]
fn a_device_that_refuses_any_tag_accepts_any_source() {
    let set = |name: &str| (name == "refuse").then(|| "any-tag".to_owned());
    let params = crate::params::Params::from_lookup(set).unwrap();
    let config = DeviceConfig::from_params(&params, TagLayout::Mpich);
    let mut context: Context<(), ()> = Context::new(&config).unwrap();
    // Every receive ignores the protocol bits of MPICH.
    let protocol = 0xc0 << 48;
    for (ignore, source) in [
        (protocol, Source::new(1)),
        (protocol, Source::ANY),
        (protocol | 0x7fff_ffff, Source::new(1)),
    ] {
        let key = Key { bits: 3, ignore, source };
        context.post(&mut Receive { key, multi: None, non_contiguous: false, len: 8, data: () });
    }
    assert_eq!(context.occupancy()[0], (2, 1));
    assert_eq!(context.counters().prq.block_reasons.refused, 1);
}

#[test]
fn short_receives_stay_on_the_host_until_a_long_one_forces_them() {
    let set = |name: &str| (name == "device").then(|| "connectx".to_owned());
    let params = crate::params::Params::from_lookup(set).unwrap();
    let config = DeviceConfig::from_params(&params, TagLayout::Mpich);
    let post = |context: &mut Context<(), ()>, len, source| {
        let key = Key { bits: 3, ignore: 0, source };
        context.post(&mut Receive { key, multi: None, non_contiguous: false, len, data: () });
    };
    let one = Source::new(1);
    let mut context: Context<(), ()> = Context::new(&config).unwrap();
    post(&mut context, 1024, one);
    post(&mut context, 1023, one);
    // The older receives are on the host.
    post(&mut context, 8191, one);
    assert_eq!(context.occupancy()[0], (1, 2));
    post(&mut context, 8192, one);
    assert_eq!(context.occupancy()[0], (4, 0));
    // A receive that the device always refuses stops the promotion.
    post(&mut context, 1024, Source::ANY);
    post(&mut context, 8192, one);
    assert_eq!(context.occupancy()[0], (4, 2));
    let counters = context.counters();
    counters.check().unwrap();
    let reasons = &counters.prq.block_reasons;
    assert_eq!((reasons.short, reasons.order, reasons.refused), (1, 2, 1));
    assert_eq!(counters.prq.promotions, 2);
}

#[test]
fn a_long_receive_forces_nothing_into_a_table_that_was_left() {
    let mut config = config(1);
    config.prq.overflow = Overflow::Sticky;
    config.refuse = Refuse { below: 8, force_above: 64, ..Refuse::default() };
    let mut context: Context<u32, ()> = Context::new(&config).unwrap();
    for len in [8, 8] {
        context.post(&mut Receive { len, ..any_source(1, 0) });
    }
    assert_eq!(context.occupancy()[0], (1, 1));
    assert!(context.arrive(&Envelope { source: 0, bits: 1, len: 0 }).is_some());
    context.post(&mut Receive { len: 65, ..any_source(1, 0) });
    assert_eq!(context.occupancy()[0], (0, 2));
    context.counters().check().unwrap();
}

#[test]
fn a_long_receive_forces_no_short_one_past_a_younger_one() {
    for &overflow in Overflow::ALL {
        let mut config = config(8);
        config.prq.overflow = overflow;
        config.refuse = Refuse { below: 8, force_above: 64, ..Refuse::default() };
        let mut context: Context<u32, ()> = Context::new(&config).unwrap();
        for (len, data) in [(4, 0), (8, 1), (65, 2)] {
            context.post(&mut Receive { len, ..any_source(1, data) });
        }
        for expected in 0..3 {
            let found = context.arrive(&Envelope { source: 0, bits: 1, len: 0 });
            assert_eq!(found.map(|found| found.data), Some(expected), "{overflow}");
        }
        context.counters().check().unwrap();
    }
}
