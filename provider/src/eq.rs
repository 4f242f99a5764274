// SPDX-License-Identifier: BSD-2-Clause
//! `fi_eq(3)`: event queues, to which address vectors report inserted addresses.

use std::{
    collections::VecDeque,
    ffi::c_int,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

use ffi::{
    Errno, Result, flags,
    memory::Output,
    object::{Control, Object},
    ops::{
        self, WaitObj,
        eq::{EqAttr, ErrorEvent, Event},
    },
    sys,
};
use parking_lot::{Condvar, Mutex};
use rustix::event::{EventfdFlags, eventfd};

use crate::{fabric::Fabric, wait::Deadline};

/// An event queue.
#[derive(Debug)]
pub(crate) struct EventQueue {
    _fabric: Arc<Fabric>,
    wait_obj: WaitObj,
    writable: bool,
    state: Mutex<EventLists>,
    changed: Condvar,
    /// Readable while there may be events (`FI_WAIT_FD`).
    descriptor: Option<OwnedFd>,
}

#[derive(Debug, Default)]
struct EventLists {
    events: VecDeque<Event>,
    errors: VecDeque<ErrorEvent>,
}

impl EventQueue {
    pub(crate) fn open(fabric: &Arc<Fabric>, attr: &EqAttr) -> Result<Self> {
        ffi::object::check_flags(attr.flags, flags::WRITE | flags::AFFINITY)?;
        let descriptor = match attr.wait_obj {
            WaitObj::Other(wait_obj) => {
                tracing::info!("wait object {wait_obj} of an event queue is not supported");
                return Err(Errno::ENOSYS);
            }
            WaitObj::Fd => {
                let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
                Some(eventfd(0, flags).map_err(std::io::Error::from)?)
            }
            WaitObj::None | WaitObj::Unspec | WaitObj::Yield => None,
        };
        Ok(Self {
            _fabric: Arc::clone(fabric),
            wait_obj: attr.wait_obj,
            writable: attr.flags & flags::WRITE != 0,
            state: Mutex::default(),
            changed: Condvar::new(),
            descriptor,
        })
    }

    pub(crate) fn push(&self, event: Event) {
        self.state.lock().events.push_back(event);
        self.wake();
    }

    pub(crate) fn push_error(&self, error: ErrorEvent) {
        self.state.lock().errors.push_back(error);
        self.wake();
    }

    fn wake(&self) {
        self.changed.notify_all();
        if let Some(descriptor) = &self.descriptor {
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Prepares for a sleep on the descriptor.
    ///
    /// # Errors
    /// `EAGAIN` if there is an event, `EINVAL` if the queue has no descriptor.
    pub(crate) fn try_wait(&self) -> Result<()> {
        let descriptor = self.descriptor.as_ref().ok_or(Errno::EINVAL)?;
        let state = self.state.lock();
        let _ = rustix::io::read(descriptor, &mut [0_u8; 8]);
        let empty = state.events.is_empty() && state.errors.is_empty();
        if empty { Ok(()) } else { Err(Errno::EAGAIN) }
    }
}

impl Object for EventQueue {
    type Raw = sys::fid_eq;

    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::GetWaitObj(to) => {
                *to = self.wait_obj.raw();
                Ok(())
            }
            Control::GetWait(to) => {
                *to = self.descriptor.as_ref().ok_or(Errno::ENOSYS)?.as_raw_fd();
                Ok(())
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl ops::eq::EventQueue for EventQueue {
    fn read(
        &self,
        to: &mut Output,
        timeout: Option<c_int>,
        read_flags: u64,
    ) -> Result<(u32, usize)> {
        let deadline = timeout.map(Deadline::after);
        let mut state = self.state.lock();
        loop {
            if !state.errors.is_empty() {
                return Err(Errno::EAVAIL);
            }
            if let Some(event) = state.events.front() {
                if to.len() < event.bytes.len() {
                    return Err(Errno::ETOOSMALL);
                }
                let len = to.write(&event.bytes);
                let number = event.number;
                if read_flags & flags::PEEK == 0 {
                    state.events.pop_front();
                }
                return Ok((number, len));
            }
            match &deadline {
                Some(deadline) if !deadline.is_over() => {
                    self.changed.wait_for(&mut state, deadline.left(Duration::from_secs(1)));
                }
                _ => return Err(Errno::EAGAIN),
            }
        }
    }

    fn read_error(&self, read_flags: u64) -> Result<ErrorEvent> {
        let mut state = self.state.lock();
        let error = if read_flags & flags::PEEK == 0 {
            state.errors.pop_front()
        } else {
            state.errors.front().copied()
        };
        error.ok_or(Errno::EAGAIN)
    }

    fn write(&self, event: Event) -> Result<()> {
        if !self.writable {
            return Err(Errno::EINVAL);
        }
        self.push(event);
        Ok(())
    }
}
