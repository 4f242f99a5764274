// SPDX-License-Identifier: BSD-2-Clause
//! Tests with the match bits that MPI libraries make. The bits were captured on 4 ranks, from the
//! calls of `fi_trecv` and `fi_tsend` by MPICH 5.0.2, Open MPI 5.0.11 and 4.1.4, and Intel MPI
//! 2021.19. tcam printed them between marks that the program set around each MPI call.

use super::*;
use TagLayout as Layout;

/// A call, its match bits and ignore bits.
type Posted = (&'static str, u64, u64);

/// A collective operation, its match bits and the expected kind.
type Operation = (&'static str, u64, Traffic);

/// The expected kind of an application's receive.
const OWN: Option<Traffic> = Some(Traffic::PointToPoint);

const fn collective(communicator: u32, operation: u32) -> Traffic {
    Traffic::Collective(CollectiveId { communicator, operation })
}

const fn nonblocking(communicator: u32) -> Traffic {
    collective(communicator, CollectiveId::NONBLOCKING)
}

/// Receives of the application from rank 1, tag 7, in the world and its duplicate. All are
/// point-to-point. Layouts with the source in the bits name rank 1.
const DIRECTED: [(Layout, &[Posted]); 6] = [
    (
        Layout::Mpich,
        &[
            ("directed", 0x0000_0000_0000_0007, 0x00c0_0000_0000_0000),
            ("directed, any tag", 0x0000_0000_0000_0000, 0x00c0_0000_7fff_ffff),
            ("directed, duplicate", 0x0000_00f8_0000_0007, 0x00c0_0000_0000_0000),
            ("acknowledgement of MPI_Ssend", 0x0008_0000_0000_0007, 0),
            ("MPI_Intercomm_create, tag 5", 0x0010_0000_0000_0005, 0),
            ("of an intercommunicator", 0x0000_00e8_0000_0007, 0x00c0_0000_0000_0000),
        ],
    ),
    (
        Layout::MpichSourceInTag,
        &[
            ("directed", 0x0000_0000_0008_0007, 0x6000_0000_0000_0000),
            ("directed, any tag", 0x0000_0000_0008_0000, 0x6000_0000_0007_ffff),
            ("directed, duplicate", 0x0007_c000_0008_0007, 0x6000_0000_0000_0000),
        ],
    ),
    (
        Layout::IntelMpi,
        &[
            ("directed", 0x0000_0100_0000_0007, 0x6000_0000_0000_0000),
            ("directed, any tag", 0x0000_0100_0000_0000, 0x6000_0000_000f_ffff),
            ("directed, duplicate", 0x0000_0100_1f00_0007, 0x6000_0000_0000_0000),
            ("of an intercommunicator", 0x0000_0100_1d00_0007, 0x6000_0000_0000_0000),
        ],
    ),
    (
        Layout::OpenMpi,
        &[
            ("directed", 0x0000_0000_0000_0007, 0x0000_0001_0000_0000),
            ("directed, any tag", 0x0000_0000_0000_0000, 0x0000_0001_7fff_ffff),
            ("directed, duplicate", 0x0000_000c_0000_0007, 0x0000_0001_0000_0000),
            ("acknowledgement of MPI_Ssend", 0x0000_0002_0000_0007, 0),
            ("MPI_Intercomm_create, tag 5", 0x0000_0000_0000_0005, 0x0000_0001_0000_0000),
            ("of an intercommunicator", 0x0000_0018_0000_0007, 0x0000_0001_0000_0000),
        ],
    ),
    (
        Layout::OpenMpiTag1,
        &[
            ("directed", 0x0000_0004_0000_0007, 0x0000_0001_0000_0000),
            ("directed, any tag", 0x0000_0004_0000_0000, 0x0000_0001_7fff_ffff),
            ("directed, duplicate", 0x0030_0004_0000_0007, 0x0000_0001_0000_0000),
            ("acknowledgement of MPI_Ssend", 0x0000_0006_0000_0007, 0),
        ],
    ),
    (
        Layout::OpenMpiTag2,
        &[
            ("directed", 0x0000_0000_0040_0007, 0x0000_0000_0010_0000),
            ("directed, any tag", 0x0000_0000_0040_0000, 0x0000_0000_0017_ffff),
            ("directed, duplicate", 0x0000_0300_0040_0007, 0x0000_0000_0010_0000),
            ("acknowledgement of MPI_Ssend", 0x0000_0000_0060_0007, 0),
        ],
    ),
];

/// Receives from any source: tag 7 in the world, any tag in its duplicate.
const ANY_SOURCE: [(Layout, [Posted; 2]); 6] = [
    (
        Layout::Mpich,
        [
            ("any source", 0x0000_0000_0000_0007, 0x00c0_0000_0000_0000),
            ("any source and tag", 0x0000_00f8_0000_0000, 0x00c0_0000_7fff_ffff),
        ],
    ),
    (
        Layout::MpichSourceInTag,
        [
            ("any source", 0x0000_0000_0000_0007, 0x6000_03ff_fff8_0000),
            ("any source and tag", 0x0007_c000_0000_0000, 0x6000_03ff_ffff_ffff),
        ],
    ),
    (
        Layout::IntelMpi,
        [
            ("any source", 0x0000_0000_0000_0007, 0x6fff_ff00_0000_0000),
            ("any source and tag", 0x0000_0000_1f00_0000, 0x6fff_ff00_000f_ffff),
        ],
    ),
    (
        Layout::OpenMpi,
        [
            ("any source", 0x0000_0000_0000_0007, 0x0000_0001_0000_0000),
            ("any source and tag", 0x0000_000c_0000_0000, 0x0000_0001_7fff_ffff),
        ],
    ),
    (
        Layout::OpenMpiTag1,
        [
            ("any source", 0x0000_0000_0000_0007, 0x000f_fffd_0000_0000),
            ("any source and tag", 0x0030_0000_0000_0000, 0x000f_fffd_7fff_ffff),
        ],
    ),
    (
        Layout::OpenMpiTag2,
        [
            ("any source", 0x0000_0000_0000_0007, 0x0000_00ff_ffd0_0000),
            ("any source and tag", 0x0000_0300_0000_0000, 0x0000_00ff_ffd7_ffff),
        ],
    ),
];

/// Receives of collective operations, each with its kind: in the world, in its duplicate, or in a
/// part of it (`split`). If the bits contain the source, the receive is from rank 1.
const COLLECTIVE: [(Layout, u64, &[Operation]); 6] = [
    (
        Layout::Mpich,
        0x00c0_0000_0000_0000,
        &[
            ("allreduce", 0x0000_0000_8000_000e, collective(1, 14)),
            ("allreduce", 0x0000_00f8_8000_000e, collective(0x1f1, 14)),
            ("bcast", 0x0000_0000_8000_0002, collective(1, 2)),
            ("gatherv", 0x0000_0000_8000_0004, collective(1, 4)),
            ("barrier", 0x0000_0000_8000_0001, collective(1, 1)),
            ("alltoall", 0x0000_0000_8000_0009, collective(1, 9)),
            ("iallreduce", 0x0000_0000_8000_011f, nonblocking(1)),
            ("iallreduce", 0x0000_00f8_8000_0120, nonblocking(0x1f1)),
            ("split: allreduce", 0x0000_00f0_8000_000e, collective(0x1e1, 14)),
        ],
    ),
    (
        Layout::MpichSourceInTag,
        0x6000_0000_0000_0000,
        &[
            ("allreduce", 0x0000_0400_0008_000e, collective(1, 14)),
            ("allreduce", 0x0007_c400_0008_000e, collective(0x1f1, 14)),
            ("gatherv", 0x0000_0400_0008_0004, collective(1, 4)),
            ("iallreduce", 0x0000_0400_0008_011f, nonblocking(1)),
        ],
    ),
    (
        Layout::IntelMpi,
        0x6000_0000_0000_0000,
        &[
            ("gatherv", 0x0000_0100_0010_0004, collective(1, 4)),
            ("gatherv", 0x0000_0100_1f10_0004, collective(0x1f1, 4)),
            ("allgather", 0x0000_0100_0010_0007, collective(1, 7)),
            ("alltoall", 0x0000_0100_0010_0009, collective(1, 9)),
            ("dup: reduce among the ranks of a node", 0x0000_0100_0030_000b, collective(3, 11)),
            ("iallreduce", 0x0000_0100_0010_011f, nonblocking(1)),
            ("iallreduce", 0x0000_0100_1f10_0120, nonblocking(0x1f1)),
        ],
    ),
    (
        Layout::OpenMpi,
        0x0000_0001_0000_0000,
        &[
            ("allreduce", 0x0000_0000_ffff_fff4, collective(0, 12)),
            ("allreduce", 0x0000_000c_ffff_fff4, collective(3, 12)),
            ("bcast", 0x0000_0000_ffff_ffef, collective(0, 17)),
            ("gatherv", 0x0000_0000_ffff_ffec, collective(0, 20)),
            ("barrier", 0x0000_0000_ffff_fff0, collective(0, 16)),
            ("alltoall", 0x0000_0000_ffff_fff3, collective(0, 13)),
            ("iallreduce of 5.0", 0x0000_0000_ffff_ffde, nonblocking(0)),
            ("iallreduce of 5.0", 0x0000_000c_ffff_ffdd, nonblocking(3)),
            ("iallreduce of 4.1", 0x0000_0000_ffff_ffe5, nonblocking(0)),
            ("dup of 4.1", 0x0000_0000_ffff_ffe2, nonblocking(0)),
        ],
    ),
    (
        Layout::OpenMpiTag1,
        0x0000_0001_0000_0000,
        &[
            ("allreduce", 0x0000_0004_ffff_fff4, collective(0, 12)),
            ("allreduce", 0x0030_0004_ffff_fff4, collective(3, 12)),
            ("bcast", 0x0000_0004_ffff_ffef, collective(0, 17)),
            ("gatherv", 0x0000_0004_ffff_ffec, collective(0, 20)),
            ("iallreduce of 5.0", 0x0000_0004_ffff_ffde, nonblocking(0)),
            ("iallreduce of 4.1", 0x0030_0004_ffff_ffe5, nonblocking(3)),
        ],
    ),
    (
        Layout::OpenMpiTag2,
        0x0000_0000_0010_0000,
        &[
            ("allreduce", 0x0000_0000_004f_fff4, collective(0, 12)),
            ("allreduce", 0x0000_0300_004f_fff4, collective(3, 12)),
            ("bcast", 0x0000_0000_004f_ffef, collective(0, 17)),
            ("gatherv", 0x0000_0000_004f_ffec, collective(0, 20)),
            ("iallreduce of 5.0", 0x0000_0000_004f_ffde, nonblocking(0)),
            ("iallreduce of 4.1", 0x0000_0300_004f_ffe5, nonblocking(3)),
        ],
    ),
];

/// Messages whose bits differ from those of a receive: MPI_Ssend and its acknowledgement.
const SYNCHRONOUS: [(Layout, &[u64]); 6] = [
    (Layout::Mpich, &[0x0040_0000_0000_0007, 0x0040_00f8_0000_0007, 0x0008_00f8_0000_0007]),
    (Layout::MpichSourceInTag, &[0x2000_0000_0008_0007, 0x0407_c000_0000_0007]),
    (Layout::IntelMpi, &[0x2000_0100_0000_0007, 0x1000_0000_1f00_0007]),
    (Layout::OpenMpi, &[0x0000_0001_0000_0007, 0x0000_000d_0000_0007, 0x0000_000e_0000_0007]),
    (Layout::OpenMpiTag1, &[0x0000_0005_0000_0007, 0x0030_0006_0000_0007]),
    (Layout::OpenMpiTag2, &[0x0000_0000_0050_0007, 0x0000_0300_0060_0007]),
];

/// A receive as a key; `source` is a peer number or any source.
fn receive(bits: u64, ignore: u64, source: Source) -> Key {
    Key { bits, ignore, source }
}

/// The source that the engines must use for a receive from rank 1, whose peer number is `peer`.
fn expected_source(layout: Layout, peer: Source) -> Source {
    match layout {
        Layout::Mpich | Layout::OpenMpi => peer,
        _ => Source::new(1),
    }
}

#[test]
fn receives_of_the_application_are_point_to_point() {
    for (layout, calls) in DIRECTED {
        let peer = Source::new(9);
        for &(call, bits, ignore) in calls {
            let key = receive(bits, ignore, peer);
            let fields = layout.fields();
            assert_eq!(fields.kind_of_all(&key), OWN, "{layout}, {call}");
            assert_eq!(fields.source(&key), expected_source(layout, peer), "{layout}, {call}");
            assert!(!layout.is_any_source(&key), "{layout}, {call}");
            assert_eq!(layout.is_any_tag(&key), call.contains("any tag"), "{layout}, {call}");
        }
    }
}

#[test]
fn receives_from_any_source_are_recognised() {
    for (layout, calls) in ANY_SOURCE {
        for (call, bits, ignore) in calls {
            let key = receive(bits, ignore, Source::ANY);
            assert_eq!(layout.fields().kind_of_all(&key), OWN, "{layout}, {call}");
            assert!(layout.is_any_source(&key), "{layout}, {call}");
            let from_rank_1 = DIRECTED.iter().find(|(of, _)| *of == layout).unwrap().1[0].1;
            let matches = (from_rank_1 ^ bits) & !ignore == 0;
            assert_eq!(matches, call == "any source", "{layout}, {call}");
        }
    }
}

#[test]
fn collective_receives_are_recognised_by_operation_and_communicator() {
    for (layout, ignore, calls) in COLLECTIVE {
        let peer = Source::new(9);
        for &(call, bits, traffic) in calls {
            let key = receive(bits, ignore, peer);
            let fields = layout.fields();
            assert_eq!(layout.kind(bits), traffic, "{layout}, {call}");
            assert_eq!(fields.kind_of_all(&key), Some(traffic), "{layout}, {call}");
            assert!(layout.is_collective(&key), "{layout}, {call}");
            if !matches!(layout, Layout::Mpich | Layout::OpenMpi) {
                assert_eq!(fields.source(&key), Source::new(1), "{layout}, {call}");
            }
        }
    }
}

#[test]
fn protocol_bits_do_not_change_the_kind() {
    for (layout, messages) in SYNCHRONOUS {
        for &bits in messages {
            assert_eq!(layout.kind(bits), Traffic::PointToPoint, "{layout}, {bits:#x}");
        }
    }
    // Intel MPI gathers with synchronous sends.
    let gather = Layout::IntelMpi.kind(0x2000_0100_0010_0004);
    assert_eq!(gather, collective(1, 4));
    // Intel MPI sets the highest bit of a tag that the application chose for a collective
    // operation, so it counts as nonblocking here.
    assert_eq!(Layout::IntelMpi.kind(0x0000_0200_0018_0005), nonblocking(1));
}
