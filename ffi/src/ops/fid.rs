// SPDX-License-Identifier: BSD-2-Clause
//! The calls of every object: `fi_close`, `fi_bind`, `fi_control` and `fi_open_ops`.

use std::{
    any::TypeId,
    collections::hash_map::Entry,
    ffi::{c_char, c_int, c_void},
    sync::Arc,
};

use crate::{
    control::{Control, RawWork},
    errno::{Errno, Result},
    guard,
    memory::Output,
    object::{Allocation, Bound, LIVE, Object, Raw, find, get},
    ops::{answer, entry_points, profile, table, text},
    sys,
};

/// Allocates an object for C: the structure `raw`, whose fid this function fills in, and the Rust
/// part behind it. Returns its address.
pub(crate) fn create<T: Object>(raw: T::Raw, inner: Arc<T>, context: *mut c_void) -> *mut T::Raw {
    create_as(<T::Raw as Raw>::CLASS, raw, inner, context)
}

/// Does the same as [`create`], with a class that need not be the usual one of the structure.
pub(crate) fn create_as<T: Object>(
    class: u32,
    raw: T::Raw,
    inner: Arc<T>,
    context: *mut c_void,
) -> *mut T::Raw {
    let object = Box::into_raw(Box::new(Allocation { raw, inner }));
    let fid: *mut sys::fid = object.cast();
    // SAFETY: no other thread has the new allocation, and it begins with a fid.
    unsafe {
        (*fid).fclass = class as usize;
        (*fid).context = context;
        (*fid).ops = table!(all_ops::<T>());
    }
    LIVE.lock().insert(fid as usize, TypeId::of::<T>());
    object.cast()
}

const fn all_ops<T: Object>() -> sys::fi_ops {
    sys::fi_ops { close: Some(close::<T>), ..ops::<T>() }
}

/// Number of times that `fi_close` waits for the end of a use before it returns `-FI_EBUSY`.
const USES: usize = 16;

/// `fi_close`. Unlike most entry points, this one checks its fid. It returns `-FI_EINVAL` for a
/// closed object and for one of another type, `-FI_EBUSY` while other objects refer to this one,
/// and otherwise the result of [`Object::close`].
unsafe extern "C" fn close<T: Object>(fid: *mut sys::fid) -> c_int {
    guard::call(|| {
        // SAFETY: `find` checks the pointer against the open objects.
        let inner = unsafe { find::<T>(fid) }?;
        // One reference is in the allocation, one is `inner`.
        let is_in_use = || Arc::strong_count(&inner) > 2;
        // The device thread may use the object again and again, each time for a moment.
        for _ in 0..USES {
            if is_in_use() {
                inner.finish_uses();
            }
        }
        // Another thread that closes the object has the second reference, or has removed it.
        if is_in_use() {
            return Err(Errno::EBUSY);
        }
        let closing = Closing::begin::<T>(fid, &inner)?;
        inner.close()?;
        std::mem::forget(closing);
        // SAFETY: `create` allocated it with this type. It was in the registry, and this thread has
        // removed it, so that no other thread frees it.
        drop(unsafe { Box::from_raw(fid.cast::<Allocation<T>>()) });
        Ok(())
    })
}

/// An object that this thread closes. The registry does not contain it meanwhile, and contains it
/// again if the close fails.
struct Closing {
    fid: usize,
    of: TypeId,
}

impl Closing {
    /// Removes an object from the registry. Returns `EINVAL` if another thread has closed it; the
    /// registry may then have another object at the same address.
    fn begin<T: Object>(fid: *mut sys::fid, inner: &Arc<T>) -> Result<Self> {
        let (mut live, of) = (LIVE.lock(), TypeId::of::<T>());
        let Entry::Occupied(open) = live.entry(fid as usize) else { return Err(Errno::EINVAL) };
        // SAFETY: an open object of this type is at the address, and the registry is locked.
        if *open.get() != of || !Arc::ptr_eq(unsafe { get::<T>(fid.cast()) }?, inner) {
            return Err(Errno::EINVAL);
        }
        open.remove();
        Ok(Self { fid: fid as usize, of })
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        LIVE.lock().insert(self.fid, self.of);
    }
}

entry_points! {
    ops<T: Object> = sys::fi_ops, ends at ops_set;
    object = get(fid: *mut sys::fid);
    unsupported ops_set;
    others close, tostr;

    unsafe fn bind(other: *mut sys::fid, flags: u64) -> c_int {
        object.bind(&Bound::read(other)?, flags)
    }

    unsafe fn control(command: c_int, arg: *mut c_void) -> c_int {
        if command.cast_unsigned() == sys::FI_ALIAS {
            return make_alias(fid, object, argument::<sys::fi_alias>(arg)?);
        }
        object.control(read_control(command, arg)?)
    }

    unsafe fn ops_open(
        name: *const c_char, _flags: u64, to: *mut *mut c_void, context: *mut c_void,
    ) -> c_int {
        answer(to, || {
            if text(name)?.map(str::as_bytes) != Some(profile::NAME.to_bytes()) {
                return Err(Errno::ENOSYS);
            }
            let (raw, profile) = profile::new(object.variables()?);
            Ok(profile::table_of(create(raw, profile, context)))
        })
    }
}

/// Returns the argument of a control command; `EINVAL` if it is null.
///
/// # Safety
/// `arg` is null or valid as a `T` during the call.
unsafe fn argument<'a, T>(arg: *mut c_void) -> Result<&'a mut T> {
    // SAFETY: the caller vouches for the pointer.
    unsafe { arg.cast::<T>().as_mut() }.ok_or(Errno::EINVAL)
}

/// # Safety
/// `arg` is null or has the type that `fi_control(3)` gives for the command.
unsafe fn read_control<'a>(command: c_int, arg: *mut c_void) -> Result<Control<'a>> {
    // SAFETY: the caller vouches for the type; `argument` and `as_mut` check for null.
    unsafe {
        Ok(match command.cast_unsigned() {
            sys::FI_ENABLE => Control::Enable,
            sys::FI_GETOPSFLAG => Control::GetOpsFlag(argument(arg)?),
            sys::FI_SETOPSFLAG => Control::SetOpsFlag(*argument(arg)?),
            sys::FI_GETWAIT => Control::GetWait(argument(arg)?),
            sys::FI_GETWAITOBJ => Control::GetWaitObj(argument(arg)?),
            sys::FI_GET_RAW_MR => {
                let raw = argument::<sys::fi_mr_raw_attr>(arg)?;
                let size = raw.key_size.as_mut().ok_or(Errno::EINVAL)?;
                let key = Output::new(raw.raw_key.cast(), *size);
                Control::GetRawKey(raw.base_addr.as_mut().ok_or(Errno::EINVAL)?, key, size)
            }
            sys::FI_MAP_RAW_MR => {
                let raw = argument::<sys::fi_mr_map_raw>(arg)?;
                if raw.raw_key.is_null() {
                    return Err(Errno::EINVAL);
                }
                let key = std::slice::from_raw_parts(raw.raw_key, raw.key_size);
                Control::MapRawKey(raw.base_addr, key, raw.key.as_mut().ok_or(Errno::EINVAL)?)
            }
            sys::FI_UNMAP_KEY => Control::UnmapKey(*argument(arg)?),
            sys::FI_REFRESH => Control::Refresh,
            sys::FI_QUEUE_WORK => Control::QueueWork(RawWork::new(arg.cast())),
            sys::FI_CANCEL_WORK => Control::CancelWork(RawWork::new(arg.cast())),
            sys::FI_FLUSH_WORK => Control::FlushWork,
            _ => Control::Other(command),
        })
    }
}

/// # Safety
/// `fid` begins the allocation of `object`.
unsafe fn make_alias<T: Object>(
    fid: *mut sys::fid,
    object: &Arc<T>,
    alias: &sys::fi_alias,
) -> Result<()> {
    // SAFETY: the caller vouches for the fid, whose structure is plain data. C passes a place for
    // the alias, or null, which `answer` checks.
    unsafe {
        answer(alias.fid, || {
            let (class, context) = ((*fid).fclass as u32, (*fid).context);
            let raw = fid.cast::<T::Raw>().read();
            Ok(create_as(class, raw, object.alias(alias.flags)?, context).cast())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        thread::{self, JoinHandle},
    };

    use parking_lot::Mutex;

    use super::*;

    fn open<T: Object<Raw = sys::fid_poll>>(object: T) -> usize {
        create(sys::fid_poll::default(), Arc::new(object), std::ptr::null_mut()) as usize
    }

    fn close_at<T: Object>(fid: usize) -> c_int {
        // SAFETY: `close` checks the pointer.
        unsafe { close::<T>(fid as *mut sys::fid) }
    }

    static SECOND: Mutex<Option<JoinHandle<c_int>>> = Mutex::new(None);
    static FID: Mutex<usize> = Mutex::new(0);
    static IS_WAITING: AtomicBool = AtomicBool::new(false);
    static IS_CLOSED: AtomicBool = AtomicBool::new(false);

    /// An object that another thread closes too, in the middle of its close.
    struct ClosedTwice;

    impl Object for ClosedTwice {
        type Raw = sys::fid_poll;

        fn close(&self) -> Result<()> {
            let fid = *FID.lock();
            let second = thread::spawn(move || close_at::<Self>(fid));
            while !second.is_finished() && !IS_WAITING.load(Ordering::Acquire) {
                thread::yield_now();
            }
            *SECOND.lock() = Some(second);
            Ok(())
        }

        fn finish_uses(&self) {
            IS_WAITING.store(true, Ordering::Release);
            while !IS_CLOSED.load(Ordering::Acquire) {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn one_of_two_threads_closes_an_object() {
        let fid = open(ClosedTwice);
        *FID.lock() = fid;
        assert_eq!(close_at::<ClosedTwice>(fid), 0);
        IS_CLOSED.store(true, Ordering::Release);
        let second = SECOND.lock().take().unwrap();
        assert_eq!(second.join().unwrap(), -Errno::EINVAL.get());
    }

    /// An object that fails or panics in its first calls of `close`.
    struct ClosedLate(Mutex<u32>);

    impl Object for ClosedLate {
        type Raw = sys::fid_poll;

        fn close(&self) -> Result<()> {
            let mut calls = self.0.lock();
            *calls += 1;
            match *calls {
                1 => Err(Errno::EAGAIN),
                2 => panic!("a panic that a test makes"),
                _ => Ok(()),
            }
        }
    }

    #[test]
    fn an_object_that_could_not_be_closed_is_open() {
        let fid = open(ClosedLate(Mutex::new(0)));
        let closed = [(); 4].map(|()| -close_at::<ClosedLate>(fid));
        let expected = [Errno::EAGAIN.get(), Errno::EOTHER.get(), 0, Errno::EINVAL.get()];
        assert_eq!(closed, expected);
    }
}
