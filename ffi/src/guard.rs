// SPDX-License-Identifier: BSD-2-Clause
//! The panic guard: no panic unwinds into C or ends a thread of the provider.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errno::{Errno, Result};

/// The value that an entry point returns to C for a `Result<Value>`.
pub(crate) trait Status<Value> {
    fn from_result(result: Result<Value>) -> Self;
}

/// `int`: a count, or a negated error number.
impl Status<usize> for i32 {
    fn from_result(result: Result<usize>) -> Self {
        result.map_or_else(|errno| -errno.get(), |value| value.try_into().unwrap_or(Self::MAX))
    }
}

/// `ssize_t`: a count, or a negated error number.
impl Status<usize> for isize {
    #[inline]
    fn from_result(result: Result<usize>) -> Self {
        match result {
            Ok(value) => value.cast_signed(),
            Err(errno) => -(errno.get() as Self),
        }
    }
}

/// 0, or a negated error number.
impl<S: Status<usize>> Status<()> for S {
    #[inline]
    fn from_result(result: Result<()>) -> Self {
        S::from_result(result.map(|()| 0))
    }
}

/// `void`: no error is reported.
impl Status<()> for () {
    fn from_result(_: Result<()>) -> Self {}
}

/// `uint64_t`: a value, or 0 for an error.
impl Status<u64> for u64 {
    fn from_result(result: Result<u64>) -> Self {
        result.unwrap_or(0)
    }
}

/// A pointer, or null for an error.
impl<T> Status<*const T> for *const T {
    fn from_result(result: Result<Self>) -> Self {
        result.unwrap_or(std::ptr::null())
    }
}

/// A pointer, or null for an error.
impl<T> Status<*mut T> for *mut T {
    fn from_result(result: Result<Self>) -> Self {
        result.unwrap_or(std::ptr::null_mut())
    }
}

/// Runs an entry point, and converts its result for C. A panic is logged and becomes `FI_EOTHER`.
#[inline]
pub(crate) fn call<S: Status<Value>, Value>(body: impl FnOnce() -> Result<Value>) -> S {
    let result = catch_unwind(AssertUnwindSafe(body));
    S::from_result(result.unwrap_or_else(|panic| Err(log_panic(&*panic))))
}

/// Runs the body of a thread of the provider.
///
/// # Errors
/// `FI_EOTHER` after a panic, which is logged.
pub fn thread(body: impl FnOnce()) -> Result<()> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| log_panic(&*panic))
}

#[cold]
fn log_panic(panic: &(dyn std::any::Any + Send)) -> Errno {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    tracing::error!("internal error, please report: {text}");
    Errno::EOTHER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_errors_and_panics() {
        assert_eq!(call::<isize, usize>(|| Ok(3)), 3);
        assert_eq!(call::<i32, usize>(|| Err(Errno::EINVAL)), -libc::EINVAL);
        assert_eq!(call::<isize, usize>(|| panic!("a panic that a test makes")), -256);
        assert_eq!(call::<i32, _>(|| Ok(())), 0);
        assert_eq!(call::<u64, u64>(|| Err(Errno::EINVAL)), 0);
        assert!(call::<*const u8, _>(|| panic!("a panic that a test makes")).is_null());
        assert_eq!(thread(|| panic!("a panic that a test makes")), Err(Errno::EOTHER));
        assert_eq!(thread(|| ()), Ok(()));
    }
}
