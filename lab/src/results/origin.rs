// SPDX-License-Identifier: BSD-2-Clause
//! Where numbers come from: what a reader needs to repeat the run.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::head::Head;
use crate::text::numbers::whole;

/// Hosts that are named.
const HOSTS: usize = 8;

/// A line of what is known of a run.
pub(crate) type Line = (&'static str, String);

/// Names and values of what the ranks told of their run; what none told is left out.
pub(super) fn lines(heads: &[Head]) -> Vec<Line> {
    let each = |of: &dyn Fn(&Head) -> String| {
        let values: BTreeSet<_> = heads.iter().map(of).filter(|value| !value.is_empty()).collect();
        let values: Vec<_> = values.into_iter().collect();
        match values.len() {
            0..=HOSTS => values.join(", "),
            many => format!("{}, ... ({})", values[..HOSTS].join(", "), whole(many as u64)),
        }
    };
    let number = |of: Option<u32>| of.map_or_else(String::new, |number| number.to_string());
    let started = heads.iter().map(|head| head.origin.started_s).filter(|at| *at > 0).min();
    let mut lines = vec![
        ("program", each(&|head| head.program.to_string())),
        ("command", each(&|head| head.origin.command.to_string())),
        ("started", started.map_or_else(String::new, date)),
        ("ranks", each(&|head| number(head.origin.ranks))),
        ("hosts", each(&|head| head.host.to_string())),
        ("processors", each(&|head| number(head.origin.cores))),
        ("MPI", each(&|head| head.origin.mpi.to_string())),
        ("libfabric", each(&|head| head.libfabric.to_string())),
        ("tcam", each(&|head| head.tcam.to_string())),
    ];
    lines.retain(|(_, value)| !value.is_empty());
    lines
}

/// Date and time, of the world, of seconds since 1970.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|at| Timestamp::from_second(at).ok());
    time.map_or_else(String::new, |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::head::Shared;
    use crate::results::reports::tests::sample;

    #[test]
    fn dates_are_told_as_iso_8601_has_them() {
        assert_eq!(date(1_795_417_329), "2026-11-23T07:02:09Z");
        assert_eq!(date(u64::MAX), "");
    }

    #[test]
    fn what_ranks_tell_stands_once() {
        let mut reports: Vec<_> = (0..20).map(|rank| sample(rank, 1, 1)).collect();
        for (at, report) in reports.iter_mut().enumerate() {
            report.host = format!("node{at:02}");
            report.origin.command = "app -x".to_owned();
        }
        let mut shared = Shared::default();
        let heads: Vec<_> = reports.iter().map(|report| shared.head(report)).collect();
        let lines = lines(&heads);
        let value = |name| lines.iter().find(|line| line.0 == name).map(|line| line.1.as_str());
        assert_eq!(value("command"), Some("app -x"));
        assert!(value("hosts").unwrap().ends_with("node07, ... (20)"));
        assert_eq!(value("MPI"), None);
    }
}
