// SPDX-License-Identifier: BSD-2-Clause
//! Decides when an endpoint shows its counters to `tcam show --live`, and when it updates the draft of
//! its report. A draft is a file that remains if the process crashes (`host::draft`).

use std::{net::SocketAddrV4, time::Instant};

use host::live::Live;
use nic::{
    device::Device,
    params::Params,
    report::{Report, WrittenAt},
};

use super::peer_checks::MOST_POLLS;
use crate::{
    device::carried::{Kept, RecvOp},
    job,
    record::report::{self, OpenReport},
};

/// Maximum number of polls that find something, and of posts, until the count begins again. If it
/// ends with a poll, the clock is read. If there is a draft of a report, the counters are shown
/// each time.
const LOOK: u32 = 128;
/// Maximum number of probes between two reads of the clock, if there are no posts.
const PROBES: u32 = 64;
/// Without a draft, the counters are shown at the end of one of this many counts. To show them
/// takes about 0.1 us.
const SHOW: u32 = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct Publisher {
    rank: Option<u32>,
    /// See [`host::names::job_of`].
    job: u64,
    opened: Instant,
    /// Polls that find something, and posts, until the count ends.
    until_look: u32,
    /// Number of counts that have ended.
    looks: u32,
    /// The draft of the report, if a report is requested.
    draft: Option<Box<OpenReport>>,
    /// Whether [`Self::begin`] was called: report and trace have begun, if they are requested. A
    /// context of a scalable endpoint begins them when it is opened.
    is_recorded: bool,
}

impl Publisher {
    pub(super) fn new(params: &Params, opened: Instant) -> Self {
        Self {
            rank: job::rank(),
            job: host::names::job_of(&params.report),
            opened,
            until_look: 0,
            looks: 0,
            draft: None,
            is_recorded: false,
        }
    }

    /// Begins the draft of the report, if a report is requested.
    pub(super) fn begin(&mut self, params: &Params, address: String) {
        self.draft = report::begin(params, address, self.opened);
        self.is_recorded = true;
    }

    /// Creates the final report of the endpoint, without counts. Returns `None` if neither a report
    /// nor a summary is requested, or if [`Self::begin`] was not called.
    pub(super) fn end(
        &self,
        params: &Params,
        address: SocketAddrV4,
        written_at: WrittenAt,
    ) -> Option<Report> {
        let is_wanted = report::is_wanted(params) && self.is_recorded;
        is_wanted.then(|| report::make(params, address.to_string(), self.opened, written_at))
    }

    /// Prints the summary and writes the report, as far as requested; see [`report::finish`].
    pub(super) fn finish(&mut self, params: &Params, report: &mut Report) {
        let draft = self.draft.take().map(|growing| growing.into_draft());
        report::finish(params, report, draft);
    }

    /// Returns whether report and trace have begun.
    pub(super) fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Counts a poll that found something, or a post. Returns whether the count has ended. After a
    /// poll, the clock is then read.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        self.is_due_after(1)
    }

    /// Counts a probe. Returns whether the clock is to be read.
    #[inline]
    pub(super) fn is_due_after_probe(&mut self) -> bool {
        self.is_due_after(LOOK / PROBES)
    }

    #[inline]
    fn is_due_after(&mut self, count: u32) -> bool {
        match self.until_look.checked_sub(count) {
            Some(less) => {
                self.until_look = less;
                false
            }
            None => true,
        }
    }

    /// Begins the count again. Returns whether the counters are to be shown this time.
    pub(super) fn shows_in_turn(&mut self) -> bool {
        // A program may repeat the same sequence of posts and polls. If the number never changed,
        // the count could always end at a post, after which the clock is not read.
        self.until_look = LOOK - self.looks % 2;
        let shows = self.draft.is_some() || self.looks.is_multiple_of(SHOW);
        self.looks = self.looks.wrapping_add(1);
        shows
    }

    /// Sets the number of polls until the next read of the clock: [`LOOK`], or proportionally fewer
    /// if `look_every`, the number of empty polls between two reads, is below its maximum
    /// [`MOST_POLLS`].
    pub(super) fn pace(&mut self, look_every: u32) {
        self.until_look = LOOK.min(LOOK / MOST_POLLS * look_every);
    }

    /// The counters to show.
    pub(super) fn live(&self, device: &Device<RecvOp, Kept>) -> Live {
        Live {
            rank: self.rank,
            job: self.job,
            ns: self.opened.elapsed().as_nanos() as u64,
            tagged: device.tagged.live(),
            msg: device.msg.live(),
        }
    }

    /// Returns whether the draft is to be written; false without a draft.
    pub(super) fn is_draft_due(&self, now: Instant) -> bool {
        self.draft.as_ref().is_some_and(|draft| draft.is_due(now))
    }

    /// Takes the draft, to write it.
    pub(super) fn take_draft(&mut self) -> Option<Box<OpenReport>> {
        self.draft.take()
    }

    pub(super) fn put_back(&mut self, draft: Box<OpenReport>) {
        self.draft = Some(draft);
    }
}
