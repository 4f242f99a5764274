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
    ffi::CStr,
    fmt::Debug,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;

pub use crate::control::Control;
use crate::{
    errno::{Errno, Result},
    flags,
    memory::Context,
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

/// A variable: a number of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// libfabric's number, or one of the provider's own.
    pub id: u32,
    /// Name for programs.
    pub name: &'static CStr,
    /// What it says.
    pub help: &'static CStr,
}

/// An object with variables.
pub trait Variables: Debug + Send + Sync {
    /// All of them.
    fn list(&self) -> &'static [Variable];

    /// Their values at one moment, in the order of the list.
    ///
    /// # Errors
    /// The object is closed.
    fn values(&self) -> Result<Vec<u64>>;
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

/// An object and what C sees of it: made and freed by `ops/fid.rs` alone.
#[repr(C)]
pub(crate) struct Allocation<R, T> {
    pub(crate) raw: R,
    pub(crate) inner: Arc<T>,
}

/// Type of every live object by its address.
pub(crate) static LIVE: LazyLock<Mutex<HashMap<usize, TypeId>>> = LazyLock::new(Mutex::default);

/// The Rust part of an object C calls an operation on.
///
/// # Safety
/// `raw` is null or came from [`crate::ops::fid::create`] with the same `T` and is not closed:
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
