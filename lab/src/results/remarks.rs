// SPDX-License-Identifier: BSD-2-Clause
//! What a reader of a summary should know of the host engines: promises that were broken,
//! clusters that do not fit, engines that `auto` chose.

use std::collections::{BTreeMap, BTreeSet};

use nic::models::spilling_mode;
use nic::report::Report;

use crate::text::numbers::{count, whole};

/// Most remarks of reports that are repeated: a report may say anything.
const MOST: usize = 8;

/// A sentence each.
pub(crate) fn of(reports: &[Report]) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for remark in reports.iter().flat_map(|report| &report.remarks) {
        if remarks.len() < MOST && !remarks.contains(remark) {
            remarks.push(remark.clone());
        }
    }
    let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0, u64::saturating_add);
    let broken = |of: fn(&Report) -> u64| sum(&mut reports.iter().map(of));
    let any_source = broken(|report| report.tagged.broken_promises.any_source);
    let any_tag = broken(|report| report.tagged.broken_promises.any_tag);
    if any_source > 0 || any_tag > 0 {
        remarks.push(format!(
            "BROKEN PROMISES: {} from any source, {} of any tag, matched in order all the same",
            count(any_source, "receive"),
            whole(any_tag)
        ));
    }
    let queues = || reports.iter().flat_map(|report| [&report.tagged.prq, &report.tagged.umq]);
    let unclustered = sum(&mut queues().map(|queue| queue.unclustered));
    if unclustered > 0 {
        let elements = count(unclustered, "element");
        remarks.push(format!("{elements} of sources that no cluster names"));
    }
    let spilled = |report: &&Report| report.tagged.prq.spills > 0 || report.tagged.umq.spills > 0;
    let devices = reports.iter().filter(spilled).filter_map(|report| report.config.get("device"));
    let devices: BTreeSet<&String> = devices.collect();
    for (device, mode) in devices.iter().filter_map(|of| Some((of, spilling_mode(of)?))) {
        remarks.push(format!(
            "{device} holds senders back and fails where its tables are full; {mode} goes on and \
             matches on the host: --set device={mode}"
        ));
    }
    let mut chosen: BTreeMap<&str, u64> = BTreeMap::new();
    for choice in queues().filter_map(|queue| queue.choices.last()) {
        *chosen.entry(&choice.engine).or_default() += 1;
    }
    if !chosen.is_empty() {
        let of =
            |(engine, queues): (&&str, &u64)| format!("{engine} in {}", count(*queues, "queue"));
        let chosen: Vec<_> = chosen.iter().map(of).collect();
        remarks.push(format!("auto chose {}; --report DIR says when and why", chosen.join(", ")));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use matching::Choice;

    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn each_thing_is_said_once() {
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
