// SPDX-License-Identifier: BSD-2-Clause
//! Remarks of a summary on the host engines: broken promises, clusters that do not fit, engines
//! that `auto` chose.

use std::collections::{BTreeMap, BTreeSet};

use nic::models::spilling_mode;
use nic::report::Report;

use crate::text::numbers::{count, total, whole};

/// Largest number of remarks that are repeated from reports, because a report may contain anything.
const MOST: usize = 8;

/// Remarks from reports, collected one report after the other.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    said: Vec<String>,
    any_source: u64,
    any_tag: u64,
    unclustered: u64,
    /// Devices that had spills.
    devices: BTreeSet<String>,
    /// Number of queues by the engine that `auto` chose last.
    chosen: BTreeMap<String, u64>,
}

impl Remarks {
    pub(super) fn add(&mut self, report: &Report) {
        for remark in &report.remarks {
            if self.said.len() < MOST && !self.said.contains(remark) {
                self.said.push(remark.clone());
            }
        }
        let tagged = &report.tagged;
        self.any_source = total([self.any_source, tagged.broken_promises.any_source]);
        self.any_tag = total([self.any_tag, tagged.broken_promises.any_tag]);
        for queue in [&tagged.prq, &tagged.umq] {
            self.unclustered = total([self.unclustered, queue.unclustered]);
            if let Some(choice) = queue.choices.last() {
                *self.chosen.entry(choice.engine.clone()).or_default() += 1;
            }
            if let Some(device) = report.config.get("device").filter(|_| queue.spills > 0) {
                self.devices.insert(device.clone());
            }
        }
    }

    /// Returns each remark as a sentence.
    pub(super) fn told(self) -> Vec<String> {
        let Self { said: mut remarks, any_source, any_tag, unclustered, devices, chosen } = self;
        if any_source > 0 || any_tag > 0 {
            remarks.push(format!(
                "BROKEN PROMISES: {} from any source, {} of any tag, matched in order all the same",
                count(any_source, "receive"),
                whole(any_tag)
            ));
        }
        if unclustered > 0 {
            let elements = count(unclustered, "element");
            remarks.push(format!("{elements} of sources that no cluster names"));
        }
        for (device, mode) in devices.iter().filter_map(|of| Some((of, spilling_mode(of)?))) {
            remarks.push(format!(
                "{device} holds senders back and fails where its tables are full; {mode} goes on \
                 and matches on the host: --set device={mode}"
            ));
        }
        if !chosen.is_empty() {
            let of = |(engine, queues): (&String, &u64)| {
                format!("{engine} in {}", count(*queues, "queue"))
            };
            let chosen: Vec<_> = chosen.iter().map(of).collect();
            remarks
                .push(format!("auto chose {}; --report DIR says when and why", chosen.join(", ")));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use matching::Choice;

    use super::*;
    use crate::results::reports::tests::sample;

    fn of(reports: &[Report]) -> Vec<String> {
        let mut remarks = Remarks::default();
        reports.iter().for_each(|report| remarks.add(report));
        remarks.told()
    }

    #[test]
    fn each_remark_occurs_once() {
        let mut report = Report { remarks: vec!["odd clusters".to_owned()], ..Report::default() };
        report.tagged.broken_promises.any_source = 1;
        report.tagged.umq.unclustered = 2;
        report.tagged.prq.choices = ["hash", "list"]
            .map(|engine| Choice { engine: engine.to_owned(), ..Choice::default() })
            .into();
        let remarks = of(&[report.clone(), report]);
        assert_eq!(
            remarks,
            [
                "odd clusters",
                "BROKEN PROMISES: 2 receives from any source, 0 of any tag, matched in order all \
                 the same",
                "4 elements of sources that no cluster names",
                "auto chose list in 2 queues; --report DIR says when and why",
            ]
        );
        assert_eq!(of(&[Report::default()]), [""; 0]);
    }

    #[test]
    fn the_mode_of_a_device_that_would_do_is_named() {
        let report = |device: &str, posts| Report {
            config: BTreeMap::from([("device".to_owned(), device.to_owned())]),
            ..sample(0, 4, posts)
        };
        let remarks = of(&[report("cassini-hardware", 9), report("cassini-hardware", 8)]);
        assert!(remarks.len() == 1 && remarks[0].ends_with("--set device=cassini-hybrid"));
        let fits = [report("cassini-hardware", 4), report("cassini-hybrid", 9), report("alpu", 9)];
        assert_eq!(of(&fits), [""; 0]);
    }
}
