// SPDX-License-Identifier: BSD-2-Clause
//! `FI_TCAM_OVERFLOW=flow-control`: a receive without a free table entry waits in the application,
//! and a message without one delays its sender.
//!
//! ```text
//! a receive without an entry   fi_trecv returns FI_EAGAIN. After FI_TCAM_FLOW_TIMEOUT
//!                              without a free entry, this receive and those after it
//!                              go to the host until an entry is free. With
//!                              FI_TCAM_EXHAUSTED=fail, fi_trecv returns FI_ENOSPC instead;
//!                              with onload, immediately
//! a message without a          is kept on the host, and the ring of the endpoint (or its
//! receive or an entry          input from the network) stands still. When it is full,
//!                              senders wait. It moves on when an entry is free, when a
//!                              receive expects the next message in it, or after RECOVERY
//! ```
//!
//! Each wait has an end, so that programs do not hang. Otherwise two kinds of programs would hang.
//! In one, a receive waits for a message behind a message for which no receive is posted. In the
//! other, all receives are posted before any message is sent. In the first case, CXI moves
//! unexpected messages to host memory (fi_cxi(7), flow control). In the second case, CXI has no
//! solution.

use std::time::{Duration, Instant};

use ffi::Errno;
use nic::params::{Params, types::Exhausted};

/// Longest time that the ring stands still for a message.
const RECOVERY: Duration = Duration::from_micros(100);

/// State of the flow control.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Maximum time for which receives are held back without a free entry.
    timeout: Duration,
    /// Whether receives fail after that time.
    fails: bool,
    /// Time at which a receive was first held back since an entry was last free, for untagged and
    /// for tagged messages. The two have separate tables, and a free entry in one table ends no
    /// wait for the other.
    posts: [Option<Instant>; 2],
    /// Latest time until which the ring stands still; `None` if it does not stand still.
    ring: Option<Instant>,
    /// Largest number of receives that may be posted; 0 for no limit (`FI_TCAM_RECEIVE_IDS`).
    receive_ids: usize,
}

impl Flow {
    /// Creates the state. `timeout` is in milliseconds.
    fn new(timeout: u64, fails: bool) -> Self {
        let timeout = Duration::from_millis(timeout);
        Self { timeout, fails, posts: [None; 2], ring: None, receive_ids: 0 }
    }

    pub(crate) fn from_params(params: &Params) -> Self {
        let flow = match params.exhausted {
            Exhausted::Spill => Self::new(params.flow_timeout, false),
            Exhausted::Fail => Self::new(params.flow_timeout, true),
            // The unexpected messages have moved to the host already (`nic::device`).
            Exhausted::Onload => Self::new(0, true),
        };
        Self { receive_ids: params.receive_ids, ..flow }
    }

    /// Returns whether receives need IDs, of which there is a limited number.
    #[inline(always)]
    pub(crate) fn needs_ids(&self) -> bool {
        self.receive_ids > 0
    }

    /// Fails with `ENOSPC` if the receives that are posted have all IDs.
    #[cold]
    pub(crate) fn check_ids(&self, posted: usize) -> Result<(), Errno> {
        if posted < self.receive_ids {
            return Ok(());
        }
        tracing::error!(
            "{} receives are posted, and there is no ID for another one (FI_TCAM_RECEIVE_IDS): on \
             the NIC the program would wait here for ever; `tcam settings` says what to set",
            self.receive_ids
        );
        Err(Errno::ENOSPC)
    }

    /// Notes that an entry was free for a receive.
    #[inline]
    pub(crate) fn posted(&mut self, tagged: bool) {
        self.posts[usize::from(tagged)] = None;
    }

    /// Returns `Ok` if a receive without a free entry may go to the host. Returns `EAGAIN` if it
    /// must wait, and `ENOSPC` after the timeout with `FI_TCAM_EXHAUSTED=fail`.
    #[cold]
    pub(crate) fn hold_post(&mut self, tagged: bool) -> Result<(), Errno> {
        let posts = &mut self.posts[usize::from(tagged)];
        let since = *posts.get_or_insert_with(Instant::now);
        if since.elapsed() < self.timeout {
            return Err(Errno::EAGAIN);
        }
        if !self.fails {
            return Ok(());
        }
        *posts = None;
        match self.timeout {
            Duration::ZERO => tracing::error!(
                "a posted receive finds no entry in the pool of the node, and its process has no \
                 unexpected message to move to the host (FI_TCAM_EXHAUSTED=onload): `tcam settings` \
                 names the rank that holds most entries, and FI_TCAM_EXHAUSTED=spill goes on"
            ),
            timeout => tracing::error!(
                "no entry became free for a posted receive in {timeout:?} (FI_TCAM_FLOW_TIMEOUT): \
                 increase FI_TCAM_PRQ_ENTRIES, or set FI_TCAM_EXHAUSTED=spill"
            ),
        }
        Err(Errno::ENOSPC)
    }

    /// Lets the ring stand still, because a message has neither a receive nor an entry.
    #[cold]
    pub(crate) fn hold_ring(&mut self) {
        self.ring = Some(Instant::now() + RECOVERY);
    }

    /// Returns whether the ring may stand still.
    #[inline]
    pub(crate) fn holds_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Returns whether the ring has stood still for long enough, or does not stand still.
    pub(crate) fn is_ring_due(&self) -> bool {
        self.ring.is_none_or(|until| Instant::now() >= until)
    }

    /// Lets the ring move on.
    pub(crate) fn release_ring(&mut self) {
        self.ring = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(15);

    #[test]
    fn receives_go_to_the_host_after_the_timeout_until_an_entry_is_free() {
        let mut flow = Flow::new(20, false);
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN));
        std::thread::sleep(SHORT);
        flow.posted(true);
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN));
        std::thread::sleep(2 * SHORT);
        assert_eq!(flow.hold_post(true), Ok(()));
        assert_eq!(flow.hold_post(true), Ok(()));
        flow.posted(true);
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN));
    }

    #[test]
    fn a_free_untagged_entry_does_not_help_tagged_receives() {
        let mut flow = Flow::new(10, false);
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN));
        std::thread::sleep(SHORT);
        flow.posted(false);
        assert_eq!(flow.hold_post(true), Ok(()));
        assert_eq!(flow.hold_post(false), Err(Errno::EAGAIN));
    }

    #[test]
    fn a_receive_without_an_id_fails() {
        let flow = Flow { receive_ids: 3, ..Flow::new(10, false) };
        assert_eq!([2, 3, 4].map(|posted| flow.check_ids(posted).is_ok()), [true, false, false]);
        assert!(flow.needs_ids() && !Flow::new(10, true).needs_ids());
    }

    #[test]
    fn receives_fail_after_the_timeout() {
        let mut flow = Flow::new(10, true);
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN));
        std::thread::sleep(SHORT);
        assert_eq!(flow.hold_post(true), Err(Errno::ENOSPC));
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN), "the next one waits again");
    }
}
