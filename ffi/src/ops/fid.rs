// SPDX-License-Identifier: BSD-2-Clause
//! What every object has: `fi_close`, `fi_bind`, `fi_control` and `fi_open_ops`.

use std::{
    any::TypeId,
    ffi::{c_char, c_int, c_void},
    ptr,
    sync::Arc,
};

use crate::{
    control::{Control, RawWork},
    errno::{Errno, Result},
    guard,
    memory::Output,
    object::{Allocation, Bound, LIVE, Object, Raw, find, get},
    ops::{answer, enosys, profile, text},
    sys,
};

/// Ops of a `fid` for objects `Allocation<R, T>`.
struct FidOps<R, T>(std::marker::PhantomData<(R, T)>);

impl<R: Raw, T: Object> FidOps<R, T> {
    const OPS: sys::fi_ops = sys::fi_ops {
        size: size_of::<sys::fi_ops>(),
        close: Some(close::<R, T>),
        bind: Some(bind::<R, T>),
        control: Some(control::<R, T>),
        ops_open: Some(ops_open::<R, T>),
        tostr: None,
        ops_set: enosys!(fn(*mut sys::fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int),
    };
}

/// Gives C an object: `raw` with its fid filled in, and the Rust part behind it.
pub(crate) fn create<R: Raw, T: Object>(
    raw: R,
    inner: Arc<T>,
    context: *mut libc::c_void,
) -> *mut R {
    create_as(R::CLASS, raw, inner, context)
}

/// The same for an object of another class than its structure usually has.
pub(crate) fn create_as<R: Raw, T: Object>(
    class: u32,
    raw: R,
    inner: Arc<T>,
    context: *mut libc::c_void,
) -> *mut R {
    let object = Box::into_raw(Box::new(Allocation { raw, inner }));
    let fid: *mut sys::fid = object.cast();
    // SAFETY: the allocation is ours and not yet shared; it begins with a fid.
    unsafe {
        (*fid).fclass = class as usize;
        (*fid).context = context;
        (*fid).ops = ptr::from_ref(const { &FidOps::<R, T>::OPS }).cast_mut();
    }
    LIVE.lock().insert(fid as usize, TypeId::of::<T>());
    object.cast()
}

unsafe extern "C" fn close<R: Raw, T: Object>(fid: *mut sys::fid) -> c_int {
    guard::call(|| {
        // SAFETY: `find` checks the pointer against the live objects.
        let inner = unsafe { find::<R, T>(fid) }?;
        // One reference is the object's own, one is `inner`.
        if Arc::strong_count(&inner) > 2 {
            return Err(Errno::EBUSY);
        }
        inner.close()?;
        LIVE.lock().remove(&(fid as usize));
        // SAFETY: created by `create` as this type, and only now unlisted.
        drop(unsafe { Box::from_raw(fid.cast::<Allocation<R, T>>()) });
        Ok(0)
    })
}

unsafe extern "C" fn bind<R: Raw, T: Object>(
    fid: *mut sys::fid,
    other: *mut sys::fid,
    bind_flags: u64,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the object's own table.
        let inner = unsafe { get::<R, T>(fid.cast()) }?;
        // SAFETY: C passes a fid.
        let other = unsafe { Bound::read(other) }?;
        inner.bind(&other, bind_flags).map(|()| 0)
    })
}

unsafe extern "C" fn control<R: Raw, T: Object>(
    fid: *mut sys::fid,
    command: c_int,
    arg: *mut libc::c_void,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the object's own table.
        let inner = unsafe { get::<R, T>(fid.cast()) }?;
        if command.cast_unsigned() == sys::FI_ALIAS {
            // SAFETY: fi_control(3): the argument is a `struct fi_alias`.
            return unsafe { make_alias::<R, T>(fid, inner, arg.cast::<sys::fi_alias>().as_ref()) };
        }
        // SAFETY: fi_control(3) gives the type of the argument of each command;
        // `as_mut` refuses null.
        let control = unsafe {
            match command.cast_unsigned() {
                sys::FI_ENABLE => Control::Enable,
                sys::FI_GETOPSFLAG => {
                    Control::GetOpsFlag(arg.cast::<u64>().as_mut().ok_or(Errno::EINVAL)?)
                }
                sys::FI_SETOPSFLAG => {
                    Control::SetOpsFlag(*arg.cast::<u64>().as_ref().ok_or(Errno::EINVAL)?)
                }
                sys::FI_GETWAIT => {
                    Control::GetWait(arg.cast::<c_int>().as_mut().ok_or(Errno::EINVAL)?)
                }
                sys::FI_GETWAITOBJ => {
                    Control::GetWaitObj(arg.cast::<u32>().as_mut().ok_or(Errno::EINVAL)?)
                }
                sys::FI_GET_RAW_MR => {
                    let raw = arg.cast::<sys::fi_mr_raw_attr>().as_mut().ok_or(Errno::EINVAL)?;
                    let size = raw.key_size.as_mut().ok_or(Errno::EINVAL)?;
                    Control::GetRawKey(
                        raw.base_addr.as_mut().ok_or(Errno::EINVAL)?,
                        Output::new(raw.raw_key.cast(), *size),
                        size,
                    )
                }
                sys::FI_MAP_RAW_MR => {
                    let raw = arg.cast::<sys::fi_mr_map_raw>().as_mut().ok_or(Errno::EINVAL)?;
                    if raw.raw_key.is_null() {
                        return Err(Errno::EINVAL);
                    }
                    Control::MapRawKey(
                        raw.base_addr,
                        std::slice::from_raw_parts(raw.raw_key, raw.key_size),
                        raw.key.as_mut().ok_or(Errno::EINVAL)?,
                    )
                }
                sys::FI_UNMAP_KEY => {
                    Control::UnmapKey(*arg.cast::<u64>().as_ref().ok_or(Errno::EINVAL)?)
                }
                sys::FI_REFRESH => Control::Refresh,
                sys::FI_QUEUE_WORK => Control::QueueWork(RawWork::new(arg.cast())),
                sys::FI_CANCEL_WORK => Control::CancelWork(RawWork::new(arg.cast())),
                sys::FI_FLUSH_WORK => Control::FlushWork,
                _ => Control::Other(command),
            }
        };
        inner.control(control).map(|()| 0)
    })
}

unsafe extern "C" fn ops_open<R: Raw, T: Object>(
    fid: *mut sys::fid,
    name: *const c_char,
    _flags: u64,
    to: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    guard::call(|| {
        // SAFETY: reached through the object's own table; the name is a C string.
        unsafe {
            let inner = get::<R, T>(fid.cast())?;
            if to.is_null() {
                return Err(Errno::EINVAL);
            }
            if text(name)?.map(str::as_bytes) != Some(profile::NAME.to_bytes()) {
                return Err(Errno::ENOSYS);
            }
            let (raw, profile) = profile::make(inner.variables()?);
            answer(to, profile::table_of(create(raw, profile, context)))
        }
    })
}

/// # Safety
/// `fid` begins the allocation of `inner`, and `alias` says where C wants the answer.
unsafe fn make_alias<R: Raw, T: Object>(
    fid: *mut sys::fid,
    inner: &Arc<T>,
    alias: Option<&sys::fi_alias>,
) -> Result<usize> {
    let alias = alias.filter(|alias| !alias.fid.is_null()).ok_or(Errno::EINVAL)?;
    let other = inner.alias(alias.flags)?;
    // SAFETY: the caller vouches for both pointers; a raw structure is plain data.
    unsafe {
        let made = create_as((*fid).fclass as u32, fid.cast::<R>().read(), other, (*fid).context);
        alias.fid.write(made.cast());
    }
    Ok(0)
}
