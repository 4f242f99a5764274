// SPDX-License-Identifier: BSD-2-Clause
//! `fi_poll(3)`.

use std::{
    ffi::{c_int, c_void},
    slice,
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    guard,
    memory::Context,
    object::{self, Bindable, Bound},
    ops::{fid, table},
    sys,
};

/// A set of queues and counters that are looked at together.
pub trait PollSet: Bindable<Raw = sys::fid_poll> {
    /// `fi_poll_add`.
    ///
    /// # Errors
    /// `EINVAL` for what is no queue or counter.
    fn add(&self, object: &Bound, flags: u64) -> Result<()>;

    /// `fi_poll_del`.
    ///
    /// # Errors
    /// `EINVAL` for what is not in the set.
    fn remove(&self, object: &Bound, flags: u64) -> Result<()>;

    /// Makes progress and answers the contexts of those that have something, at most
    /// so many.
    fn poll(&self, most: usize) -> Vec<Context>;
}

struct Tables<P>(std::marker::PhantomData<P>);

impl<P: PollSet> Tables<P> {
    const OPS: sys::fi_ops_poll = sys::fi_ops_poll {
        size: size_of::<sys::fi_ops_poll>(),
        poll: Some(poll::<P>),
        poll_add: Some(add::<P>),
        poll_del: Some(remove::<P>),
    };
}

pub(crate) fn create<P: PollSet>(set: Arc<P>) -> *mut sys::fid_poll {
    let raw = sys::fid_poll { ops: table!(Tables::<P>::OPS), ..Default::default() };
    fid::create(raw, set, std::ptr::null_mut())
}

unsafe extern "C" fn poll<P: PollSet>(
    set: *mut sys::fid_poll,
    contexts: *mut *mut c_void,
    count: c_int,
) -> c_int {
    guard::call(|| {
        let room = usize::try_from(count).map_err(|_| Errno::EINVAL)?;
        if contexts.is_null() && room > 0 {
            return Err(Errno::EINVAL);
        }
        // SAFETY: reached through the set's table; C gives room of `count` contexts.
        let found = unsafe { object::get::<_, P>(set) }?.poll(room);
        if room > 0 {
            // SAFETY: as above.
            let to = unsafe { slice::from_raw_parts_mut(contexts, room) };
            for (to, context) in to.iter_mut().zip(&found) {
                *to = context.0 as *mut c_void;
            }
        }
        Ok(found.len())
    })
}

unsafe extern "C" fn add<P: PollSet>(
    set: *mut sys::fid_poll,
    fid: *mut sys::fid,
    flags: u64,
) -> c_int {
    // SAFETY: reached through the set's table; C passes a fid.
    guard::call(|| unsafe { object::get::<_, P>(set)?.add(&Bound::read(fid)?, flags).map(|()| 0) })
}

unsafe extern "C" fn remove<P: PollSet>(
    set: *mut sys::fid_poll,
    fid: *mut sys::fid,
    flags: u64,
) -> c_int {
    // SAFETY: reached through the set's table; C passes a fid.
    guard::call(|| unsafe {
        object::get::<_, P>(set)?.remove(&Bound::read(fid)?, flags).map(|()| 0)
    })
}
