// SPDX-License-Identifier: BSD-2-Clause
//! The sum of all ranks as JSON, with the names that reports have.

use std::collections::BTreeMap;

use matching::{ByKind, Profile, QueueCounters};
use nic::report::{ChannelCounters, ContextCounters, KindTraffic};
use serde::Serialize;

use super::ranks::Completeness;
use super::summary::Summary;

/// The sum of all ranks.
#[derive(Debug, Serialize)]
pub(crate) struct Sum<'a> {
    ranks: usize,
    #[serde(flatten)]
    completeness: Completeness,
    /// Reports that were written at exit, because the endpoint was never closed.
    written_at_exit: usize,
    /// Reason to assume that the reports are of several runs.
    mixed: Option<&'a str>,
    /// Remarks on the host engines.
    remarks: &'a [String],
    libfabric: &'a str,
    /// Facts about the run, from the reports.
    origin: BTreeMap<&'a str, &'a str>,
    elapsed_s: f64,
    at_once_percent: f64,
    promoted_percent: f64,
    in_table_percent: f64,
    spilled_percent: f64,
    prq_high_water_rank: Option<u32>,
    umq_high_water_rank: Option<u32>,
    tagged: Context<'a>,
    msg: Context<'a>,
    channels: &'a BTreeMap<String, ChannelCounters>,
}

impl<'a> From<&'a Summary> for Sum<'a> {
    fn from(sum: &'a Summary) -> Self {
        Self {
            ranks: sum.processes,
            completeness: sum.ranks.completeness(),
            written_at_exit: sum.at_exit,
            mixed: sum.mixed.as_deref(),
            remarks: &sum.remarks,
            libfabric: &sum.libfabric,
            origin: sum.origin.iter().map(|(name, value)| (*name, value.as_str())).collect(),
            elapsed_s: sum.seconds,
            at_once_percent: sum.at_once(),
            promoted_percent: sum.promoted(),
            in_table_percent: sum.in_table(),
            spilled_percent: sum.spilled(),
            prq_high_water_rank: sum.prq_peak.rank,
            umq_high_water_rank: sum.umq_peak.rank,
            tagged: (&sum.tagged).into(),
            msg: (&sum.msg).into(),
            channels: &sum.channels,
        }
    }
}

/// A context of a report without its lengths over time, which cannot be added up.
#[derive(Debug, Serialize)]
pub(crate) struct Context<'a> {
    posts: u64,
    arrivals: u64,
    bytes: u64,
    unexpected: u64,
    peeks: u64,
    kinds: &'a ByKind<KindTraffic>,
    sizes: &'a Profile,
    prq: &'a QueueCounters,
    umq: &'a QueueCounters,
}

impl<'a> From<&'a ContextCounters> for Context<'a> {
    fn from(of: &'a ContextCounters) -> Self {
        let ContextCounters { posts, arrivals, bytes, unexpected, peeks, .. } = *of;
        let ContextCounters { kinds, sizes, prq, umq, .. } = of;
        Self { posts, arrivals, bytes, unexpected, peeks, kinds, sizes, prq, umq }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::json::{Json, Kind, is_ours};
    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn a_sum_has_the_names_of_reports() {
        let reports = [sample(0, 10, 25), sample(1, 10, 4)];
        let sum = Summary::of(&reports).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sum.json");
        let json = Json::file(Some(&path)).unwrap();
        json.check().unwrap();
        assert!(!path.exists(), "the check writes no file");
        json.write(Kind::Summary, Sum::from(&sum)).unwrap();
        let value = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(is_ours(&text) && !is_ours(&reports[0].to_json().unwrap()));
        let written = value(&text);
        assert_eq!(written["format"], "tcam-summary");
        assert_eq!((&written["ranks"], &written["tagged"]["arrivals"]), (&json!(2), &json!(29)));
        assert_eq!(written["tagged"]["prq"]["spills"], 15);
        assert_eq!(written["prq_high_water_rank"], 0);
        let report = value(&reports[0].to_json().unwrap());
        let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let mut of_report = names(&report["tagged"]);
        of_report.retain(|name| name != "lengths");
        assert_eq!(names(&written["tagged"]), of_report);
        assert_eq!(names(&written["tagged"]["umq"]), names(&report["tagged"]["umq"]));
    }
}
