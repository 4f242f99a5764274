// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cntr(3)`.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::Result,
    guard,
    object::{self, Bindable},
    ops::{WaitObj, fid, table},
    sys,
};

/// `struct fi_cntr_attr`.
#[derive(Clone, Debug, Default)]
pub struct Attr {
    /// `FI_CNTR_EVENTS_COMP`, or bytes from libfabric 2.x on.
    pub events: u32,
    /// How `fi_cntr_wait` waits.
    pub wait_obj: WaitObj,
    /// No flag is defined.
    pub flags: u64,
}

impl Attr {
    pub(crate) fn read(raw: &sys::fi_cntr_attr) -> Self {
        Self { events: raw.events, wait_obj: WaitObj::read(raw.wait_obj), flags: raw.flags }
    }
}

/// A counter.
pub trait Counter: Bindable<Raw = sys::fid_cntr> {
    /// Operations completed, after progress.
    fn read(&self) -> u64;
    /// Operations that failed, after progress.
    fn read_errors(&self) -> u64;
    /// Adds to the count.
    fn add(&self, value: u64);
    /// Sets the count.
    fn set(&self, value: u64);
    /// Adds to the error count.
    fn add_errors(&self, value: u64);
    /// Sets the error count.
    fn set_errors(&self, value: u64);
    /// Waits for the count to reach a threshold (milliseconds, negative: for ever).
    ///
    /// # Errors
    /// `ETIMEDOUT`, or `EAVAIL` if the error count changed.
    fn wait(&self, threshold: u64, timeout: c_int) -> Result<()>;
}

struct Tables<C>(std::marker::PhantomData<C>);

impl<C: Counter> Tables<C> {
    const OPS: sys::fi_ops_cntr = {
        let mut ops = NULL;
        ops.size = std::mem::offset_of!(sys::fi_ops_cntr, seterr) + size_of::<usize>();
        ops.read = Some(read::<C>);
        ops.readerr = Some(readerr::<C>);
        ops.add = Some(add::<C>);
        ops.set = Some(set::<C>);
        ops.wait = Some(wait::<C>);
        ops.adderr = Some(adderr::<C>);
        ops.seterr = Some(seterr::<C>);
        ops
    };
}

// SAFETY: a table of `Option<fn>` and a size may be all zero.
const NULL: sys::fi_ops_cntr = unsafe { std::mem::zeroed() };

pub(crate) fn create<C: Counter>(cntr: Arc<C>, context: *mut c_void) -> *mut sys::fid_cntr {
    fid::create(
        sys::fid_cntr { ops: table!(Tables::<C>::OPS), ..Default::default() },
        cntr,
        context,
    )
}

macro_rules! reads {
    ($($entry:ident = $method:ident),*) => {$(
        unsafe extern "C" fn $entry<C: Counter>(cntr: *mut sys::fid_cntr) -> u64 {
            // SAFETY: reached through the counter's table.
            guard::call_or(0, || Ok(unsafe { object::get::<_, C>(cntr) }?.$method()))
        }
    )*};
}

macro_rules! changes {
    ($($entry:ident = $method:ident),*) => {$(
        unsafe extern "C" fn $entry<C: Counter>(cntr: *mut sys::fid_cntr, value: u64) -> c_int {
            guard::call(|| {
                // SAFETY: reached through the counter's table.
                unsafe { object::get::<_, C>(cntr) }?.$method(value);
                Ok(0)
            })
        }
    )*};
}

reads!(read = read, readerr = read_errors);
changes!(add = add, set = set, adderr = add_errors, seterr = set_errors);

unsafe extern "C" fn wait<C: Counter>(
    cntr: *mut sys::fid_cntr,
    threshold: u64,
    timeout: c_int,
) -> c_int {
    // SAFETY: reached through the counter's table.
    guard::call(|| unsafe { object::get::<_, C>(cntr) }?.wait(threshold, timeout).map(|()| 0))
}
