// SPDX-License-Identifier: BSD-2-Clause
//! Sleeping until something comes to the endpoint of a provider below (`fi_control(3)` with
//! `FI_GETWAIT`, `fi_trywait(3)`).

use std::os::fd::BorrowedFd;

use super::opened::Client;

impl Client {
    /// What becomes readable when something comes after [`Client::arm`]; none where the provider
    /// has nothing of the kind.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the queue holds it open, and is there as long as `self`.
        self.descriptor.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// From here on the descriptor becomes readable. False if there is something to read first, or no
    /// descriptor.
    pub fn arm(&mut self) -> bool {
        if self.descriptor.is_none() {
            return false;
        }
        let mut fid = self.cq.fid();
        // SAFETY: an open fabric and an open queue of it.
        unsafe {
            let try_wait = (*(*self.fabric.get()).ops).trywait;
            try_wait.is_some_and(|try_wait| try_wait(self.fabric.get(), &raw mut fid, 1) == 0)
        }
    }
}
