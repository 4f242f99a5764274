// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cntr(3)`: counters.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::Result,
    object::Object,
    ops::{WaitObj, entry_points, fid, table},
    sys,
};

/// `struct fi_cntr_attr`.
#[derive(Clone, Debug, Default)]
pub struct CntrAttr {
    /// `FI_CNTR_EVENTS_COMP` to count completions, or the value of libfabric 2.x to count bytes.
    pub events: u32,
    /// How `fi_cntr_wait` waits.
    pub wait_obj: WaitObj,
    /// Flags; libfabric defines none.
    pub flags: u64,
}

impl CntrAttr {
    pub(crate) fn read(raw: &sys::fi_cntr_attr) -> Self {
        Self { events: raw.events, wait_obj: WaitObj::read(raw.wait_obj), flags: raw.flags }
    }
}

/// A counter.
pub trait Counter: Object<Raw = sys::fid_cntr> {
    /// Makes progress. Returns the number of completed operations.
    fn read(&self) -> u64;
    /// Makes progress. Returns the number of failed operations.
    fn read_errors(&self) -> u64;
    /// Adds to the count.
    fn add(&self, value: u64);
    /// Sets the count.
    fn set(&self, value: u64);
    /// Adds to the error count.
    fn add_errors(&self, value: u64);
    /// Sets the error count.
    fn set_errors(&self, value: u64);
    /// Waits until the count reaches a threshold, for up to `timeout` (milliseconds, negative: no
    /// limit).
    ///
    /// # Errors
    /// `ETIMEDOUT` after the timeout, `EAVAIL` if the error count changes during the wait.
    fn wait(&self, threshold: u64, timeout: c_int) -> Result<()>;
}

entry_points! {
    ops<C: Counter> = sys::fi_ops_cntr, ends at seterr;
    cntr = get(fid: *mut sys::fid_cntr);

    unsafe fn read() -> u64 { Ok(cntr.read()) }
    unsafe fn readerr() -> u64 { Ok(cntr.read_errors()) }
    unsafe fn add(value: u64) -> c_int { cntr.add(value); Ok(()) }
    unsafe fn set(value: u64) -> c_int { cntr.set(value); Ok(()) }
    unsafe fn adderr(value: u64) -> c_int { cntr.add_errors(value); Ok(()) }
    unsafe fn seterr(value: u64) -> c_int { cntr.set_errors(value); Ok(()) }
    unsafe fn wait(threshold: u64, timeout: c_int) -> c_int { cntr.wait(threshold, timeout) }
}

pub(crate) fn create<C: Counter>(cntr: Arc<C>, context: *mut c_void) -> *mut sys::fid_cntr {
    let raw = sys::fid_cntr { ops: table!(ops::<C>()), ..Default::default() };
    fid::create(raw, cntr, context)
}
