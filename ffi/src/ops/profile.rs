// SPDX-License-Identifier: BSD-2-Clause
//! `fi_profile(3)` of libfabric 2.x: variables of an object, by `fi_open_ops`. The
//! headers of 1.17 have none of it.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr, slice,
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{
    errno::{Errno, Result},
    guard,
    object::{self, Object, Raw},
    ops::table,
    sys,
};

pub use crate::object::{Variable, Variables};

/// Name that `fi_profile_open` asks for.
pub(crate) const NAME: &CStr = c"fi_profile_ops";

/// What `fi_profile_open` makes.
#[derive(Debug)]
pub(crate) struct Profile {
    of: Arc<dyn Variables>,
    /// The values between `fi_profile_start_reads` and `fi_profile_end_reads`.
    snapshot: Mutex<Option<Vec<u64>>>,
}

impl Object for Profile {}

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

type Query = unsafe extern "C" fn(*mut FidProfile, *mut Desc, *mut usize) -> isize;
type Control = unsafe extern "C" fn(*mut FidProfile, u64);
type Callback =
    unsafe extern "C" fn(*mut FidProfile, *mut Desc, *mut c_void, usize, *mut c_void) -> c_int;

/// `struct fi_profile_ops`.
#[repr(C)]
struct Ops {
    size: usize,
    reset: Control,
    query_vars: Query,
    query_events: Query,
    read_var: unsafe extern "C" fn(*mut FidProfile, u32, *mut c_void, *mut usize) -> isize,
    reg_callback:
        unsafe extern "C" fn(*mut FidProfile, u32, Option<Callback>, *mut c_void) -> c_int,
    start_reads: Control,
    end_reads: Control,
}

/// `struct fid_profile`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FidProfile {
    fid: sys::fid,
    ops: *mut Ops,
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

static OPS: Ops = Ops {
    size: size_of::<Ops>(),
    reset,
    query_vars,
    query_events,
    read_var,
    reg_callback,
    start_reads,
    end_reads,
};

/// A profile object.
pub(crate) fn make(of: Arc<dyn Variables>) -> (FidProfile, Arc<Profile>) {
    let raw = FidProfile { ops: table!(OPS), ..Default::default() };
    (raw, Arc::new(Profile { of, snapshot: Mutex::default() }))
}

/// What `fi_open_ops` answers: the address of its table's pointer, from which `fi_profile_open`
/// finds the object.
///
/// # Safety
/// `made` was just allocated.
pub(crate) unsafe fn table_of(made: *mut FidProfile) -> *mut c_void {
    // SAFETY: the caller vouches for the pointer.
    unsafe { (&raw mut (*made).ops).cast() }
}

/// # Safety
/// `profile` is the pointer C called the profile's table with.
unsafe fn on<'a>(profile: *mut FidProfile) -> Result<&'a Arc<Profile>> {
    // SAFETY: the caller vouches for the pointer.
    unsafe { object::get::<FidProfile, Profile>(profile) }
}

unsafe extern "C" fn reset(_: *mut FidProfile, _: u64) {}

unsafe extern "C" fn query_vars(
    profile: *mut FidProfile,
    to: *mut Desc,
    count: *mut usize,
) -> isize {
    guard::call(|| {
        // SAFETY: reached through the profile's table; `to` is null or has room for
        // `*count` entries.
        unsafe {
            let list = on(profile)?.of.list();
            let count = count.as_mut().ok_or(Errno::EINVAL)?;
            let room = std::mem::replace(count, list.len());
            if to.is_null() {
                return Ok(0);
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
    })
}

/// Nothing is told by itself.
unsafe extern "C" fn query_events(_: *mut FidProfile, _: *mut Desc, count: *mut usize) -> isize {
    // SAFETY: C wants the count there.
    unsafe { count.as_mut() }.map_or(-(libc::EINVAL as isize), |count| {
        *count = 0;
        0
    })
}

unsafe extern "C" fn reg_callback(
    _: *mut FidProfile,
    _: u32,
    _: Option<Callback>,
    _: *mut c_void,
) -> c_int {
    -libc::EINVAL
}

unsafe extern "C" fn read_var(
    profile: *mut FidProfile,
    id: u32,
    to: *mut c_void,
    size: *mut usize,
) -> isize {
    guard::call(|| {
        // SAFETY: reached through the profile's table.
        let profile = unsafe { on(profile) }?;
        let index = profile.of.list().iter().position(|variable| variable.id == id);
        let index = index.ok_or(Errno::EINVAL)?;
        let snapshot = profile.snapshot.lock().clone();
        let values = snapshot.map_or_else(|| profile.of.values(), Ok)?;
        let value = values.get(index).ok_or(Errno::EINVAL)?.to_ne_bytes();
        // SAFETY: `to` has room for `*size` bytes.
        unsafe {
            let size = size.as_mut().ok_or(Errno::EINVAL)?;
            if to.is_null() || std::mem::replace(size, value.len()) < value.len() {
                return Err(Errno::ETOOSMALL);
            }
            slice::from_raw_parts_mut(to.cast::<u8>(), value.len()).copy_from_slice(&value);
        }
        Ok(value.len())
    })
}

unsafe extern "C" fn start_reads(profile: *mut FidProfile, _: u64) {
    guard::call_or((), || {
        // SAFETY: reached through the profile's table.
        let profile = unsafe { on(profile) }?;
        *profile.snapshot.lock() = Some(profile.of.values()?);
        Ok(())
    });
}

unsafe extern "C" fn end_reads(profile: *mut FidProfile, _: u64) {
    guard::call_or((), || {
        // SAFETY: reached through the profile's table.
        unsafe { on(profile) }?.snapshot.lock().take();
        Ok(())
    });
}
