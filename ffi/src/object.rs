// SPDX-License-Identifier: BSD-2-Clause
//! Ownership of the objects C holds pointers to.
//!
//! ```text
//!   C sees        struct fid_ep { fid { fclass, context, ops } ops cm msg tagged .. }
//!   memory        [ fid_ep ........................................ | Arc<T> ]
//!                 `- Object<fid_ep, T>, one Box, freed by fi_close
//! ```
//!
//! Objects refer to each other through clones of the `Arc`; `fi_close` answers
//! `-FI_EBUSY` while there are any. Live objects are listed with their type, so
//! that a foreign or closed fid passed to `fi_*_bind` or `fi_close` is an error.

use std::{
    any::TypeId,
    collections::HashMap,
    ffi::{c_char, c_int, c_void},
    ptr,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;

use crate::{
    errno::{Errno, Result},
    flags, guard,
    memory::{Context, Output},
    ops::{answer, enosys, profile, profile::Variables, text, work::RawWork},
    sys,
};

/// What every object can do (`fi_close`, `fi_bind`, `fi_control`).
pub trait Object: Send + Sync + Sized + 'static {
    /// Called once, when nothing refers to the object any more.
    ///
    /// # Errors
    /// The object stays open.
    fn close(&self) -> Result<()> {
        Ok(())
    }

    /// Binds another object of this provider.
    ///
    /// # Errors
    /// `ENOSYS` where nothing can be bound.
    fn bind(&self, _other: &Bound, _flags: u64) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// `fi_control`.
    ///
    /// # Errors
    /// `ENOSYS` for commands that are not supported.
    fn control(&self, _command: Control<'_>) -> Result<()> {
        Err(Errno::ENOSYS)
    }

    /// What `fi_profile_open` reads.
    ///
    /// # Errors
    /// `ENOSYS` for objects without variables.
    fn variables(self: &Arc<Self>) -> Result<Arc<dyn Variables>> {
        Err(Errno::ENOSYS)
    }

    /// `FI_ALIAS`: the same object with other flags for its operations.
    ///
    /// # Errors
    /// `ENOSYS` for objects that have none.
    fn alias(self: &Arc<Self>, _flags: u64) -> Result<Arc<Self>> {
        Err(Errno::ENOSYS)
    }
}

/// A control command with its argument.
#[derive(Debug)]
pub enum Control<'a> {
    /// `FI_ENABLE`.
    Enable,
    /// `FI_GETOPSFLAG`: the argument holds `FI_TRANSMIT` or `FI_RECV` and takes the flags.
    GetOpsFlag(&'a mut u64),
    /// `FI_SETOPSFLAG`.
    SetOpsFlag(u64),
    /// `FI_GETWAIT` of an object whose wait object is a file descriptor.
    GetWait(&'a mut c_int),
    /// `FI_GETWAITOBJ`.
    GetWaitObj(&'a mut u32),
    /// `FI_GET_RAW_MR`: base address, key and length of the key of a region.
    GetRawKey(&'a mut u64, Output, &'a mut usize),
    /// `FI_MAP_RAW_MR`: base address and key as a peer got them, and the key for operations.
    MapRawKey(u64, &'a [u8], &'a mut u64),
    /// `FI_UNMAP_KEY`.
    UnmapKey(u64),
    /// `FI_REFRESH` of a region whose memory was changed.
    Refresh,
    /// `FI_QUEUE_WORK`.
    QueueWork(RawWork),
    /// `FI_CANCEL_WORK`.
    CancelWork(RawWork),
    /// `FI_FLUSH_WORK`.
    FlushWork,
    /// Any other command.
    Other(c_int),
}

/// An object that is being bound to another.
#[derive(Debug)]
pub struct Bound {
    fid: *mut sys::fid,
    class: u32,
}

/// Raw structures that begin with a `fid`.
///
/// # Safety
/// The first field is a `fid` and the structure is `repr(C)`.
pub unsafe trait Raw: Copy + Default {
    /// `FI_CLASS_*`.
    const CLASS: u32;
}

macro_rules! raw {
    ($($name:ident = $class:ident),*) => {
        $(
            // SAFETY: libfabric's headers put the fid first in each of them.
            unsafe impl Raw for sys::$name {
                const CLASS: u32 = sys::$class;
            }
        )*
    };
}

raw!(
    fid_fabric = FI_CLASS_FABRIC,
    fid_domain = FI_CLASS_DOMAIN,
    fid_av = FI_CLASS_AV,
    fid_cq = FI_CLASS_CQ,
    fid_cntr = FI_CLASS_CNTR,
    fid_eq = FI_CLASS_EQ,
    fid_ep = FI_CLASS_EP,
    fid_mr = FI_CLASS_MR,
    fid_stx = FI_CLASS_STX_CTX,
    fid_poll = FI_CLASS_POLL
);

#[repr(C)]
struct Allocation<R, T> {
    raw: R,
    inner: Arc<T>,
}

/// Type of every live object by its address.
static LIVE: LazyLock<Mutex<HashMap<usize, TypeId>>> = LazyLock::new(Mutex::default);

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

/// The Rust part of an object C calls an operation on.
///
/// # Safety
/// `raw` is null or came from [`create`] with the same `T` and is not closed:
/// operations are only reached through the tables of such an object.
#[inline]
pub(crate) unsafe fn get<'a, R: Raw, T: Object>(raw: *mut R) -> Result<&'a Arc<T>> {
    let object: *const Allocation<R, T> = raw.cast();
    if object.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller vouches for the pointer.
    Ok(unsafe { &(*object).inner })
}

/// The Rust part of an object that C names in an argument, checked.
///
/// # Safety
/// `fid` is null or points to a `fid` of any provider.
pub(crate) unsafe fn find<R: Raw, T: Object>(fid: *mut sys::fid) -> Result<Arc<T>> {
    if fid.is_null() || LIVE.lock().get(&(fid as usize)) != Some(&TypeId::of::<T>()) {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the list says that a live `Allocation<_, T>` is at this address.
    unsafe { get::<R, T>(fid.cast()) }.cloned()
}

impl Bound {
    /// A fid that C names elsewhere; checked by [`Bound::get`].
    pub(crate) fn of(fid: *mut sys::fid, class: u32) -> Self {
        Self { fid, class }
    }

    /// # Safety
    /// `fid` is null or points to a `fid` of any provider.
    pub(crate) unsafe fn read(fid: *mut sys::fid) -> Result<Self> {
        // SAFETY: the caller vouches for the pointer; the class is a fid's first field.
        let class = unsafe { fid.as_ref() }.ok_or(Errno::EINVAL)?.fclass as u32;
        Ok(Self { fid, class })
    }

    /// The object, if it is of this type.
    ///
    /// # Errors
    /// `EINVAL` if it is another kind of object or not ours.
    pub fn get<T: Bindable>(&self) -> Result<Arc<T>> {
        // SAFETY: `bind` got the pointer from C, and `find` checks it.
        unsafe { find::<T::Raw, T>(self.fid) }
    }

    /// The context the object was opened with.
    #[must_use]
    pub fn context(&self) -> Context {
        // SAFETY: `read` was given a fid, which lives as long as the call.
        context(unsafe { (*self.fid).context })
    }

    /// `FI_CLASS_*` of the object, as its fid states it.
    #[must_use]
    pub fn class(&self) -> u32 {
        self.class
    }
}

/// Objects that others can bind, with their raw structure.
pub trait Bindable: Object {
    /// The structure C knows.
    type Raw: Raw;
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
            answer(to, profile::open(inner.variables()?, context))
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

/// A fid as events name it. Never followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FidName(pub(crate) usize);

impl FidName {
    pub(crate) fn of<R: Raw>(raw: *mut R) -> Self {
        Self(raw as usize)
    }
}

/// The context an object was opened with.
pub(crate) fn context(raw: *mut libc::c_void) -> Context {
    Context(raw as usize)
}

/// Whether a flag word names only flags in `allowed`.
///
/// # Errors
/// `EBADFLAGS` otherwise.
pub fn only(value: u64, allowed: u64) -> Result<()> {
    if value & !allowed == 0 { Ok(()) } else { Err(Errno::EBADFLAGS) }
}

/// `flags` restricted to transmit and receive: which queue a bind is for.
#[must_use]
pub fn direction(bind_flags: u64) -> (bool, bool) {
    (bind_flags & flags::TRANSMIT != 0, bind_flags & flags::RECV != 0)
}
