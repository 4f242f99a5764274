// SPDX-License-Identifier: BSD-2-Clause
//! `fi_poll(3)`: poll sets.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    memory::OpContext,
    object::{Bound, Object},
    ops::{entry_points, fid, table},
    sys,
};

/// A set of queues and counters that one call polls.
pub trait PollSet: Object<Raw = sys::fid_poll> {
    /// `fi_poll_add`.
    ///
    /// # Errors
    /// `EINVAL` if the object is not a queue or a counter, or is in the set already.
    fn add(&self, object: &Bound, flags: u64) -> Result<()>;

    /// `fi_poll_del`.
    ///
    /// # Errors
    /// `EINVAL` if the object is not in the set.
    fn remove(&self, object: &Bound, flags: u64) -> Result<()>;

    /// Makes progress. Returns the contexts of up to `most` objects that have events.
    fn poll(&self, most: usize) -> Vec<OpContext>;
}

entry_points! {
    ops<P: PollSet> = sys::fi_ops_poll, ends at poll_del;
    set = get(fid: *mut sys::fid_poll);

    unsafe fn poll(contexts: *mut *mut c_void, count: c_int) -> c_int {
        let room = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        if contexts.is_null() && room > 0 {
            return Err(Errno::EINVAL);
        }
        let found = set.poll(room);
        for (index, context) in found.iter().take(room).enumerate() {
            contexts.add(index).write(context.0 as *mut c_void);
        }
        Ok(found.len())
    }

    unsafe fn poll_add(object: *mut sys::fid, flags: u64) -> c_int {
        set.add(&Bound::read(object)?, flags)
    }

    unsafe fn poll_del(object: *mut sys::fid, flags: u64) -> c_int {
        set.remove(&Bound::read(object)?, flags)
    }
}

pub(crate) fn create<P: PollSet>(set: Arc<P>) -> *mut sys::fid_poll {
    let raw = sys::fid_poll { ops: table!(ops::<P>()), ..Default::default() };
    fid::create(raw, set, std::ptr::null_mut())
}
