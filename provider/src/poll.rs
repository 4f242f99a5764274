// SPDX-License-Identifier: BSD-2-Clause
//! `fi_poll(3)`: a set of queues and counters that are polled together.

use std::sync::Arc;

use ffi::{
    Errno, OpContext, Result,
    object::{Bound, Object},
    ops, sys,
};
use parking_lot::Mutex;

use crate::{cntr::Counter, cq::CompletionQueue, domain::Domain};

/// A poll set.
#[derive(Debug)]
pub(crate) struct PollSet {
    domain: Arc<Domain>,
    members: Mutex<Vec<(Member, OpContext)>>,
}

#[derive(Debug)]
enum Member {
    Queue(Arc<CompletionQueue>),
    Counter(Arc<Counter>),
}

impl Member {
    fn of(domain: &Arc<Domain>, object: &Bound) -> Result<Self> {
        match object.class() {
            sys::FI_CLASS_CQ => domain.own(object).map(Self::Queue),
            sys::FI_CLASS_CNTR => domain.own(object).map(Self::Counter),
            _ => Err(Errno::EINVAL),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Queue(one), Self::Queue(other)) => Arc::ptr_eq(one, other),
            (Self::Counter(one), Self::Counter(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Makes progress. Returns whether there is something to read.
    fn has_something(&self) -> bool {
        match self {
            Self::Queue(queue) => queue.has_something(),
            Self::Counter(counter) => counter.has_something(),
        }
    }
}

impl PollSet {
    pub(crate) fn open(domain: &Arc<Domain>, flags: u64) -> Result<Self> {
        ffi::object::check_flags(flags, 0)?;
        Ok(Self { domain: Arc::clone(domain), members: Mutex::default() })
    }
}

impl Object for PollSet {
    type Raw = sys::fid_poll;
}

impl ops::poll::PollSet for PollSet {
    fn add(&self, object: &Bound, flags: u64) -> Result<()> {
        ffi::object::check_flags(flags, 0)?;
        let member = Member::of(&self.domain, object)?;
        let mut members = self.members.lock();
        if members.iter().any(|(other, _)| other.is(&member)) {
            return Err(Errno::EINVAL);
        }
        members.push((member, object.context()));
        Ok(())
    }

    fn remove(&self, object: &Bound, flags: u64) -> Result<()> {
        ffi::object::check_flags(flags, 0)?;
        let member = Member::of(&self.domain, object)?;
        let mut members = self.members.lock();
        let before = members.len();
        members.retain(|(other, _)| !other.is(&member));
        if members.len() < before { Ok(()) } else { Err(Errno::EINVAL) }
    }

    fn poll(&self, most: usize) -> Vec<OpContext> {
        let members = self.members.lock();
        // All members make progress, even if more than `most` of them have something to read.
        let found = members.iter().filter(|(member, _)| member.has_something());
        let mut found: Vec<_> = found.map(|&(_, context)| context).collect();
        found.truncate(most);
        found
    }
}
