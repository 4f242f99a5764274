// SPDX-License-Identifier: BSD-2-Clause
//! The counters of an endpoint, for its report.

use nic::report::Report;

use super::Engine;

impl Engine {
    /// Writes the counters of the endpoint into a report.
    pub(crate) fn count(&mut self, report: &mut Report) {
        report.processes = self.processes;
        report.context = self.context;
        // Matches in a shared context are in its own report.
        if !self.device.is_shared() {
            let device = self.device.lock_own();
            (report.tagged, report.msg) = (device.tagged.counters(), device.msg.counters());
        }
        let (mut shm, mut net) = (self.channels.shm, self.channels.net);
        let (beside, beside_bytes) = self.home.shm().sent_to_open();
        (shm.sent, shm.sent_bytes) = (shm.sent + beside, shm.sent_bytes + beside_bytes);
        let (sent, bytes) = self.home.sent_far();
        (shm.sent, shm.sent_bytes) = (shm.sent - sent, shm.sent_bytes - bytes);
        (net.sent, net.sent_bytes) = (net.sent + sent, net.sent_bytes + bytes);
        let polls = self.home.turns.counts();
        (net.polls, net.empty_polls) = (polls.all, polls.empty);
        net.discovery_ns = polls.discovery.as_nanos() as u64;
        let channels = [
            ("shm", Some(shm)),
            ("kernel-copy", Some(self.channels.kernel_copy)),
            ("copy-pipeline", Some(self.channels.copy_pipeline)),
            ("net", self.home.has_net().then_some(net)),
            ("rma", Some(self.channels.rma)),
        ];
        let told = channels.into_iter().filter_map(|(name, counters)| Some((name, counters?)));
        report.channels = told.map(|(name, counters)| (name.to_owned(), counters)).collect();
    }
}
