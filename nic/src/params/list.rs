// SPDX-License-Identifier: BSD-2-Clause
//! The parameters. `fi_info -e`, the man page and `tcam` take their texts from [`PARAMS`].

use std::collections::BTreeMap;

use matching::timing::EntryCost;
use matching::{HostEngine, HostStorage, Kernel, Overflow, TableKind, TagLayout};
use strum::VariantNames;

use super::ParamError;
use super::types::{
    Arrival, Auto, Exhausted, IdlePolicy, MrMode, Net, PoolOwner, Switch, Thousandths, Words,
};
use super::values::{NONE, Param, Values};
use crate::polling::Polling;
use crate::{models, timings};

/// Defines [`PARAMS`], and [`Params`] with a field for each parameter.
macro_rules! parameters {
    ($($name:ident: $kind:ty { values: $values:expr, default: $default:expr, help: $help:expr, })*) => {
        /// Every parameter of the provider.
        pub const PARAMS: &[Param] = &[$(Param {
            name: stringify!($name),
            values: $values,
            default: $default,
            help: $help,
        }),*];

        /// The parameters in force. The user sets a value, or a preset does, or it is the default.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Params {
            $(#[doc = $help] pub $name: $kind,)*
            /// The texts of all parameters.
            pub(super) texts: BTreeMap<&'static str, String>,
        }

        impl Params {
            /// Parses the text of every parameter.
            pub(super) fn parse(texts: BTreeMap<&'static str, String>) -> Result<Self, ParamError> {
                let mut params = PARAMS.iter();
                $(let $name: $kind = {
                    let param = params.next().expect("one for each field");
                    let text = &texts[param.name];
                    text.parse().ok().filter(|_| param.values.allows(text))
                        .ok_or_else(|| param.refuses(text))?
                };)*
                Ok(Self { $($name,)* texts })
            }
        }
    };
}

parameters! {
    device: String {
        values: Values::Words(&models::NAMES),
        default: "generic",
        help: "Device whose table sizes, pool, overflow model and refusals are emulated. \
               Parameters that are set have priority; generic sets nothing. `tcam devices` prints \
               the values, and docs/devices.md has their sources.",
    }
    config: String {
        values: Values::Text,
        default: "",
        help: "File of settings, with a line `name = \
               value` for each. The environment has priority over the file, and the file has \
               priority over device and timing.",
    }
    prq_entries: usize {
        values: Values::Number(0, 65_536),
        default: "4096",
        help: "Entries of the table of posted receives. With 0 the host matches every receive.",
    }
    umq_entries: usize {
        values: Values::Number(0, 65_536),
        default: "4096",
        help: "Entries of the table of unexpected messages. With 0 the host stores every \
               unexpected message.",
    }
    overflow: Overflow {
        values: Values::Words(Overflow::NAMES),
        default: "spill",
        help: "Overflow model of a full table. spill: the element goes to the host engine. When an \
               entry becomes free, the oldest element on the host is promoted into it. prefix: as \
               on ConnectX, no element enters the table while the host holds any, and none is \
               promoted. sticky: as in the hybrid mode of CXI, from the first overflow on, every \
               new element of both queues goes to the host. Unexpected messages in the table move \
               there too, but receives in the table stay until they match. flow-control: as in the \
               hardware mode of CXI, receives and senders are held back (FI_EAGAIN) until an entry \
               is free.",
    }
    preemptive: Words {
        values: Values::Set(&["pool", "posted-recv", "unexpected-msg"]),
        default: NONE,
        help: "With overflow=sticky: conditions under which an endpoint leaves its tables before \
               one is full. In CXI these are the switches FI_CXI_HYBRID_PREEMPTIVE, \
               FI_CXI_HYBRID_POSTED_RECV_PREEMPTIVE and FI_CXI_HYBRID_UNEXPECTED_MSG_PREEMPTIVE. \
               pool: more than half of the pool's entries are taken. posted-recv: more than \
               rx_size receives are posted. unexpected-msg: more than rx_size messages are \
               unexpected.",
    }
    rx_size: usize {
        values: Values::Number(1, 65_536),
        default: "1024",
        help: "Number of receives or unexpected messages above which an endpoint leaves its \
               tables, with preemptive=posted-recv or unexpected-msg.",
    }
    receive_ids: usize {
        values: Values::Number(0, 65_536),
        default: "0",
        help: "Largest number of receives that an endpoint may have posted. The next one fails with \
               FI_ENOSPC, where a NIC that has no ID for it would let the program wait for ever. 0 \
               means no limit.",
    }
    flow_timeout: u64 {
        values: Values::Number(0, 3_600_000),
        default: "10",
        help: "With overflow=flow-control: milliseconds for which posted receives are held back \
               while no entry becomes free.",
    }
    exhausted: Exhausted {
        values: Values::Words(Exhausted::VARIANTS),
        default: "spill",
        help: "Handling of a posted receive that finds no free entry within flow_timeout. spill: \
               it and later receives go to the host engine until an entry is free. fail: fi_trecv \
               fails with FI_ENOSPC, as on a NIC that cannot match on the host. MPICH and Open MPI \
               then return MPI_ERR_OTHER from the call that posts the receive. onload: if a receive or \
               an unexpected message finds no entry in the pool, the unexpected messages of its \
               endpoint move to the host and leave their entries. A receive fails immediately if \
               the endpoint has no such message, as on Slingshot with match mode hardware.",
    }
    mr: MrMode {
        values: Values::Words(MrMode::VARIANTS),
        default: "scalable",
        help: "Requirements for memory registration. If the hints do not offer the required mode, \
               fi_getinfo fails with FI_ENODATA. scalable: no requirement. basic: virtual \
               addresses, allocated memory and keys of the provider, as on verbs NICs. endpoint: \
               allocated memory that is bound to an endpoint and enabled, as on Slingshot.",
    }
    refuse: Words {
        values: Values::Set(&["any-source", "any-tag", "non-contiguous"]),
        default: NONE,
        help: "Receives that the device refuses, so that they stay on the host. With \
               overflow=spill no element on the host is promoted past a refused one. any-source: \
               receives from any source. any-tag: receives that ignore the tag or communicator, or \
               a part of them. non-contiguous: receives into several buffers.",
    }
    refuse_below: u64 {
        values: Values::Number(0, 1_073_741_824),
        default: "0",
        help: "Receives with a buffer of fewer bytes are not offered to the device (TM_THRESH of \
               UCX).",
    }
    force_above: u64 {
        values: Values::Number(0, 1_073_741_824),
        default: "0",
        help: "A receive with a buffer of more bytes causes all receives before it to be offered \
               to the device, including short ones, until the device refuses one (TM_FORCE_THRESH \
               of UCX). A short one stays on the host if the table has a younger receive: the \
               table is in the order of posting. 0 means never.",
    }
    pool: PoolOwner {
        values: Values::Words(PoolOwner::VARIANTS),
        default: "endpoint",
        help: "Scope of the table entries. endpoint: each endpoint has separate entries. node: \
               every table draws entries from a pool that all endpoints of this user on this host \
               share, as on a NIC. The size of a table still limits its entries.",
    }
    pool_entries: u32 {
        values: Values::Number(1, 65_536),
        default: "4096",
        help: "Entries of the pool. Endpoints with the same pool_entries and pool_engines share \
               one pool. At most 1024 endpoints share an engine.",
    }
    pool_engines: u32 {
        values: Values::Number(1, 16),
        default: "1",
        help: "Engines among which the entries of the pool are divided. Endpoints are assigned to \
               the engines in turn, and draw entries from that engine only.",
    }
    pool_reserved: u32 {
        values: Values::Number(0, 65_536),
        default: "0",
        help: "Entries of the pool that are reserved for each endpoint. If the endpoints of an \
               engine would together reserve more entries than it has, fi_endpoint fails with \
               FI_EINVAL.",
    }
    pool_buffers: u32 {
        values: Values::Number(0, 65_536),
        default: "0",
        help: "Entries of the pool that each endpoint holds for buffers of its provider, so that no \
               receive and no message gets them. They are reserved for it, and count towards \
               pool_reserved and pool_max.",
    }
    pool_max: u32 {
        values: Values::Number(1, 65_536),
        default: "65536",
        help: "Largest number of entries of the pool that an endpoint may hold.",
    }
    host_engine: HostEngine {
        values: Values::Words(HostEngine::NAMES),
        default: "col-pnp",
        help: "Software engine that matches elements that do not fit the table. col-pnp: queues \
               for collective operations and for busy sources, made as needed. col-list: only \
               those for collective operations. list-pnp: only those for busy sources. list: one \
               ordered list, as in MPICH. rank-array: a list for every source, as in Open MPI. \
               kmeans: a queue for each cluster of sources. hash: a hash table for receives \
               without wildcards. newmadeleine: a hash table for each combination of wildcards. \
               tail-queues: as list; papers/tail-queues.md has the rates of two threads.",
    }
    clusters: String {
        values: Values::Text,
        default: "",
        help: "File of clusters for host_engine=kmeans, which `tcam cluster` writes. Each process \
               reads the clusters of its rank. Sources that the file does not name share one \
               queue, and the report counts their elements. If the file is for another number of \
               processes, all sources share this queue, and the report notes it.",
    }
    assert: Words {
        values: Values::Set(&["no-any-source", "no-any-tag"]),
        default: NONE,
        help: "Promises of the program. The parameter exists because no MPI passes the hints of a \
               program to libfabric. Receives that break a promise are still matched in order, and \
               the report counts them. host_engine=hash implies both promises.",
    }
    host_storage: HostStorage {
        values: Values::Words(HostStorage::NAMES),
        default: "packed",
        help: "Storage of the queues of the host engine. packed: arrays of fingerprints that the \
               compare kernel searches. linked: linked lists as in the papers.",
    }
    tag_layout: Auto<TagLayout> {
        values: Values::Words(&[
            "auto",
            "mpich",
            "mpich-source-in-tag",
            "intel-mpi",
            "openmpi",
            "openmpi-tag-1",
            "openmpi-tag-2",
            "opaque",
        ]),
        default: "auto",
        help: "Layout of match bits, by which collective and point-to-point messages are \
               distinguished. A wrong layout makes col-pnp, col-list and list-pnp slower, but \
               their results stay correct. auto: that of the MPI library that is loaded or, if it \
               is linked statically, of its launcher. mpich-source-in-tag: MPICH without \
               completion-queue data. openmpi-tag-1, openmpi-tag-2: Open MPI with mtl_ofi_tag_mode \
               ofi_tag_1 or ofi_tag_2. opaque: all messages are point-to-point.",
    }
    theta: u32 {
        values: Values::Number(1, 65_536),
        default: "512",
        help: "For the PNP part of col-pnp and list-pnp: number of elements in a shared queue at \
               which sources with more elements than the average get dedicated queues. Up to this \
               number, all elements are searched as one list. For host_storage=linked, 100 is \
               best.",
    }
    k_col: u32 {
        values: Values::Number(0, 1024),
        default: "8",
        help: "col-pnp and col-list make at most k_col * sqrt(n) queues for collective operations, \
               with n processes.",
    }
    k_pnp: u32 {
        values: Values::Number(0, 1024),
        default: "8",
        help: "col-pnp and list-pnp make at most k_pnp * sqrt(n) queues for busy sources, with n \
               processes.",
    }
    nprocs: u32 {
        values: Values::Number(0, 16_777_216),
        default: "0",
        help: "Number of processes n in k_col and k_pnp. 0 stands for the number of addresses in \
               the address vector after the last insertion.",
    }
    table: TableKind {
        values: Values::Words(TableKind::NAMES),
        default: "index",
        help: "Search in tables. Both give the same matches and counts. index: by a hash of the \
               compared fields. cam: by comparing every entry as a NIC does, which takes longer \
               with many entries.",
    }
    kernel: Auto<Kernel> {
        values: Values::Words(&["auto", "avx512", "avx2", "scalar"]),
        default: "auto",
        help: "Compare kernel of the table and of packed queues; auto is the best one for this \
               processor.",
    }
    timing: String {
        values: Values::Words(&timings::NAMES),
        default: "none",
        help: "Timing model: preset of the costs table_ns to promote_ns. Costs that are set have \
               priority. docs/devices.md has the values and sources. No search time of a NIC's \
               table is published. cpu-list: the measured time that the lists of MPI libraries \
               take for each entry on the host. cpu-hash: a published time for a search of a hash \
               table on the host.",
    }
    table_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search of a table. A posted receive or a \
               probe searches the table of unexpected messages; a message that arrives searches \
               that of posted receives.",
    }
    up_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for the transfer of a search from the table to \
               the host. Without a table it is not charged.",
    }
    host_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search on the host. The host is searched \
               if no entry of the table matches and the host holds an element, or if the host \
               holds an element older than the match.",
    }
    host_entry_ns: EntryCost {
        values: Values::EntryCost,
        default: "0",
        help: "Timing model: nanoseconds charged for each entry that a search on the host \
               traverses. NUMBER@ENTRIES is the average cost of an entry in a search of ENTRIES \
               entries; between two points the time of a search is interpolated, and beyond the \
               last one each entry costs the same.",
    }
    down_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for the transfer of the host's answer to the \
               table. Without a table it is not charged.",
    }
    spill_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each element that goes to the host.",
    }
    promote_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each element that moves from the host into \
               the table. With 0 a table that is too small costs nothing if its elements are \
               promoted before they match.",
    }
    times: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "on: measures the time of searches, insertions and removals, in the table and on the \
               host. Reading the clock takes longer than most of them; that time is subtracted, \
               and a time below the clock's resolution counts as 0.",
    }
    report: String {
        values: Values::Pattern,
        default: "",
        help: "Path pattern of the report that is written when an endpoint closes or the process \
               exits, with .json appended. If the launcher passes no rank, %r is the \
               process id. If the launcher starts several ranks, the pattern must contain %r or \
               %p.",
    }
    summary: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "on: an endpoint that closes, or is open when the process exits, prints two lines on \
               standard error, one for its tagged messages and one for the others. A line contains \
               the number of messages, the share of unexpected ones, the longest queues, and the \
               spills.",
    }
    trace: String {
        values: Values::Text,
        default: "",
        help: "Directory of recordings, which `tcam replay` and other commands read. Each matching \
               context creates its file with its first operation.",
    }
    trace_max: u64 {
        values: Values::Number(1, 1_048_576),
        default: "1024",
        help: "Largest trace in MiB. At that size, or when the disk is full, the recording ends \
               with a message on standard error, and the program continues.",
    }
    trace_sends: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "on: traces also have the messages that are sent (destination, match bits and \
               length), the polls that follow messages or receives of unexpected ones, and the processor time of the thread of each \
               operation. A stream of short messages becomes 10 percent slower.",
    }
    trace_sites: usize {
        values: Values::Number(0, 16),
        default: "0",
        help: "Traces also have the places in the program from which receives were posted and \
               messages sent: the return address of the call of MPI and those of up to N - 1 \
               callers. 0: no places. Needs libtcam-sites.so in LD_PRELOAD; `tcam run --sites` sets \
               both.",
    }
    eager_size: usize {
        values: Values::Number(0, 16_384),
        default: "4096",
        help: "Largest message in bytes that always goes through shared buffers. Messages of up to \
               four times this size, and at most 16384 bytes, go through buffers while the \
               measured time to fill a buffer is short. Longer messages wait for their receive and \
               are then copied from process to process.",
    }
    kernel_copy: Switch {
        values: Values::Words(&["auto", "off"]),
        default: "auto",
        help: "Copy of long messages. auto: the kernel copies them (process_vm_readv). If it \
               refuses, or between process namespaces, they go through shared buffers. off: they \
               always go through shared buffers.",
    }
    net_eager_size: usize {
        values: Values::Number(0, 65_536),
        default: "65536",
        help: "Largest message in bytes that is copied and sent at once to a peer of another host. \
               A longer message waits until its receiver asks for it, in parts. Injected messages, \
               and messages of up to 208 bytes, are always sent at once.",
    }
    net: Net {
        values: Values::Words(Net::VARIANTS),
        default: "auto",
        help: "Transport to peers of other hosts. FI_TCP_IFACE names the interface whose address \
               peers get. The default is the first one that is not loopback. tcp: a TCP connection \
               to each peer. auto: tcp if the launcher (Hydra, PRRTE, Slurm) says that the job has \
               ranks on more than one host, and otherwise off.",
    }
    net_seal: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Authentication of messages between hosts. They are not encrypted in either case. \
               All processes of a job must have the same value. on: each message carries a code \
               (HMAC-SHA256, 16 bytes). By this code the receiver notices that a message was \
               changed, added, repeated or removed on the network. It then closes the connection \
               and delivers nothing of that message.",
    }
    net_timeout: u64 {
        values: Values::Number(0, 86_400),
        default: "10",
        help: "Seconds after which a host that acknowledges nothing counts as gone, and operations \
               that wait for its processes end in error; 0 waits for ever. If a link comes back \
               sooner, no message is lost.",
    }
    arrival: Arrival {
        values: Values::Words(Arrival::VARIANTS),
        default: "auto",
        help: "Moment at which a message arrives at the table. nic: when it comes, as at a NIC. \
               Each receive, probe and cancel finds all messages that have come before it, even if \
               the program has not polled since. Messages of other hosts may be found up to 10 us \
               later. A sender that is stopped while it writes a message delays the messages \
               behind it. poll: when the program polls, as with the software providers of libfabric. \
               auto: nic while counts are taken (report, summary or trace), and otherwise poll, \
               which is faster for streams of short messages.",
    }
    poll: Polling {
        values: Values::Polling,
        default: "auto",
        help: "How often a poll checks the network in addition to shared memory. auto: once in \
               n + 1 polls, where n is the number of messages over shared memory since the last \
               message over the network, at most 256. every: each time. static:R: once in R + 1 \
               polls. dynamic:H: as static with R = m / (n + 1), at most 256; after every H \
               messages, m becomes the number of them over shared memory, and n the number over \
               the network.",
    }
    job_key: String {
        values: Values::Text,
        default: "",
        help: "Secret by which the processes of a job identify each other over the network: any \
               random text, the same for all. `tcam run` and other commands make one for each run. \
               Without job_key each endpoint has a random secret. It is a part of the endpoint's \
               name, so that a process that was given the name can connect.",
    }
    net_open: Switch {
        values: Values::Words(&["no", "yes"]),
        default: "no",
        help: "yes: every process that reaches the port can connect. This is for programs that \
               make addresses from a host and a port, on a network where all users are trusted. \
               no: an operation towards such an address needs job_key, and otherwise fails with \
               FI_EACCES.",
    }
    check: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Checksums on all data between processes. Processes of a job may have different \
               values. on: CRC32C. A wrong checksum causes an error completion with FI_ECRC; wrong \
               bytes are never delivered. Every message is read once more at both ends.",
    }
    idle: IdlePolicy {
        values: Values::Words(IdlePolicy::VARIANTS),
        default: "auto",
        help: "Behaviour of a poll that finds nothing. A poll that yields the core sleeps until a \
               message comes, for at most 16 ms. auto: if the threads that poll endpoints \
               outnumber the cores that they or their container may use, it yields the core soon. \
               Otherwise it yields after some 30 ms if other threads use the core. A program that \
               also computes keeps its core while another core is idle. spin: it never yields. \
               yield: it always yields.",
    }
}
