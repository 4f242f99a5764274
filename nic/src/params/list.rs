// SPDX-License-Identifier: BSD-2-Clause
//! The parameters. `fi_info -e`, the man page and `tcam` take their texts from [`PARAMS`].

use std::collections::BTreeMap;

use matching::timing::EntryCost;
use matching::{HostEngine, HostStorage, Kernel, Overflow, TableKind, TagLayout};
use strum::VariantNames;

use super::ParamError;
use super::types::{
    Auto, Exhausted, IdlePolicy, MrMode, Net, PoolOwner, Switch, Thousandths, Words,
};
use super::values::{NONE, Param, Values};
use crate::polling::Polling;
use crate::{models, timings};

/// Defines [`PARAMS`] and [`Params`], a field for each parameter.
macro_rules! parameters {
    ($($name:ident: $kind:ty { values: $values:expr, default: $default:expr, help: $help:expr, })*) => {
        /// Every parameter of the provider.
        pub const PARAMS: &[Param] = &[$(Param {
            name: stringify!($name),
            values: $values,
            default: $default,
            help: $help,
        }),*];

        /// The parameters in force, set or default.
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
        help: "Device whose table sizes, pool, overflow and refusals are taken where a parameter is \
               not set; generic sets nothing.",
    }
    config: String {
        values: Values::Text,
        default: "",
        help: "File of settings, a line `name = value` for each, such as tcam tune writes; what the \
               environment sets comes before it.",
    }
    prq_entries: usize {
        values: Values::Number(0, 65_536),
        default: "4096",
        help: "Entries of the table of posted receives; 0 matches every receive on the host.",
    }
    umq_entries: usize {
        values: Values::Number(0, 65_536),
        default: "4096",
        help: "Entries of the table of unexpected messages; 0 keeps every message on the host.",
    }
    overflow: Overflow {
        values: Values::Words(Overflow::NAMES),
        default: "spill",
        help: "What happens when a table is full: spill to the host engine, the oldest element there \
               is promoted when an entry frees; prefix: nothing enters the table while the host \
               holds any; sticky: everything new of both queues goes to the host for good, and the \
               unexpected messages that are in the table, too; flow-control: posts and senders are \
               held back until an entry frees.",
    }
    preemptive: Words {
        values: Values::Set(&["pool", "posted-recv", "unexpected-msg"]),
        default: NONE,
        help: "When an endpoint leaves its tables before they are full (overflow=sticky): with more \
               than half of the pool taken, or with more than rx_size receives posted or messages \
               unexpected.",
    }
    rx_size: usize {
        values: Values::Number(1, 65_536),
        default: "1024",
        help: "Receives or unexpected messages above which preemptive leaves the tables.",
    }
    flow_timeout: u64 {
        values: Values::Number(0, 3_600_000),
        default: "10",
        help: "Milliseconds that posted receives are held back (FI_EAGAIN) when no entry frees \
               (overflow=flow-control).",
    }
    exhausted: Exhausted {
        values: Values::Words(Exhausted::VARIANTS),
        default: "spill",
        help: "What becomes of a posted receive after flow_timeout: spill to the host engine until \
               an entry is free again, or fail with FI_ENOSPC as on a NIC that has none.",
    }
    mr: MrMode {
        values: Values::Words(MrMode::VARIANTS),
        default: "scalable",
        help: "How memory is registered: with offsets and the application's keys, with virtual \
               addresses and keys of the provider (as on verbs NICs), or bound to an endpoint \
               and enabled (as on Slingshot).",
    }
    refuse: Words {
        values: Values::Set(&["any-source", "any-tag", "non-contiguous"]),
        default: NONE,
        help: "Receives that the device does not take: they stay on the host.",
    }
    refuse_below: u64 {
        values: Values::Number(0, 1_073_741_824),
        default: "0",
        help: "Receives with a buffer of fewer bytes are not offered to the device (TM_THRESH of UCX).",
    }
    force_above: u64 {
        values: Values::Number(0, 1_073_741_824),
        default: "0",
        help: "A receive with a buffer of more bytes has all that waits before it offered to the \
               device, short ones as well (TM_FORCE_THRESH of UCX); 0 does without.",
    }
    pool: PoolOwner {
        values: Values::Words(PoolOwner::VARIANTS),
        default: "endpoint",
        help: "Whose the entries of the tables are: each endpoint's own, or drawn from a pool that \
               all endpoints of this user on this host share.",
    }
    pool_entries: u32 {
        values: Values::Number(1, 65_536),
        default: "4096",
        help: "Entries of the pool; endpoints with the same number share one.",
    }
    pool_engines: u32 {
        values: Values::Number(1, 16),
        default: "1",
        help: "Engines among which the entries of the pool are divided; endpoints are given to them \
               in turn, and draw from their own only.",
    }
    pool_reserved: u32 {
        values: Values::Number(0, 65_536),
        default: "0",
        help: "Entries of the pool that an endpoint has for itself.",
    }
    pool_max: u32 {
        values: Values::Number(1, 65_536),
        default: "65536",
        help: "Most entries of the pool that an endpoint may hold.",
    }
    host_engine: HostEngine {
        values: Values::Words(HostEngine::NAMES),
        default: "col-pnp",
        help: "Software engine that matches what does not fit the table: one list (MPICH), a list \
               a source (Open MPI), queues for collective operations (COL), for partners (PNP) or \
               both, a queue for each cluster of sources, a hash table of receives without \
               wildcards, one for each combination of wildcards, or auto, which chooses by what comes.",
    }
    clusters: String {
        values: Values::Text,
        default: "",
        help: "File of clusters, written by tcam cluster, for host_engine=kmeans.",
    }
    assert: Words {
        values: Values::Set(&["no-any-source", "no-any-tag"]),
        default: NONE,
        help: "What the program promises, as no MPI tells its hints to libfabric: receives that \
               break a promise are matched all the same, and counted.",
    }
    host_storage: HostStorage {
        values: Values::Words(HostStorage::NAMES),
        default: "packed",
        help: "Queues of the host engine: packed, arrays searched by the compare kernel; or \
               linked, lists as in the papers.",
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
        help: "How match bits tell collective from point-to-point messages; auto asks which MPI is \
               loaded, opaque takes everything for point-to-point.",
    }
    theta: u32 {
        values: Values::Number(1, 65_536),
        default: "512",
        help: "Elements in a shared queue at which PNP gives the busiest sources their own; up \
               to so many are searched as one list. 100 is best for linked queues.",
    }
    k_col: u32 {
        values: Values::Number(0, 1024),
        default: "8",
        help: "COL makes at most k_col * sqrt(n) queues for n processes.",
    }
    k_pnp: u32 {
        values: Values::Number(0, 1024),
        default: "8",
        help: "PNP makes at most k_pnp * sqrt(n) queues for n processes.",
    }
    nprocs: u32 {
        values: Values::Number(0, 16_777_216),
        default: "0",
        help: "Processes n of k_col and k_pnp; 0 takes the number of addresses in the address vector.",
    }
    table: TableKind {
        values: Values::Words(TableKind::NAMES),
        default: "index",
        help: "How tables find their entries: index, by a hash of what is compared; or cam, every \
               entry compared as a NIC does it. Both find and count the same.",
    }
    kernel: Auto<Kernel> {
        values: Values::Words(&["auto", "avx512", "avx2", "scalar"]),
        default: "auto",
        help: "Compare kernel of the table and of packed queues; auto takes the best one this \
               processor has.",
    }
    timing: String {
        values: Values::Words(&timings::NAMES),
        default: "none",
        help: "Timing model: costs from a published or measured source, where they are not set \
               themselves as table_ns, up_ns, host_ns, host_entry_ns, down_ns, spill_ns and \
               promote_ns (docs/devices.md).",
    }
    table_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search of a table.",
    }
    up_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search that goes on from the table to the \
               host, for the way.",
    }
    host_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search on the host.",
    }
    host_entry_ns: EntryCost {
        values: Values::EntryCost,
        default: "0",
        help: "Timing model: nanoseconds charged for each entry that a search on the host traverses; \
               with NUMBER@ENTRIES,... each on average of a search of so many.",
    }
    down_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for the way of the host's answer back to the table.",
    }
    spill_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each element that goes to the host.",
    }
    promote_ns: Thousandths {
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each element that moves from the host into the \
               table.",
    }
    times: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether searches, insertions and removals are measured, in the table and on the host; \
               looking at the clock takes longer than most of them.",
    }
    report: String {
        values: Values::Pattern,
        default: "",
        help: "Path pattern of the report written when an endpoint closes or the process exits: \
               %r is the rank, %p the process id, %h the host name. `.json` and `.txt` are written.",
    }
    summary: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether an endpoint that closes, or is open when the process exits, prints a line on \
               the error output: messages, those that were unexpected, longest queues, spills.",
    }
    trace: String {
        values: Values::Text,
        default: "",
        help: "Directory where what is asked of the device is recorded, a file for each matching \
               context, for tcam replay.",
    }
    trace_max: u64 {
        values: Values::Number(1, 1_048_576),
        default: "1024",
        help: "Largest file of a trace in MiB; the recording ends there.",
    }
    trace_sends: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether traces have the messages that are sent, too, and the processor time of the \
               threads that do the operations: what a model of a network needs to time them anew.",
    }
    eager_size: usize {
        values: Values::Number(0, 16_384),
        default: "4096",
        help: "Largest message in bytes that always goes through shared buffers; up to four times \
               as long ones do while that is quicker than to copy them from process to process.",
    }
    kernel_copy: Switch {
        values: Values::Words(&["auto", "off"]),
        default: "auto",
        help: "Copy of long messages by the kernel (process_vm_readv); auto falls back to copies \
               through shared buffers where the kernel refuses, off always does.",
    }
    net_eager_size: usize {
        values: Values::Number(0, 65_536),
        default: "65536",
        help: "Largest message in bytes that is copied and sent at once to a peer of another host; a \
               longer one waits until its receiver asks for it.",
    }
    net: Net {
        values: Values::Words(Net::VARIANTS),
        default: "auto",
        help: "How peers of other hosts are reached: tcp, over a TCP connection to each peer; off, not \
               at all; auto is tcp where the launcher says that the job has more than one host, and off \
               otherwise.",
    }
    net_seal: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether each message between hosts carries a code (HMAC-SHA256) by which its receiver \
               notices that somebody on the network has changed, repeated or removed one. It must be the \
               same in all processes of a job. Messages are not encrypted.",
    }
    net_timeout: u64 {
        values: Values::Number(0, 86_400),
        default: "10",
        help: "Seconds after which a host that acknowledges nothing is gone, and what waits for its \
               processes fails; 0 waits for ever.",
    }
    poll: Polling {
        values: Values::Polling,
        default: "auto",
        help: "How often polls ask the network beside shared memory: every time; static:R, once and \
               then R times not; dynamic:H, by the share that each had of the last H messages; or \
               auto, the less often the more messages came over shared memory since the last over \
               the network.",
    }
    job_key: String {
        values: Values::Text,
        default: "",
        help: "Secret of the processes of a job, by which they know each other over the network; any \
               random text. Without one each endpoint has a secret of its own, which its name tells \
               those whom the MPI gives it.",
    }
    net_open: Switch {
        values: Values::Words(&["no", "yes"]),
        default: "no",
        help: "Whether every process may connect over the network; for addresses without a secret, on \
               a network where all users are trusted.",
    }
    check: Switch {
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether what travels between processes carries checksums (CRC32C) that its receiver \
               verifies: wrong bytes are then an error (FI_ECRC), at the price of reading every \
               message once more at both ends.",
    }
    idle: IdlePolicy {
        values: Values::Words(IdlePolicy::VARIANTS),
        default: "auto",
        help: "What a poll that finds nothing does: auto gives the core away soon when the threads \
               that poll endpoints outnumber the cores that they may run on.",
    }
}
