// SPDX-License-Identifier: BSD-2-Clause
//! Tests the number of elements that searches of the engines traverse, by the papers' definition.
//! Counting them must not change an engine.

use matching::{
    Element, EngineConfig, HostEngine, HostStorage, Key, Offload, OffloadConfig, QueueCounters,
    Source, TagLayout,
};

/// Match bits of MPICH: a point-to-point message, and the first collective of a communicator.
const MESSAGE: u64 = 7;
const COLLECTIVE: u64 = 1 << 31 | 3;

fn queue(engine: HostEngine, storage: HostStorage, depths: bool) -> Offload {
    let engine_config = EngineConfig {
        storage,
        layout: TagLayout::Mpich,
        theta: 10,
        processes: 1024,
        ..EngineConfig::default()
    };
    let config = OffloadConfig { entries: 0, engine, engine_config, depths, ..Default::default() };
    Offload::new(&config).unwrap()
}

/// Makes `calls` calls in which each source sends one element. The elements of a call are matched
/// from the last to the first.
fn calls(mut queue: Offload, bits: u64, sources: u32, calls: u32) -> QueueCounters {
    for _ in 0..calls {
        for token in 0..sources {
            queue.insert(Element { bits, ignore: 0, source: Source::new(token), token });
        }
        for token in (0..sources).rev() {
            let found = queue.search(&Key { bits, ignore: 0, source: Source::new(token) });
            assert_eq!(found.map(|found| found.token), Some(token));
            queue.remove_matched(token);
        }
    }
    let counters = queue.counters();
    counters.check().unwrap();
    counters
}

#[test]
fn a_list_traverses_all_older_elements() {
    for &storage in HostStorage::ALL {
        let counted = calls(queue(HostEngine::List, storage, true), MESSAGE, 64, 2).traversals;
        let sum = 2 * (64 * 65 / 2);
        assert_eq!((counted.entries, counted.in_a_list, counted.hit.total()), (sum, sum, 128));
    }
}

#[test]
fn an_array_of_ranks_traverses_only_the_source() {
    for &storage in HostStorage::ALL {
        let counted = calls(queue(HostEngine::RankArray, storage, true), MESSAGE, 64, 2).traversals;
        assert_eq!((counted.entries, counted.in_a_list), (128, 2 * (64 * 65 / 2)));
    }
}

#[test]
fn collective_queues_are_traversed_instead_of_the_list() {
    let [list, col] = [HostEngine::List, HostEngine::ColPnp].map(|engine| {
        calls(queue(engine, HostStorage::Linked, true), COLLECTIVE, 256, 20).traversals.entries
    });
    assert!(col * 5 < list, "{col} of {list}");
}

#[test]
fn counting_leaves_the_engine_as_it_is() {
    for &engine in HostEngine::ALL {
        for &storage in HostStorage::ALL {
            for bits in [MESSAGE, COLLECTIVE] {
                let [plain, counted] =
                    [false, true].map(|depths| calls(queue(engine, storage, depths), bits, 200, 6));
                assert_eq!(plain.dedicated_levels, counted.dedicated_levels, "{engine} {storage}");
                assert!(counted.traversals.entries > 0);
            }
        }
    }
}

#[test]
fn the_table_traverses_nothing() {
    let config = OffloadConfig { entries: 64, depths: true, ..OffloadConfig::default() };
    let counted = calls(Offload::new(&config).unwrap(), MESSAGE, 64, 1);
    assert_eq!(counted.traversals.entries, 0);
    assert_eq!(counted.traversals.hit.total(), 0);
}
