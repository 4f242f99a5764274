// SPDX-License-Identifier: BSD-2-Clause
//! Makes reports from the counts of replays, as the ranks would have written them.

use std::collections::BTreeMap;

use nic::replay::Replay;
use nic::report::{ContextCounters, FORMAT, Report, VERSION, WrittenAt};

use super::trace::Trace;
use crate::error::Error;
use crate::results::Endpoint;
use crate::settings::Settings;

/// The counts of the replay of one trace.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) trace: Trace,
    pub(crate) counters: ContextCounters,
    /// Number of operations on the device. Sends do not count.
    pub(crate) operations: u64,
    /// Seconds from the first record to the last.
    pub(crate) seconds: f64,
}

/// Returns a report for each endpoint, sorted by rank and process id.
pub(crate) fn reports(counted: &[Counted], settings: &Settings) -> Result<Vec<Report>, Error> {
    let mut endpoints: BTreeMap<Endpoint, Vec<&Counted>> = BTreeMap::new();
    for counted in counted {
        endpoints.entry(counted.trace.endpoint()).or_default().push(counted);
    }
    let reports: Result<Vec<_>, _> =
        endpoints.into_values().map(|contexts| report(&contexts, settings)).collect();
    let mut reports = reports?;
    reports.sort_by_key(|report| (report.rank, report.pid));
    Ok(reports)
}

/// Returns the report of one endpoint from its traces, of which there is at least one.
fn report(contexts: &[&Counted], settings: &Settings) -> Result<Report, Error> {
    let Counted { trace, .. } = contexts[0];
    let (header, params) = (&trace.header, trace.params(settings)?);
    let context = |name: &str| {
        let of = contexts.iter().find(|of| of.trace.header.context == name);
        match of {
            Some(of) => Ok(of.counters.clone()),
            // A context without operations has no trace.
            None => Replay::new(&trace.device(&params)?)
                .map(|replay| replay.counters())
                .map_err(|error| Error::Replay(error.to_string())),
        }
    };
    let mut config = params.recorded();
    // Messages arrive as they did when the trace was recorded.
    config.extend(
        header.config.get_key_value("arrival").map(|(name, how)| (name.clone(), how.clone())),
    );
    Ok(Report {
        format: FORMAT.to_owned(),
        version: VERSION,
        tcam: env!("CARGO_PKG_VERSION").to_owned(),
        libfabric: header.libfabric.clone(),
        host: header.host.clone(),
        pid: header.pid,
        rank: header.rank,
        address: header.address.clone(),
        program: header.program.clone(),
        origin: header.origin.clone(),
        start_ns: header.start_ns,
        written_at: match contexts.iter().all(|of| of.trace.is_whole()) {
            true => WrittenAt::Close,
            false => WrittenAt::Running,
        },
        elapsed_s: contexts.iter().fold(0.0, |longest, of| of.seconds.max(longest)),
        config,
        tagged: context("tagged")?,
        msg: context("msg")?,
        ..Report::default()
    })
}

#[cfg(test)]
mod tests {
    use nic::trace::{Encoder, Header, Op};

    use super::super::{Take, files, play};
    use super::*;
    use crate::results::summary::is_polled;

    #[test]
    fn a_report_says_how_messages_arrived_in_the_recorded_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.trace");
        let settings = Settings::default();
        for (how, polled) in [("auto", false), ("nic", false), ("poll", true)] {
            let config = [("arrival".to_owned(), how.to_owned())].into();
            let header = Header { layout: "mpich".to_owned(), config, ..Header::default() };
            let mut bytes = header.to_bytes();
            let envelope = nic::message::Envelope { source: 1, bits: 2, len: 0 };
            Encoder::default().op(&mut bytes, &Op::Arrive(envelope)).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let take = Take { cut_off: true, max_queue: 9, ..Take::default() };
            let found = files::find(std::slice::from_ref(&path), take).unwrap();
            let made = reports(&play::all(&found, &settings).unwrap(), &settings).unwrap();
            assert_eq!(is_polled(&made[0].config, &made[0].libfabric), polled, "{how}");
        }
    }
}
