// SPDX-License-Identifier: BSD-2-Clause
//! Maximum lengths of the operations of an endpoint: `FI_OPT_MAX_*_SIZE` and `FI_OPT_INJECT_*_SIZE`
//! of `fi_endpoint(3)`, which libfabric 2.0 added.

use std::sync::atomic::{AtomicUsize, Ordering};

use ffi::{
    Errno, Result,
    ops::ep::{Send, atomic::MAX_BYTES},
};

use crate::attr;

/// `FI_OPT_MAX_MSG_SIZE`. The options of tagged messages, RMA and atomic operations follow in the
/// order of [`OpClass`].
const OPT_MAX: u32 = 12;
/// `FI_OPT_INJECT_MSG_SIZE`. The options of the other classes follow in the same order.
const OPT_INJECT: u32 = 16;
const CLASSES: usize = 4;

/// Classes of operations, each with its maximum sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OpClass {
    Msg,
    Tagged,
    Rma,
    Atomic,
}

impl OpClass {
    #[inline(always)]
    pub(crate) fn of_message(op: &Send) -> Self {
        if op.tag.is_some() { Self::Tagged } else { Self::Msg }
    }
}

/// A size in bytes. The application may change it at any time, up to its maximum.
#[derive(Debug)]
struct OpSize {
    now: AtomicUsize,
    /// The maximum, and the value when the endpoint is opened.
    offered: usize,
}

impl OpSize {
    fn new(offered: usize) -> Self {
        Self { now: AtomicUsize::new(offered), offered }
    }

    #[inline(always)]
    fn get(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }
}

/// The sizes of an endpoint, in bytes.
#[derive(Debug)]
pub(crate) struct OpSizes {
    /// The smallest of all sizes. An operation that is not longer than this passes every check.
    least: AtomicUsize,
    longest: [OpSize; CLASSES],
    injected: [OpSize; CLASSES],
}

impl OpSizes {
    /// Creates the maximum sizes for a given `FI_TCAM_EAGER_SIZE`.
    pub(crate) fn offered(eager_size: usize) -> Self {
        let longest =
            |class| if class == OpClass::Atomic as usize { MAX_BYTES } else { attr::MAX_MSG_SIZE };
        Self {
            least: AtomicUsize::new(attr::inject_size(eager_size).min(MAX_BYTES)),
            longest: std::array::from_fn(|class| OpSize::new(longest(class))),
            injected: std::array::from_fn(|_| OpSize::new(attr::inject_size(eager_size))),
        }
    }

    /// Checks an operation of `len` bytes, of which `injected` are sent with `FI_INJECT`.
    ///
    /// # Errors
    /// `EMSGSIZE` if `len` or `injected` is more than the class allows.
    #[inline(always)]
    pub(crate) fn check(&self, class: OpClass, len: usize, injected: usize) -> Result<()> {
        if len <= self.least.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.check_class(class as usize, len, injected)
    }

    #[inline(never)]
    fn check_class(&self, class: usize, len: usize, injected: usize) -> Result<()> {
        if len > self.longest[class].get() || injected > self.injected[class].get() {
            return Err(Errno::EMSGSIZE);
        }
        Ok(())
    }

    /// Returns the size that an option names.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for an option that is not a size.
    fn of_option(&self, option: u32) -> Result<&OpSize> {
        let size = match option {
            OPT_MAX..OPT_INJECT => self.longest.get((option - OPT_MAX) as usize),
            OPT_INJECT.. => self.injected.get((option - OPT_INJECT) as usize),
            _ => None,
        };
        size.ok_or(Errno::ENOPROTOOPT)
    }

    /// `fi_getopt`: returns a size in bytes.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for an option that is not a size.
    pub(crate) fn option(&self, option: u32) -> Result<usize> {
        self.of_option(option).map(OpSize::get)
    }

    /// `fi_setopt`: sets a size in bytes.
    ///
    /// # Errors
    /// `EINVAL` for more than the maximum, `ENOPROTOOPT` for an option that is not a size.
    pub(crate) fn set_option(&self, option: u32, value: usize) -> Result<()> {
        let size = self.of_option(option)?;
        if value > size.offered {
            tracing::info!(
                "endpoint option {option} is {value}, and may be at most {}",
                size.offered
            );
            return Err(Errno::EINVAL);
        }
        size.now.store(value, Ordering::Relaxed);
        let least = self.longest.iter().chain(&self.injected).map(OpSize::get).min();
        self.least.store(least.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }
}
