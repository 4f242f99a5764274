// SPDX-License-Identifier: BSD-2-Clause
//! Entry points: the functions in an operation table, which C calls with an object.

use crate::{
    errno::{Errno, Result},
    guard::Status,
};

/// Defines the entry points of an object and a function that returns their operation table.
///
/// ```text
/// entry_points! {
///     table<C: Counter> = sys::fi_ops_cntr, ends at seterr;
///     cntr = get(fid: *mut sys::fid_cntr);
///     unsafe fn add(value: u64) -> c_int { cntr.add(value); Ok(()) }
/// }
/// ```
///
/// This defines the C function `add(fid, value)`. It runs its body under the panic guard. In the
/// body, `fid` is the pointer that C passed, and `cntr` is the Rust part of that object as
/// [`object::get`](crate::object::get) or [`object::find`](crate::object::find) returns it. If
/// `fid` is null, the function returns `-FI_EINVAL`. The body is unsafe code, since the other
/// arguments are those of C.
///
/// Every entry point has the name of its field in the table. `ends at` is the last field that
/// libfabric may read, because later headers can have more fields. Fields listed as `unsupported`
/// hold a function that returns `-FI_ENOSYS`. Fields listed as `others` stay empty, or are set by
/// the caller of the function that returns the table. The lists must name every field up to the
/// last one.
macro_rules! entry_points {
    (
        $table:ident<$object_type:ident: $bound:path> = $ops:ty, ends at $last:ident;
        $object:ident = $lookup:ident($fid:ident: $raw:ty);
        $(unsupported $($missing:ident),+;)?
        $(others $($other:ident),+;)?
        $(
            $(#[$meta:meta])*
            unsafe fn $name:ident($($arg:ident: $arg_type:ty),* $(,)?) -> $ret:ty $body:block
        )+
    ) => {
        // The field `size` and then one pointer for each entry.
        const _: () = assert!(
            [
                $(stringify!($name),)+
                $($(stringify!($missing),)+)?
                $($(stringify!($other),)+)?
            ]
            .len()
                == std::mem::offset_of!($ops, $last) / size_of::<usize>(),
            "an entry of the table is missing"
        );

        pub(crate) const fn $table<$object_type: $bound>() -> $ops {
            // SAFETY: a table is a size and optional functions, all of which may be zero.
            let mut ops: $ops = unsafe { std::mem::zeroed() };
            ops.size = std::mem::offset_of!($ops, $last) + size_of::<usize>();
            $(ops.$name = Some($name::<$object_type>);)+
            $($(ops.$missing = $crate::ops::entry::unsupported();)+)?
            ops
        }

        $(
            $(#[$meta])*
            #[allow(unused_variables, reason = "not every body uses the object and its pointer")]
            unsafe extern "C" fn $name<$object_type: $bound>(
                $fid: $raw,
                $($arg: $arg_type),*
            ) -> $ret {
                // SAFETY: C calls an entry point with the object whose table holds it, and with
                // arguments as the man page of the call describes them.
                $crate::guard::call(|| unsafe {
                    let $object = $crate::object::$lookup::<$object_type>($fid.cast())?;
                    $body
                })
            }
        )+
    };
}
pub(crate) use entry_points;

/// Defines an operation table of C that the installed headers may not have.
macro_rules! operation_table {
    (
        $(#[$meta:meta])*
        $table:ident of $fid:ty:
        $($name:ident($($arg:ty),* $(,)?) -> $ret:ty;)+
    ) => {
        $(#[$meta])*
        #[repr(C)]
        pub(crate) struct $table {
            size: usize,
            $($name: Option<unsafe extern "C" fn(*mut $fid, $($arg),*) -> $ret>,)+
        }
    };
}
pub(crate) use operation_table;

/// Returns a pointer to a static operation table. C's pointer types are not const, but C never
/// writes to a table.
macro_rules! table {
    ($table:expr) => {
        std::ptr::from_ref(const { &$table }).cast_mut()
    };
}
pub(crate) use table;

/// A function type for which there is an entry point that returns `-FI_ENOSYS`.
pub(crate) trait Unsupported: Sized {
    const ENTRY: Self;
}

/// Returns an entry point that returns `-FI_ENOSYS`.
pub(crate) const fn unsupported<F: Unsupported + Copy>() -> Option<F> {
    Some(F::ENTRY)
}

macro_rules! unsupported_with {
    ($($first:ident $($rest:ident)*)?) => {$(
        impl<$first, $($rest,)* R: Status<()>> Unsupported
            for unsafe extern "C" fn($first, $($rest),*) -> R
        {
            const ENTRY: Self = {
                unsafe extern "C" fn entry<$first, $($rest,)* R: Status<()>>(
                    _: $first,
                    $(_: $rest),*
                ) -> R {
                    R::from_result(Err(Errno::ENOSYS))
                }
                entry
            };
        }
        unsupported_with!($($rest)*);
    )?};
}
unsupported_with!(A B C D E F G H);

/// Writes the result of `make` to `to`. If `to` is null, it does not call `make`.
///
/// # Errors
/// `EINVAL` if `to` is null; otherwise the error of `make`.
///
/// # Safety
/// `to` is null or valid for a write.
pub(crate) unsafe fn answer<T>(to: *mut T, make: impl FnOnce() -> Result<T>) -> Result<()> {
    if to.is_null() {
        return Err(Errno::EINVAL);
    }
    let value = make()?;
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes as many of the bytes as fit to `to`, and the number of all bytes to `len`. Returns the
/// room that `len` stated.
///
/// # Errors
/// `EINVAL` if `len` is null.
///
/// # Safety
/// `len` is null or valid, and `to` is null or valid for writes of `*len` bytes.
pub(crate) unsafe fn answer_bytes(
    to: *mut libc::c_void,
    len: *mut usize,
    bytes: &[u8],
) -> Result<usize> {
    // SAFETY: the caller vouches for both pointers.
    unsafe {
        let len = len.as_mut().ok_or(Errno::EINVAL)?;
        let room = std::mem::replace(len, bytes.len());
        crate::memory::Output::new(to, room).write(bytes);
        Ok(room)
    }
}

/// Returns an array argument. An empty array may have a null pointer.
///
/// # Errors
/// `EINVAL` if the pointer is null and `count` is not 0.
///
/// # Safety
/// `first` is null or valid for reads of `count` elements during the call.
pub(crate) unsafe fn array<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() => Err(Errno::EINVAL),
        // SAFETY: not null, and the caller vouches for the elements.
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// Returns a string argument; `None` if it is null.
///
/// # Errors
/// `EINVAL` if it is not UTF-8.
///
/// # Safety
/// `text` is null or a C string that lives as long as the call.
pub(crate) unsafe fn text<'a>(text: *const libc::c_char) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the string.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_str().map(Some).map_err(|_| Errno::EINVAL)
}
