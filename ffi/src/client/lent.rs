// SPDX-License-Identifier: BSD-2-Clause
//! Which blocks a provider below has, and the contexts that it names them by.

use std::{ffi::c_void, mem, ptr};

/// `struct fi_context2`, one for each block.
#[repr(C, align(64))]
struct OpContext([*mut c_void; 8]);

/// Blocks that the provider has.
pub(super) struct Lent {
    contexts: Box<[OpContext]>,
    /// Blocks to send from.
    pub(super) staging: usize,
    /// Those of them that the provider has not.
    pub(super) free: Vec<u32>,
}

impl Lent {
    pub(super) fn new(staging: usize, receives: usize) -> Self {
        let context = || OpContext([ptr::null_mut(); 8]);
        Self {
            contexts: std::iter::repeat_with(context).take(staging + receives).collect(),
            staging,
            free: (0..staging as u32).rev().collect(),
        }
    }

    /// The context of a block: those to send from come first.
    pub(super) fn context(&mut self, index: usize) -> *mut c_void {
        (&raw mut self.contexts[index]).cast()
    }

    /// Which context this is, if it is one.
    pub(super) fn index(&self, context: *mut c_void) -> Option<usize> {
        let offset = context.addr().checked_sub(self.contexts.as_ptr().addr())?;
        let index = offset / mem::size_of::<OpContext>();
        (index < self.contexts.len()).then_some(index)
    }
}
