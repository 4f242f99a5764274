// SPDX-License-Identifier: BSD-2-Clause
//! The one boundary between C and Rust: no panic crosses it, nor ends a thread of ours.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::errno::{Errno, Result};

/// Integer types an entry point returns: `int` and `ssize_t`.
pub(crate) trait Status {
    fn ok(value: usize) -> Self;
    fn error(errno: Errno) -> Self;
}

impl Status for i32 {
    fn ok(value: usize) -> Self {
        Self::try_from(value).unwrap_or(Self::MAX)
    }

    fn error(errno: Errno) -> Self {
        -errno.get()
    }
}

impl Status for isize {
    fn ok(value: usize) -> Self {
        value.cast_signed()
    }

    fn error(errno: Errno) -> Self {
        -(errno.get() as Self)
    }
}

/// Runs an entry point: its value or `-errno`; a panic is logged and becomes
/// `-FI_EOTHER`.
#[inline]
pub(crate) fn call<S: Status>(body: impl FnOnce() -> Result<usize>) -> S {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => S::ok(value),
        Ok(Err(errno)) => S::error(errno),
        Err(panic) => S::error(caught(&*panic)),
    }
}

/// [`call`] for entry points that return something else; `fallback` stands for
/// both errors and panics.
pub(crate) fn call_or<T>(fallback: T, body: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(_)) => fallback,
        Err(panic) => {
            caught(&*panic);
            fallback
        }
    }
}

/// Runs what a thread of ours does.
///
/// # Errors
/// `FI_EOTHER` after a panic, which is logged.
pub fn thread(body: impl FnOnce()) -> Result<()> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| caught(&*panic))
}

#[cold]
fn caught(panic: &(dyn std::any::Any + Send)) -> Errno {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!("internal error, please report: {text}");
    Errno::EOTHER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_errors_and_panics() {
        assert_eq!(call::<isize>(|| Ok(3)), 3);
        assert_eq!(call::<i32>(|| Err(Errno::EINVAL)), -libc::EINVAL);
        assert_eq!(call::<isize>(|| panic!("a panic that a test makes")), -256);
        assert_eq!(call_or(7, || Err(Errno::EINVAL)), 7);
        assert_eq!(thread(|| panic!("a panic that a test makes")), Err(Errno::EOTHER));
        assert_eq!(thread(|| ()), Ok(()));
    }
}
