// SPDX-License-Identifier: BSD-2-Clause
//! What a report says of an endpoint.

use nic::report::Report;

use super::Engine;

impl Engine {
    /// What the endpoint counted.
    pub(crate) fn count(&self, report: &mut Report) {
        report.processes = self.processes;
        // What a shared context matched is in its own report.
        if self.device.shared.is_none() {
            report.tagged = self.device.own.tagged.counters();
            report.msg = self.device.own.msg.counters();
        }
        report.channels = [
            ("shm", self.channels.shm),
            ("kernel-copy", self.channels.kernel_copy),
            ("copy-pipeline", self.channels.copy_pipeline),
            ("rma", self.channels.rma),
        ]
        .map(|(name, counters)| (name.to_owned(), counters))
        .into();
    }
}
