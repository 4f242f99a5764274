// SPDX-License-Identifier: BSD-2-Clause
//! `fi_poll(3)`: a set of queues and counters that are polled together.

use std::sync::Arc;

use ffi::{
    Errno, OpContext, Result,
    object::{Bound, Object},
    ops, sys,
};
use parking_lot::Mutex;

use crate::{cntr::Counter, cq::CompletionQueue, domain::Domain, wait::pollable::Readable};

/// A poll set.
#[derive(Debug)]
pub(crate) struct PollSet {
    domain: Arc<Domain>,
    members: Mutex<Vec<(Arc<dyn Readable>, OpContext)>>,
}

impl PollSet {
    pub(crate) fn open(domain: &Arc<Domain>, flags: u64) -> Result<Self> {
        ffi::object::check_flags(flags, 0)?;
        Ok(Self { domain: Arc::clone(domain), members: Mutex::default() })
    }

    fn member(&self, object: &Bound) -> Result<Arc<dyn Readable>> {
        match object.class() {
            sys::FI_CLASS_CQ => Ok(self.domain.own::<CompletionQueue>(object)?),
            sys::FI_CLASS_CNTR => Ok(self.domain.own::<Counter>(object)?),
            _ => Err(Errno::EINVAL),
        }
    }
}

impl Object for PollSet {
    type Raw = sys::fid_poll;
}

impl ops::poll::PollSet for PollSet {
    fn add(&self, object: &Bound, flags: u64) -> Result<()> {
        ffi::object::check_flags(flags, 0)?;
        let member = self.member(object)?;
        let mut members = self.members.lock();
        if members.iter().any(|(other, _)| Arc::ptr_eq(other, &member)) {
            return Err(Errno::EINVAL);
        }
        members.push((member, object.context()));
        Ok(())
    }

    fn remove(&self, object: &Bound, flags: u64) -> Result<()> {
        ffi::object::check_flags(flags, 0)?;
        let member = self.member(object)?;
        let mut members = self.members.lock();
        let before = members.len();
        members.retain(|(other, _)| !Arc::ptr_eq(other, &member));
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
