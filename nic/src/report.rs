// SPDX-License-Identifier: BSD-2-Clause
//! The report of one endpoint, written by the provider and read by the lab.

use std::collections::BTreeMap;

use matching::measured::MeasuredTime;
use matching::{ByKind, KindCounters, Profile, QueueCounters, Tallies, counter_struct};
use serde::{Deserialize, Serialize};

use crate::{json, latency::Latency, lengths::Lengths, origin::Origin, plain};

/// Value of [`Report::format`].
pub const FORMAT: &str = "tcam-report";
/// Value of [`Report::version`] that this crate writes and reads.
pub const VERSION: u32 = 1;

/// Everything an endpoint counted, as written to `FI_TCAM_REPORT`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Always [`FORMAT`].
    pub format: String,
    /// Always [`VERSION`].
    pub version: u32,
    /// Version of tcam that wrote the report.
    pub tcam: String,
    /// Version of the libfabric that loaded the provider, such as `2.5`.
    pub libfabric: String,
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Rank, if the launcher sets it in the environment.
    pub rank: Option<u32>,
    /// Address of the endpoint, `ip:port`.
    pub address: String,
    /// Index of the context in a scalable endpoint with several contexts, otherwise `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Path of the program.
    pub program: String,
    /// The run that the report is from.
    pub origin: Origin,
    /// When the endpoint was opened, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Seconds from opening the endpoint to this report.
    pub elapsed_s: f64,
    /// The event at which the report was written.
    pub written_at: WrittenAt,
    /// Final number of processes, n of `FI_TCAM_K_COL` and `FI_TCAM_K_PNP`; 0 if n is the number of
    /// sources seen.
    pub processes: u32,
    /// The `FI_TCAM_*` values in force, by name, see
    /// [`Params::recorded`](crate::params::Params::recorded).
    pub config: BTreeMap<String, String>,
    /// Remarks that help to interpret the counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Tagged messages.
    pub tagged: ContextCounters,
    /// Untagged messages.
    pub msg: ContextCounters,
    /// Messages and bytes by channel: `shm`, `kernel-copy`, `copy-pipeline` and, with a transport
    /// to other hosts, `net`. The channel `rma` counts reads, writes and atomic operations on
    /// remote memory, which are not messages.
    pub channels: BTreeMap<String, ChannelCounters>,
}

/// When a report was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenAt {
    /// The endpoint was closed.
    #[default]
    Close,
    /// The process exited with the endpoint open.
    Exit,
    /// The process was still running; no later report exists (see [`draft`](crate::draft)).
    Running,
}

counter_struct! {
    /// The counters of a context that are cheap to read, up to now (`tcam show --live`). The first
    /// page of a segment has them in this order (`host/src/live.rs`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct LiveContext {
        /// Receives posted.
        sum posts "receives",
        /// Messages that arrived.
        sum arrivals "messages",
        /// Messages that found no receive.
        sum unexpected "unexpected messages",
        ..
        /// Counters of the PRQ.
        pub prq: Tallies,
        /// Counters of the UMQ.
        pub umq: Tallies,
    }
}

impl LiveContext {
    /// Adds the counters of another context. Of sizes and high-water marks, the larger one counts.
    pub fn merge(&mut self, other: &Self) {
        self.merge_counters(other);
        self.prq.merge_counters(&other.prq);
        self.umq.merge_counters(&other.umq);
    }
}

counter_struct! {
    /// Counters of one matching context. `Q` is `()` in a running context, whose queues have their
    /// own counters.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ContextCounters<Q = QueueCounters> {
        /// Receives posted, and unexpected messages claimed or discarded.
        sum posts "receives",
        /// Messages that arrived.
        sum arrivals "messages",
        /// Bytes of the messages that arrived.
        sum bytes "bytes",
        /// Messages that found no receive.
        sum unexpected "unexpected messages",
        /// Peeks at the unexpected queue (probes), with or without a result, including peeks that
        /// claim or discard.
        sum peeks "probes",
        ..
        /// Receives that broke a promise of the program; empty if there was no promise or none was
        /// broken.
        #[serde(default, skip_serializing_if = "BrokenPromises::is_empty")]
        pub broken_promises: BrokenPromises,
        /// Collective and point-to-point traffic separately.
        pub kinds: ByKind<KindTraffic>,
        /// Latencies of the timing model; empty if it is off.
        #[serde(default, skip_serializing_if = "Latency::is_empty")]
        pub latency: Latency,
        /// Sizes of the arrived messages in bytes; empty if search depths are not counted.
        pub sizes: Profile,
        /// Lengths of both queues over time; empty in a sum.
        #[serde(default, skip_serializing_if = "Lengths::is_empty")]
        pub lengths: Lengths,
        /// Posted receives, searched by arrivals.
        pub prq: Q,
        /// Unexpected messages, searched by posts.
        pub umq: Q,
    }
}

counter_struct! {
    /// Receives with a wildcard that the program promised not to use (`FI_TCAM_ASSERT`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct BrokenPromises {
        /// Receives from any source.
        sum any_source "from any source",
        /// Receives of any tag.
        sum any_tag "of any tag",
    }
}

impl BrokenPromises {
    /// Returns true if no promise was broken.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.any_source == 0 && self.any_tag == 0
    }
}

counter_struct! {
    /// Traffic of one kind through a context. `TagLayout` defines the kinds.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct KindTraffic {
        /// Receives posted, and unexpected messages claimed or discarded.
        sum posts "receives",
        /// Messages that arrived.
        sum arrivals "messages",
        /// Posts and arrivals that a table matched.
        sum table_matches "matched in the table",
        /// Posts and arrivals that a host engine matched.
        sum host_matches "matched on the host",
    }
}

counter_struct! {
    /// Messages and bytes of a channel.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ChannelCounters {
        /// Messages sent.
        sum sent "messages sent",
        /// Bytes sent.
        sum sent_bytes "bytes sent",
        /// Messages received.
        sum received "messages received",
        /// Bytes received.
        sum received_bytes "bytes received",
        /// Messages that were sent late, because they had to wait for room at their receivers. A
        /// message that the program gave up is counted too.
        #[serde(default, skip_serializing_if = "is_zero")]
        sum waited "waited for room",
        /// Polls for messages, for a channel on which each poll is a system call (`net`).
        #[serde(default, skip_serializing_if = "is_zero")]
        sum polls "polls",
        /// Polls that found no message.
        #[serde(default, skip_serializing_if = "is_zero")]
        sum empty_polls "polls that found nothing",
        /// Sum, over the polls that found messages, of the nanoseconds since the poll before. This
        /// is an upper bound of the time for which the first message of each such poll had waited.
        #[serde(default, skip_serializing_if = "is_zero")]
        sum discovery_ns "ns until discovery",
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ContextCounters<()> {
    /// The counters of the context together with those of its queues.
    pub(crate) fn with_queues(&self, prq: QueueCounters, umq: QueueCounters) -> ContextCounters {
        let Self { posts, arrivals, bytes, unexpected, peeks, broken_promises, .. } = *self;
        ContextCounters {
            posts,
            arrivals,
            bytes,
            unexpected,
            peeks,
            broken_promises,
            kinds: ContextCounters::kinds_of(&prq, &umq),
            latency: self.latency.clone(),
            sizes: self.sizes.clone(),
            lengths: self.lengths.clone(),
            prq,
            umq,
        }
    }
}

impl ContextCounters {
    /// Returns true if the context did any operation.
    #[must_use]
    pub fn has_operations(&self) -> bool {
        self.posts > 0 || self.arrivals > 0 || self.peeks > 0
    }

    /// Checks that the counts add up (invariant 4 in docs/ARCHITECTURE.md): every arrival was
    /// matched in the table, was matched on the host or became unexpected; likewise for posts.
    ///
    /// # Errors
    /// The equation that does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.prq.check().map_err(|why| format!("prq: {why}"))?;
        self.umq.check().map_err(|why| format!("umq: {why}"))?;
        let matched = self.prq.table_matches.saturating_add(self.prq.host_matches);
        if self.arrivals != matched.saturating_add(self.unexpected) {
            return Err(format!(
                "arrivals = table + host matches + unexpected does not hold: {} against {matched} + {}",
                self.arrivals, self.unexpected
            ));
        }
        if self.prq.misses != self.unexpected {
            return Err(format!(
                "unexpected = prq.misses does not hold: {} against {}",
                self.unexpected, self.prq.misses
            ));
        }
        if self.posts != self.umq.searches || self.umq.misses != self.prq.inserts {
            return Err(format!(
                "posts = umq matches + prq inserts does not hold: {} posts, {} searches, \
                 {} without a match, {} inserts",
                self.posts, self.umq.searches, self.umq.misses, self.prq.inserts
            ));
        }
        let BrokenPromises { any_source, any_tag } = self.broken_promises;
        if any_source.max(any_tag) > self.posts {
            return Err(format!(
                "{any_source} any-source and {any_tag} any-tag receives broke a promise, \
                 but only {} were posted",
                self.posts
            ));
        }
        if self.kinds != Self::kinds_of(&self.prq, &self.umq) {
            return Err(format!(
                "kinds = prq by kind + umq by kind does not hold: {:?}",
                self.kinds
            ));
        }
        self.sizes.check(self.arrivals).map_err(|why| format!("sizes: {why}"))?;
        let mark = |queue: &QueueCounters| [queue.table_high_water, queue.host_high_water];
        let ([prq_table, prq_host], [umq_table, umq_host]) = (mark(&self.prq), mark(&self.umq));
        let operations = self.posts.saturating_add(self.arrivals);
        self.lengths.check(operations, [prq_table, prq_host, umq_table, umq_host])
    }

    /// Collective and point-to-point traffic as the two queues counted it.
    #[must_use]
    pub fn kinds_of(prq: &QueueCounters, umq: &QueueCounters) -> ByKind<KindTraffic> {
        let kind = |prq: &KindCounters, umq: &KindCounters| KindTraffic {
            posts: umq.searches,
            arrivals: prq.searches,
            table_matches: prq.table_matches.saturating_add(umq.table_matches),
            host_matches: prq.host_matches.saturating_add(umq.host_matches),
        };
        ByKind {
            collective: kind(&prq.kinds.collective, &umq.kinds.collective),
            point_to_point: kind(&prq.kinds.point_to_point, &umq.kinds.point_to_point),
        }
    }

    /// Adds the counters of another context. Lengths over time cannot be added, so the sum
    /// has no lengths.
    pub fn merge(&mut self, other: &Self) {
        self.merge_counters(other);
        self.broken_promises.merge_counters(&other.broken_promises);
        self.latency.merge(&other.latency);
        self.sizes.merge(&other.sizes);
        self.prq.merge(&other.prq);
        self.umq.merge(&other.umq);
        self.kinds = Self::kinds_of(&self.prq, &self.umq);
        self.lengths = Lengths::default();
    }
}

impl Report {
    /// Reads a report and checks its format, version and counts. The texts of the result are
    /// [`plain`](mod@crate::plain).
    ///
    /// # Errors
    /// [`ReportError`] describes the problem.
    pub fn from_json(text: &str) -> Result<Self, ReportError> {
        let mut report: Self = serde_json::from_str(text)?;
        report.make_plain();
        if report.format != FORMAT || report.version != VERSION {
            return Err(ReportError::Foreign { format: report.format, version: report.version });
        }
        report.check().map_err(ReportError::Counts)?;
        Ok(report)
    }

    fn make_plain(&mut self) {
        let Self { format, tcam, libfabric, host, address, program, .. } = self;
        let texts = [format, tcam, libfabric, host, address, program];
        let Self { config, channels, remarks, .. } = self;
        plain::make_plain(texts.into_iter().chain(config.values_mut()).chain(remarks));
        plain::make_keys_plain(config);
        plain::make_keys_plain(channels);
        self.origin.make_plain();
    }

    /// Returns the id of the process that wrote a report, of any version of tcam; `None` if the
    /// text is not a report of tcam.
    #[must_use]
    pub fn writer(text: &[u8]) -> Option<u32> {
        #[derive(Deserialize)]
        struct Writer {
            format: String,
            pid: u32,
        }
        let writer: Writer = serde_json::from_slice(text).ok()?;
        (writer.format == FORMAT).then_some(writer.pid)
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// Never in practice: every field can be written as JSON.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(json::to_string(self)?)
    }

    /// Seconds that the timing model charged, a part of [`Report::elapsed_s`].
    #[must_use]
    pub fn modelled_s(&self) -> f64 {
        let queues = [&self.tagged.prq, &self.tagged.umq, &self.msg.prq, &self.msg.umq];
        queues.into_iter().map(|queue| queue.modelled.seconds()).sum()
    }

    /// Number of messages that waited for room at their receivers.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.channels.values().fold(0, |sum, channel| sum.saturating_add(channel.waited))
    }

    /// The measured time of the operations of all queues.
    #[must_use]
    pub fn measured(&self) -> MeasuredTime {
        let mut sum = MeasuredTime::default();
        for queue in [&self.tagged.prq, &self.tagged.umq, &self.msg.prq, &self.msg.umq] {
            sum.merge(&queue.measured);
        }
        sum
    }

    /// Checks that the counts of both contexts add up.
    ///
    /// # Errors
    /// The equation that does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.tagged.check().map_err(|why| format!("tagged: {why}"))?;
        self.msg.check().map_err(|why| format!("msg: {why}"))
    }
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The text is not JSON, or lacks fields of a report.
    #[error("not a tcam report: {0}")]
    Json(#[from] serde_json::Error),
    /// The format or version is another one.
    #[error(
        "format `{format}` version {version} is not `tcam-report` version 1: \
         written by another version of tcam"
    )]
    Foreign {
        /// The format found.
        format: String,
        /// The version found.
        version: u32,
    },
    /// The counts do not add up.
    #[error("the counts do not add up: {0}")]
    Counts(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_report_are_plain_once_they_are_read() {
        let evil = || "a\u{1b}[31m\u{202e}".to_owned();
        let report = Report {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: evil(),
            host: evil(),
            config: BTreeMap::from([("kernel".to_owned(), evil())]),
            channels: BTreeMap::from([(evil(), ChannelCounters::default())]),
            ..Report::default()
        };
        let read = Report::from_json(&report.to_json().unwrap()).unwrap();
        assert_eq!(
            (&*read.program, &*read.host, &*read.config["kernel"]),
            ("a?[31m?", "a?[31m?", "a?[31m?")
        );
        assert!(read.channels.contains_key("a?[31m?"));
    }

    #[test]
    fn profiles_are_read_back_and_a_report_without_them_is_refused() {
        let mut report =
            Report { format: FORMAT.to_owned(), version: VERSION, ..Report::default() };
        let without = report.to_json().unwrap();
        let sizes = &mut report.tagged.sizes;
        [3, 1 << 40, u64::MAX].into_iter().for_each(|size| sizes.record(size));
        let error = Report::from_json(&report.to_json().unwrap()).unwrap_err().to_string();
        assert!(error.contains("sizes: a profile of 3 values, not 0"), "{error}");
        let sizes: Profile =
            serde_json::from_str(&serde_json::to_string(&report.tagged.sizes).unwrap()).unwrap();
        assert_eq!(sizes, report.tagged.sizes);
        let mut less: serde_json::Value = serde_json::from_str(&without).unwrap();
        Report::from_json(&less.to_string()).unwrap();
        less["tagged"].as_object_mut().unwrap().remove("sizes").unwrap();
        let error = Report::from_json(&less.to_string()).unwrap_err().to_string();
        assert!(error.contains("missing field `sizes`"), "{error}");
    }

    #[test]
    fn any_operation_counts_and_sums_have_all_counts() {
        assert!(!ContextCounters::default().has_operations());
        let changes: [fn(&mut ContextCounters); 3] =
            [|of| of.posts = 1, |of| of.arrivals = 1, |of| of.peeks = 1];
        let mut sum = ContextCounters::default();
        for change in changes {
            let mut one = ContextCounters::default();
            change(&mut one);
            assert!(one.has_operations());
            sum.merge(&one);
            sum.merge(&one);
        }
        assert_eq!((sum.posts, sum.arrivals, sum.peeks), (2, 2, 2));
        let mut report = Report::default();
        for (name, waited) in [("shm", 3), ("net", 4)] {
            report.channels.entry(name.to_owned()).or_default().waited = waited;
        }
        assert_eq!(report.waited(), 7);
    }

    #[test]
    fn the_writer_of_a_report_of_any_version_is_found() {
        let report = Report { format: FORMAT.to_owned(), pid: 7, ..Report::default() };
        assert_eq!(Report::writer(report.to_json().unwrap().as_bytes()), Some(7));
        let other = br#"{"format": "tcam-report", "version": 9, "pid": 3, "new": {}}"#;
        assert_eq!(Report::writer(other), Some(3));
        for none in
            [&b"{\"format\": \"tcam-summary\", \"pid\": 3}"[..], b"{\"pid\": 3}", b"[", b"\xff"]
        {
            assert_eq!(Report::writer(none), None);
        }
    }
}

#[cfg(test)]
#[path = "report/check_tests.rs"]
mod check_tests;
