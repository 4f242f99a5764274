// SPDX-License-Identifier: BSD-2-Clause
//! Ownership of the objects that C holds pointers to.
//!
//! ```text
//!   C sees        struct fid_ep { fid { fclass, context, ops } ops cm msg tagged .. }
//!   memory        [ fid_ep ........................................ | Arc<T> ]
//!                 `- Allocation<T>, one Box, freed by fi_close
//! ```
//!
//! Objects refer to each other through clones of the `Arc`. `fi_close` returns `-FI_EBUSY` while
//! such a clone exists. A registry holds the type of every open object, so that `fi_*_bind` and
//! `fi_close` return an error for the fid of a closed object or of another provider.

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
    memory::OpContext,
    sys,
};

/// An object: the calls that all objects have (`fi_close`, `fi_bind`, `fi_control`).
pub trait Object: Send + Sync + Sized + 'static {
    /// The structure that C sees.
    type Raw: Raw;

    /// Closes the object. `fi_close` calls this when no other object refers to this one.
    ///
    /// # Errors
    /// The object stays open, and may be closed again later.
    fn close(&self) -> Result<()> {
        Ok(())
    }

    /// Waits for threads of the provider that use the object only for a moment, such as the device
    /// thread while it starts deferred work. `fi_close` calls this for an object that is in use.
    fn finish_uses(&self) {}

    /// Binds another object of this provider.
    ///
    /// # Errors
    /// `ENOSYS` for objects that nothing can be bound to.
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

    /// Returns the variables that `fi_profile_open` gives access to.
    ///
    /// # Errors
    /// `ENOSYS` for objects without variables.
    fn variables(self: &Arc<Self>) -> Result<Arc<dyn Variables>> {
        Err(Errno::ENOSYS)
    }

    /// `FI_ALIAS`: returns this object with other flags for its operations.
    ///
    /// # Errors
    /// `ENOSYS` for objects without operations.
    fn alias(self: &Arc<Self>, _flags: u64) -> Result<Arc<Self>> {
        Err(Errno::ENOSYS)
    }
}

/// Describes a variable, which is a 64-bit number.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Number that libfabric or the provider defines.
    pub id: u32,
    /// Name for programs.
    pub name: &'static CStr,
    /// Description for people.
    pub help: &'static CStr,
}

/// An object with variables.
pub trait Variables: Debug + Send + Sync {
    /// Returns all variables.
    fn list(&self) -> &'static [Variable];

    /// Reads all values at one moment, in the order of [`Variables::list`].
    ///
    /// # Errors
    /// The object is closed.
    fn values(&self) -> Result<Vec<u64>>;
}

/// The fid of an object that C passed as an argument, for example to `fi_ep_bind`.
#[derive(Debug)]
pub struct Bound {
    fid: *mut sys::fid,
    class: u32,
    context: OpContext,
}

/// Raw structures that begin with a `fid`.
///
/// # Safety
/// The first field is a `fid` and the structure is `repr(C)`.
pub unsafe trait Raw: Copy + Default {
    /// The usual `FI_CLASS_*` of an object with this structure.
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

/// An object behind the structure that C sees. Only `ops/fid.rs` allocates and frees it.
#[repr(C)]
pub(crate) struct Allocation<T: Object> {
    pub(crate) raw: T::Raw,
    pub(crate) inner: Arc<T>,
}

/// Type of every open object, by its address.
pub(crate) static LIVE: LazyLock<Mutex<HashMap<usize, TypeId>>> = LazyLock::new(Mutex::default);

/// Returns the Rust part of the object that an operation is called on; `EINVAL` if `raw` is null.
///
/// # Safety
/// `raw` is null, or came from [`crate::ops::fid::create`] with this `T` and is not closed.
/// Operations fulfil this: C reaches them only through the tables of such an object.
#[inline]
pub(crate) unsafe fn get<'a, T: Object>(raw: *mut T::Raw) -> Result<&'a Arc<T>> {
    let object: *const Allocation<T> = raw.cast();
    if object.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller vouches for the pointer.
    Ok(unsafe { &(*object).inner })
}

/// Returns the Rust part of the object that an argument names; `EINVAL` if it is not open or not of
/// this type.
///
/// # Safety
/// `fid` is null or points to a `fid` of any provider.
pub(crate) unsafe fn find<T: Object>(fid: *mut sys::fid) -> Result<Arc<T>> {
    let live = LIVE.lock();
    if live.get(&(fid as usize)) != Some(&TypeId::of::<T>()) {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the registry says that an open `Allocation<T>` is at this address. `fi_close` removes
    // it from the registry, which is locked, before it frees it.
    unsafe { get::<T>(fid.cast()) }.cloned()
}

impl Bound {
    /// Wraps a fid that C passed in another structure, without a context. Only [`Bound::get`]
    /// checks the fid.
    pub(crate) fn of(fid: *mut sys::fid, class: u32) -> Self {
        Self { fid, class, context: OpContext(0) }
    }

    /// Wraps a fid that C passed as an argument. Returns `EINVAL` if it is null.
    ///
    /// # Safety
    /// `fid` is null or points to a `fid` of any provider.
    pub(crate) unsafe fn read(fid: *mut sys::fid) -> Result<Self> {
        // SAFETY: the caller vouches for the pointer.
        let read = unsafe { fid.as_ref() }.ok_or(Errno::EINVAL)?;
        Ok(Self { fid, class: read.fclass as u32, context: context(read.context) })
    }

    /// Returns the object, if it is of this type.
    ///
    /// # Errors
    /// `EINVAL` if the object is closed, of another type, or of another provider.
    pub fn get<T: Object>(&self) -> Result<Arc<T>> {
        // SAFETY: C passed the pointer as a fid, and `find` checks it.
        unsafe { find::<T>(self.fid) }
    }

    /// Returns the context that the object was opened with.
    #[must_use]
    pub fn context(&self) -> OpContext {
        self.context
    }

    /// `FI_CLASS_*` of the object, as its fid states it.
    #[must_use]
    pub fn class(&self) -> u32 {
        self.class
    }
}

/// The address of a fid, as events report it. It is never dereferenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FidName(pub(crate) usize);

impl FidName {
    pub(crate) fn of<R: Raw>(raw: *mut R) -> Self {
        Self(raw as usize)
    }
}

/// Converts a context that C passed.
pub(crate) fn context(raw: *mut libc::c_void) -> OpContext {
    OpContext(raw as usize)
}

/// Checks that a flag word contains only flags in `allowed`.
///
/// # Errors
/// `EBADFLAGS` otherwise.
pub fn check_flags(value: u64, allowed: u64) -> Result<()> {
    if value & !allowed == 0 { Ok(()) } else { Err(Errno::EBADFLAGS) }
}

/// Returns whether bind flags contain `FI_TRANSMIT`, and whether they contain `FI_RECV`.
#[must_use]
pub fn direction(bind_flags: u64) -> (bool, bool) {
    (bind_flags & flags::TRANSMIT != 0, bind_flags & flags::RECV != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_fid_is_read_once() {
        let mut fid = sys::fid { context: 7 as *mut libc::c_void, ..Default::default() };
        let fid = &raw mut fid;
        // SAFETY: the fid lives until the end of the test.
        let bound = unsafe { Bound::read(fid) }.unwrap();
        // SAFETY: as above.
        unsafe { (*fid).context = std::ptr::null_mut() };
        assert_eq!(bound.context(), OpContext(7));
    }
}
