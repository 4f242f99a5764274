// SPDX-License-Identifier: BSD-2-Clause
//! `tcam replay`: replays traces once and prints the counts, or compares them with reports.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use nic::report::{ContextCounters, Report};
use serde_json::Value;

use super::arguments::Replay;
use crate::error::Error;
use crate::results::reports::endpoint;
use crate::results::{
    DirectoryLock, Endpoint, Kind, RunRecord, Sum, Summary, output_directory, reports, summary_text,
};
use crate::settings::Settings;
use crate::text::count;
use crate::traces::play::{holds_back, note_flow_control};
use crate::traces::{Trace, counted, files, play};

/// Replays the traces and prints the counts. Returns 3 if results are incomplete, otherwise 1 if
/// counts differ from the reports of `--against`, otherwise 0.
pub(super) fn replay(arguments: &Replay) -> Result<u8, Error> {
    let mut settings = Settings::for_replay("--set", &arguments.set)?;
    settings.give_sizes(arguments.tables)?;
    settings.give("timing", "--timing", arguments.timing.as_ref())?;
    let found = files::find(&arguments.traces, arguments.take)?.placed(&arguments.placed)?;
    files::note_waits(&found);
    if let Some(directory) = &arguments.report {
        spare_runs(directory)?;
    }
    let live = arguments.against.as_deref().map(|from| reports_of(from, &found)).transpose()?;
    if holds_back(&files::params(&found, &settings)?) {
        note_flow_control("overflow=flow-control");
    }
    arguments.json.check()?;
    let started = Instant::now();
    let counted = play::all(&found, &settings)?;
    let seconds = started.elapsed().as_secs_f64();
    let reports = counted::reports(&counted, &settings)?;
    for report in &reports {
        report.check().map_err(Error::Replay)?;
    }
    if let Some(directory) = &arguments.report {
        write(directory, &reports, found.run.as_ref())?;
    }
    let operations: u64 = counted.iter().map(|counted| counted.operations).sum();
    let ranks = found.ranks();
    if let Some(sum) = Summary::of_traces(&reports, &ranks) {
        eprint!("{}", summary_text::of(&sum));
        arguments.json.write(Kind::Summary, Sum::from(&sum))?;
    }
    eprintln!(
        "{} of {} in {seconds:.2} s: {:.1} million a second",
        count(operations, "operation"),
        count(found.len() as u64, "trace"),
        operations as f64 / seconds / 1e6
    );
    match live {
        Some(live) => compare(&reports, &found, &live),
        None => Ok(0),
    }
    .map(|code| code.max(ranks.code(arguments.take.partial)))
}

/// Fails if a directory contains the reports of a run, because they may be its only results.
fn spare_runs(directory: &Path) -> Result<(), Error> {
    output_directory::check(directory)?;
    if !directory.exists() {
        return Ok(());
    }
    for path in reports::old(directory)? {
        // A replay uses no channel, so reports with channels are those of a run.
        let of_run = |report: Report| !report.channels.is_empty();
        if path.extension() == Some(OsStr::new("json"))
            && reports::read_one(&path).is_ok_and(of_run)
        {
            let why = "has the reports of a run: give another directory to --report";
            return Err(Error::file(directory, why));
        }
    }
    Ok(())
}

/// Returns the reports to compare with. Fails if they do not contain the endpoint of every trace.
fn reports_of(directory: &Path, traces: &[Trace]) -> Result<Vec<Report>, Error> {
    let live = reports::read(directory)?;
    let shown = directory.display();
    if live.is_empty() {
        fail!("--against {shown}: no report (*.json) there");
    }
    let missing = |trace: &&Trace| !live.iter().any(|report| endpoint(report) == trace.endpoint());
    let strange: Vec<_> = traces.iter().filter(missing).collect();
    match strange.first() {
        None => Ok(live),
        Some(_) if strange.len() == traces.len() => {
            fail!("--against {shown}: the reports are of another run than the traces")
        }
        Some(trace) => Err(no_report_of(&trace.endpoint())),
    }
}

fn no_report_of((_, pid, address): &Endpoint) -> Error {
    message!("no report of process {pid} at {address} to compare with")
}

/// Writes the reports. The name of a report begins with `RANK`, or with `RANK.1` and so on for
/// further endpoints of a rank. A report without a rank has the process id instead. Also writes the
/// record of the recorded run, with the exit status of its program.
fn write(directory: &Path, reports: &[Report], run: Option<&RunRecord>) -> Result<(), Error> {
    let _lock = DirectoryLock::acquire(&output_directory::make(directory)?)?;
    let directory = reports::prepare(directory)?;
    let mut endpoints: BTreeMap<u32, usize> = BTreeMap::new();
    for report in reports {
        let rank = report.rank.unwrap_or(report.pid);
        let endpoint = endpoints.entry(rank).or_default();
        let name = match *endpoint {
            0 => rank.to_string(),
            further => format!("{rank}.{further}"),
        };
        *endpoint += 1;
        reports::write(&directory, &name, report)?;
    }
    run.map_or(Ok(()), |run| run.write(&directory))
}

/// Prints the differences between the reports of a replay and of the run. Returns 1 if there are
/// any, otherwise 0.
fn compare(replayed: &[Report], traces: &[Trace], live: &[Report]) -> Result<u8, Error> {
    let played: BTreeSet<_> =
        traces.iter().map(|trace| (trace.endpoint(), &*trace.header.context)).collect();
    let (mut different, mut contexts) = (0, 0);
    for report in replayed {
        let Some(other) = live.iter().find(|other| endpoint(other) == endpoint(report)) else {
            return Err(no_report_of(&endpoint(report)));
        };
        for (name, of_replay, of_run) in
            [("tagged", &report.tagged, &other.tagged), ("msg", &report.msg, &other.msg)]
        {
            // A context (tagged or untagged messages) with operations is skipped if its trace was
            // not given. A context without operations has no trace, and its counts are compared.
            if of_run.has_operations() && !played.contains(&(endpoint(report), name)) {
                continue;
            }
            contexts += 1;
            let counters = [of_replay, of_run].map(without_times);
            let differences = differences(&counters)?;
            if !differences.is_empty() {
                different += 1;
                let rank = report.rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
                eprint!("{rank}{name}:\n{differences}");
            }
        }
    }
    if different == 0 {
        eprintln!("The replay has the same counts as the {} reports.", replayed.len());
    } else {
        eprintln!("{different} of {contexts} contexts differ.");
    }
    let shares = |report: &Report| report.config.get("pool").is_some_and(|pool| pool == "node");
    if different > 0 && replayed.iter().any(shares) {
        eprintln!("pool=node: which rank came first to the pool is not in the traces.");
    }
    Ok(u8::from(different > 0))
}

/// Returns a line for each value that differs between the replay and the run, by its name in
/// reports.
fn differences(counters: &[ContextCounters; 2]) -> Result<String, Error> {
    let mut values = [BTreeMap::new(), BTreeMap::new()];
    for (values, counters) in values.iter_mut().zip(counters) {
        let counters = serde_json::to_value(counters).map_err(Error::Json)?;
        collect(&counters, String::new(), values);
    }
    let [replay, run] = &values;
    let names: BTreeSet<_> = replay.keys().chain(run.keys()).collect();
    let value = |of: &BTreeMap<_, String>, name| {
        of.get(name).map_or_else(|| "nothing".to_owned(), Clone::clone)
    };
    let mut text = String::new();
    for name in names.into_iter().filter(|name| replay.get(*name) != run.get(*name)) {
        let _ =
            writeln!(text, "  {name}: replay {}, run {}", value(replay, name), value(run, name));
    }
    Ok(text)
}

/// Adds the numbers in a value, by their names with a dot between names. A list is one value.
fn collect(value: &Value, name: String, to: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(field, value)| {
            let dot = if name.is_empty() { "" } else { "." };
            collect(value, format!("{name}{dot}{field}"), to);
        }),
        value => drop(to.insert(name, value.to_string())),
    }
}

/// Returns the counters without the values that depend on a clock.
fn without_times(counters: &ContextCounters) -> ContextCounters {
    let mut counters = counters.clone();
    counters.lengths.us.clear();
    for queue in [&mut counters.prq, &mut counters.umq] {
        queue.measured = Default::default();
    }
    counters
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::results::reports::tests::sample;
    use crate::traces::Take;
    use nic::report::ChannelCounters;
    use nic::trace::Header;

    #[test]
    fn reports_of_a_run_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        spare_runs(&place.join("none")).unwrap();
        spare_runs(place).unwrap();
        let mut report = sample(0, 10, 25);
        write(place, &[report.clone()], None).unwrap();
        spare_runs(place).unwrap();
        report.channels.insert("shm".to_owned(), ChannelCounters::default());
        write(place, &[report], None).unwrap();
        let error = spare_runs(place).unwrap_err().to_string();
        assert!(error.contains("has the reports of a run"), "{error}");
    }

    #[test]
    fn only_differences_are_printed() {
        let [one, other] = [25, 24].map(|posts| sample(0, 10, posts).tagged);
        let text = differences(&[one.clone(), other]).unwrap();
        assert!(text.starts_with("  arrivals: replay 25, run 24\n"), "{text}");
        assert!(text.contains("\n  prq.block_reasons.table_full: replay 15, run 14\n"), "{text}");
        assert!(!text.contains("promotions"), "{text}");
        let mut deep = one.clone();
        deep.sizes.record(7);
        let text = differences(&[deep, one]).unwrap();
        assert!(text.lines().count() > 0 && text.lines().all(|line| line.contains("sizes")));
    }

    #[test]
    fn reports_of_another_run_are_an_error_before_the_replay() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let report = sample(0, 10, 25);
        let trace = |name: &str, pid| {
            let context = "tagged".to_owned();
            let header = Header { host: report.host.clone(), pid, context, ..Header::default() };
            fs::write(place.join(name), header.to_bytes()).unwrap();
        };
        trace("0.trace", report.pid);
        let read =
            || reports_of(place, &files::find(&[place.to_owned()], Take::default()).unwrap());
        assert!(read().unwrap_err().to_string().ends_with("no report (*.json) there"));
        let put = |report: &Report| {
            fs::write(place.join("0.json"), report.to_json().unwrap()).unwrap();
        };
        put(&Report { pid: 7, ..report.clone() });
        assert!(read().unwrap_err().to_string().contains("of another run than the traces"));
        put(&report);
        assert_eq!(read().unwrap().len(), 1);
        trace("1.trace", 8);
        assert!(read().unwrap_err().to_string().starts_with("no report of process 8"));
    }

    #[test]
    fn two_endpoints_of_a_rank_have_a_report_each() {
        let directory = tempfile::tempdir().unwrap();
        let other = Report { address: "127.0.0.1:2".to_owned(), ..sample(0, 10, 4) };
        let run = RunRecord::new(vec!["app".to_owned()], 3, 2, 7);
        let reports = [sample(0, 10, 25), other, sample(1, 10, 7)];
        write(directory.path(), &reports, Some(&run)).unwrap();
        assert_eq!(RunRecord::beside(directory.path()), Some(run));
        assert_eq!(reports::read(directory.path()).unwrap().len(), 3);
        assert!(directory.path().join("0.1.json").is_file());
    }
}
