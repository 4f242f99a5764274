// SPDX-License-Identifier: BSD-2-Clause
//! Ranks with traces but without a report: they were killed, or ended without `MPI_Finalize`.

use std::collections::BTreeSet;

use nic::report::{Report, WrittenAt};

use super::trace::Trace;
use super::{counted, play};
use crate::error::Error;
use crate::results::reports::{self, Endpoint};
use crate::results::summary::MISSING;
use crate::settings::Settings;
use crate::text::numbers::count;

/// Adds counts from the traces of endpoints without a complete report. A draft contains less than
/// the traces, and is replaced. Returns a note on the number of endpoints, if there are any.
pub(crate) fn add(
    is_told: impl Fn(&Endpoint) -> bool,
    drafts: &mut Vec<Report>,
    traces: &[Trace],
) -> Result<Option<String>, Error> {
    let silent: Vec<_> =
        traces.iter().filter(|trace| !is_told(&trace.endpoint())).cloned().collect();
    if silent.is_empty() {
        return Ok(None);
    }
    let settings = Settings::default();
    let mut replayed = counted::reports(&play::all(&silent, &settings)?, &settings)?;
    // A draft may continue where the recording stopped, and is kept then.
    let stopped: BTreeSet<Endpoint> =
        silent.iter().filter(|trace| trace.cut().is_some()).map(Trace::endpoint).collect();
    for report in &mut replayed {
        report.written_at = WrittenAt::Running;
        let endpoint = reports::endpoint(report);
        if let Some(at) = drafts.iter().position(|draft| reports::endpoint(draft) == endpoint) {
            let draft = drafts.swap_remove(at);
            if stopped.contains(&endpoint) {
                *report = draft;
            } else {
                (report.processes, report.channels) = (draft.processes, draft.channels);
            }
        }
    }
    let endpoints = count(replayed.len() as u64, "endpoint");
    let ranks = replayed.iter().filter_map(|report| report.rank).take(MISSING);
    let names: Vec<_> = ranks.map(|rank| rank.to_string()).collect();
    let ranks =
        if names.is_empty() { String::new() } else { format!(" (rank {})", names.join(", ")) };
    drafts.extend(replayed);
    Ok(Some(format!("No report of {endpoints}{ranks}: counted from traces")))
}
