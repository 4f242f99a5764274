// SPDX-License-Identifier: BSD-2-Clause
//! `fi_profile(3)` of libfabric 2.x: programs read the variables of an object, such as its
//! counters. `fi_open_ops` opens a profile object for them. The headers of 1.17 do not declare it,
//! so its structures are declared here.

use std::{
    borrow::Borrow,
    ffi::{CStr, c_char, c_int, c_void},
    mem, ptr,
    sync::Arc,
};

use parking_lot::Mutex;

pub use crate::object::{Variable, Variables};
use crate::{
    errno::Errno,
    object::{Object, Raw},
    ops::{entry_points, operation_table, table},
    sys,
};

/// Name that `fi_profile_open` asks for.
pub(crate) const NAME: &CStr = c"fi_profile_ops";

/// The object that `fi_profile_open` opens.
#[derive(Debug)]
pub(crate) struct OpenProfile {
    of: Arc<dyn Variables>,
    /// The values that are read between `fi_profile_start_reads` and `fi_profile_end_reads`.
    snapshot: Mutex<Option<Vec<u64>>>,
}

impl Object for OpenProfile {
    type Raw = FidProfile;
}

/// `struct fi_profile_desc`.
#[repr(C)]
struct Desc {
    id: u32,
    /// `fi_primitive_type`.
    datatype_sel: u32,
    datatype: u32,
    flags: u64,
    size: usize,
    name: *const c_char,
    desc: *const c_char,
}

operation_table! {
    /// `struct fi_profile_ops`.
    ProfileOps of FidProfile:
    reset(u64) -> ();
    query_vars(*mut Desc, *mut usize) -> isize;
    query_events(*mut Desc, *mut usize) -> isize;
    read_var(u32, *mut c_void, *mut usize) -> isize;
    reg_callback(u32, *mut c_void, *mut c_void) -> c_int;
    start_reads(u64) -> ();
    end_reads(u64) -> ();
}

/// `struct fid_profile`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FidProfile {
    fid: sys::fid,
    ops: *mut ProfileOps,
}

impl Default for FidProfile {
    fn default() -> Self {
        Self { fid: sys::fid::default(), ops: ptr::null_mut() }
    }
}

// SAFETY: the fid comes first, and the structure is that of fi_profile(3). No class is
// defined for it.
unsafe impl Raw for FidProfile {
    const CLASS: u32 = sys::FI_CLASS_UNSPEC;
}

/// Returns a profile object for [`fid::create`](crate::ops::fid::create).
pub(crate) fn new(of: Arc<dyn Variables>) -> (FidProfile, Arc<OpenProfile>) {
    let raw = FidProfile { ops: table!(ops::<OpenProfile>()), ..Default::default() };
    (raw, Arc::new(OpenProfile { of, snapshot: Mutex::default() }))
}

/// Returns the value that `fi_open_ops` returns: the address of the pointer to the table, from
/// which `fi_profile_open` finds the object.
///
/// # Safety
/// `profile` points to an open profile object.
pub(crate) unsafe fn table_of(profile: *mut FidProfile) -> *mut c_void {
    // SAFETY: the caller vouches for the pointer.
    unsafe { (&raw mut (*profile).ops).cast() }
}

/// Only [`OpenProfile`] implements this trait. It exists because [`entry_points`] needs a generic
/// type.
pub(crate) trait ProfileObject: Object<Raw = FidProfile> + Borrow<OpenProfile> {}
impl ProfileObject for OpenProfile {}

entry_points! {
    ops<P: ProfileObject> = ProfileOps, ends at end_reads;
    profile = get(fid: *mut FidProfile);

    unsafe fn reset(_flags: u64) -> () {
        Ok(())
    }

    unsafe fn query_vars(to: *mut Desc, count: *mut usize) -> isize {
        let list = (**profile).borrow().of.list();
        let count = count.as_mut().ok_or(Errno::EINVAL)?;
        let room = mem::replace(count, list.len());
        if to.is_null() {
            return Ok(0_usize);
        }
        for (index, variable) in list.iter().take(room).enumerate() {
            to.add(index).write(Desc {
                id: variable.id,
                datatype_sel: 0,
                datatype: sys::FI_UINT64,
                flags: 0,
                size: size_of::<u64>(),
                name: variable.name.as_ptr(),
                desc: variable.help.as_ptr(),
            });
        }
        Ok(list.len().min(room))
    }

    /// No variable reports events.
    unsafe fn query_events(_to: *mut Desc, count: *mut usize) -> isize {
        *count.as_mut().ok_or(Errno::EINVAL)? = 0;
        Ok(())
    }

    unsafe fn read_var(id: u32, to: *mut c_void, size: *mut usize) -> isize {
        let profile: &OpenProfile = (**profile).borrow();
        let index = profile.of.list().iter().position(|variable| variable.id == id);
        let index = index.ok_or(Errno::EINVAL)?;
        let snapshot = profile.snapshot.lock().clone();
        let values = snapshot.map_or_else(|| profile.of.values(), Ok)?;
        let value = *values.get(index).ok_or(Errno::EINVAL)?;
        let size = size.as_mut().ok_or(Errno::EINVAL)?;
        if to.is_null() || mem::replace(size, size_of::<u64>()) < size_of::<u64>() {
            return Err(Errno::ETOOSMALL);
        }
        to.cast::<u64>().write_unaligned(value);
        Ok(size_of::<u64>())
    }

    unsafe fn reg_callback(_id: u32, _callback: *mut c_void, _context: *mut c_void) -> c_int {
        Err::<(), _>(Errno::EINVAL)
    }

    unsafe fn start_reads(_flags: u64) -> () {
        let profile: &OpenProfile = (**profile).borrow();
        *profile.snapshot.lock() = Some(profile.of.values()?);
        Ok(())
    }

    unsafe fn end_reads(_flags: u64) -> () {
        (**profile).borrow().snapshot.lock().take();
        Ok(())
    }
}
