// SPDX-License-Identifier: BSD-2-Clause
//! The moment at which a message arrives at the device (`FI_TCAM_ARRIVAL`).
//!
//! A NIC matches a message when it comes, even while the program computes. The provider runs only
//! in calls of the program. So each operation on the device (a post, a probe or a cancel) first
//! handles the messages that have come, and the device sees all operations in the order of a NIC:
//!
//! ```text
//! ring       next slot not filled: one load, of a line that polls read as well
//!            otherwise: end = tail; handle slots up to end
//! network    last poll less than LOOK ago: nothing
//!            otherwise: poll until nothing comes
//! ```
//!
//! A message over shared memory *has come* when its slot and all slots before it are filled. A
//! sender that is preempted while it writes a slot holds up the messages of other senders behind
//! it. `end` is read once, so the call returns even if senders are faster than this thread.

use channel::rx::{NET, TRANSPORTS};

use super::Engine;

/// Maximum number of times that a call looks at slots whose senders write them at present. This
/// takes some 10 us.
const SPINS: u32 = 500;
/// Maximum number of polls of the network before an operation on the device. Each handles up to 64
/// frames.
const MOST_POLLS: u32 = 1024;

impl Engine {
    /// Handles all messages that have come, before an operation on the device. With
    /// `FI_TCAM_ARRIVAL=poll`, does nothing.
    #[inline(always)]
    pub(super) fn receive_before_operation(&mut self) {
        if self.arrival_of_nic && (self.inbound.has_over(0) || self.inbound.has_others()) {
            self.receive_arrived();
        }
    }

    /// Handles all messages that have come.
    #[inline(never)]
    pub(crate) fn receive_arrived(&mut self) {
        for transport in (0..TRANSPORTS).filter(|&transport| transport != NET) {
            let Some(end) = self.inbound.end_over(transport) else { continue };
            let mut spins = SPINS;
            while self.inbound.position_over(transport) < end && spins > 0 {
                if self.receive_over(transport) == 0 {
                    spins -= 1;
                    std::hint::spin_loop();
                }
            }
        }
        if self.inbound.has_net() && self.peers.transports.schedule.is_look_due() {
            let mut polls = 0..MOST_POLLS;
            while polls.next().is_some() && self.poll_net() {}
        }
    }
}
