// SPDX-License-Identifier: BSD-2-Clause
//! Ranks that left traces and no report: they were killed, or ended without `MPI_Finalize`.

use std::collections::BTreeSet;

use nic::report::Report;

use crate::environment::Settings;
use crate::error::Error;
use crate::numbers::count;
use crate::replay;
use crate::reports::MISSING;
use crate::traces::{self, Trace};

/// Adds what the traces of endpoints count that there is no report of. Says of how many, if
/// there are any.
pub(crate) fn add(reports: &mut Vec<Report>, traces: &[Trace]) -> Result<Option<String>, Error> {
    let told: BTreeSet<_> = reports.iter().map(replay::endpoint).collect();
    let silent: Vec<_> =
        traces.iter().filter(|trace| !told.contains(&trace.endpoint())).cloned().collect();
    if silent.is_empty() {
        return Ok(None);
    }
    let settings = Settings::default();
    let replayed = traces::reports(&replay::all(&silent, &settings)?, &settings)?;
    let endpoints = count(replayed.len() as u64, "endpoint");
    let ranks = replayed.iter().filter_map(|report| report.rank).take(MISSING);
    let names: Vec<_> = ranks.map(|rank| rank.to_string()).collect();
    let ranks =
        if names.is_empty() { String::new() } else { format!(" (rank {})", names.join(", ")) };
    reports.extend(replayed);
    reports.sort_by_key(|report| (report.rank, report.pid));
    Ok(Some(format!("No report of {endpoints}{ranks}: counted from traces")))
}
