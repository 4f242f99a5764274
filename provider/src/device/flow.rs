// SPDX-License-Identifier: BSD-2-Clause
//! `FI_TCAM_OVERFLOW=flow-control`: what has no room waits where it comes from.
//!
//! ```text
//! a receive without an entry   fi_trecv answers FI_EAGAIN. After FI_TCAM_FLOW_TIMEOUT
//!                              without a free entry this receive and those after it
//!                              go to the host, until one is free; or, with
//!                              FI_TCAM_EXHAUSTED=fail, fi_trecv answers FI_ENOSPC
//! a message without either     is kept on the host, and the ring of the endpoint
//!                              stands still: senders wait as it fills up.
//!                              Until an entry frees, a receive expects what is next
//!                              in the ring, or RECOVERY is over
//! ```
//!
//! An end to each wait is what keeps programs alive: a receive may wait for a message
//! behind one that no receive is posted for, and a program may post all its receives
//! before anybody sends. CXI moves unexpected messages to host memory for the first
//! (fi_cxi(7), flow control), and has no answer to the second.

use std::time::{Duration, Instant};

use ffi::Errno;
use nic::params::Params;

/// Longest standstill for a message.
const RECOVERY: Duration = Duration::from_micros(100);

/// What is held back at the moment.
#[derive(Debug)]
pub(crate) struct Flow {
    /// How long receives are held back without a free entry.
    timeout: Duration,
    /// Whether they fail then.
    fails: bool,
    /// When the first receive was held back of those since an entry was free: of
    /// untagged messages, of tagged ones. Each has a table of its own, and room in one
    /// ends no wait for the other.
    posts: [Option<Instant>; 2],
    /// Until when the ring stands still, if it does.
    ring: Option<Instant>,
}

impl Flow {
    /// `timeout` in milliseconds.
    fn new(timeout: u64, fails: bool) -> Self {
        Self { timeout: Duration::from_millis(timeout), fails, posts: [None; 2], ring: None }
    }

    pub(crate) fn from_params(params: &Params) -> Self {
        Self::new(params.number("flow_timeout") as u64, params.text("exhausted") == "fail")
    }

    /// An entry was free for a receive.
    #[inline]
    pub(crate) fn posted(&mut self, tagged: bool) {
        self.posts[usize::from(tagged)] = None;
    }

    /// Whether a receive that is held back may go to the host.
    #[cold]
    pub(crate) fn hold_post(&mut self, tagged: bool) -> Result<(), Errno> {
        let posts = &mut self.posts[usize::from(tagged)];
        let since = *posts.get_or_insert_with(Instant::now);
        if since.elapsed() <= self.timeout {
            return Err(Errno::EAGAIN);
        }
        if !self.fails {
            return Ok(());
        }
        *posts = None;
        tracing::error!(
            "no entry for a posted receive became free in {:?}: more FI_TCAM_PRQ_ENTRIES or \
             FI_TCAM_EXHAUSTED=spill let the program run",
            self.timeout
        );
        Err(Errno::ENOSPC)
    }

    /// A message found neither receive nor entry.
    #[cold]
    pub(crate) fn hold_ring(&mut self) {
        self.ring = Some(Instant::now() + RECOVERY);
    }

    /// Whether the ring may stand still.
    #[inline]
    pub(crate) fn holds_ring(&self) -> bool {
        self.ring.is_some()
    }

    /// Whether it stood still for long enough.
    pub(crate) fn is_ring_due(&self) -> bool {
        self.ring.is_none_or(|until| Instant::now() >= until)
    }

    /// The ring moves on.
    pub(crate) fn release_ring(&mut self) {
        self.ring = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(15);

    #[test]
    fn receives_go_to_the_host_after_a_while_until_an_entry_is_free() {
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
    fn room_for_untagged_receives_is_none_for_tagged_ones() {
        let mut flow = Flow::new(10, false);
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN));
        std::thread::sleep(SHORT);
        flow.posted(false);
        assert_eq!(flow.hold_post(true), Ok(()));
        assert_eq!(flow.hold_post(false), Err(Errno::EAGAIN));
    }

    #[test]
    fn or_they_fail() {
        let mut flow = Flow::new(10, true);
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN));
        std::thread::sleep(SHORT);
        assert_eq!(flow.hold_post(true), Err(Errno::ENOSPC));
        assert_eq!(flow.hold_post(true), Err(Errno::EAGAIN), "and the next waits anew");
    }
}
