// SPDX-License-Identifier: BSD-2-Clause
//! `fi_eq(3)`.

use std::{collections::VecDeque, ffi::c_int, sync::Arc, time::Duration};

use ffi::{
    Errno, Result, flags,
    memory::Output,
    object::{Bindable, Control, Object},
    ops::{
        self, WaitObj,
        eq::{Attr, ErrorEvent, Event},
    },
    sys,
};
use parking_lot::{Condvar, Mutex};

use crate::{fabric::Fabric, idle::Deadline};

/// An event queue.
#[derive(Debug)]
pub(crate) struct EventQueue {
    _fabric: Arc<Fabric>,
    wait_obj: WaitObj,
    writable: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    errors: VecDeque<ErrorEvent>,
}

impl EventQueue {
    pub(crate) fn open(fabric: &Arc<Fabric>, attr: &Attr) -> Result<Self> {
        ffi::object::only(attr.flags, flags::WRITE | flags::AFFINITY)?;
        if let WaitObj::Other(wait_obj) = attr.wait_obj {
            tracing::info!("wait object {wait_obj} of an event queue is not supported");
            return Err(Errno::ENOSYS);
        }
        Ok(Self {
            _fabric: Arc::clone(fabric),
            wait_obj: attr.wait_obj,
            writable: attr.flags & flags::WRITE != 0,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn push(&self, event: Event) {
        self.state.lock().events.push_back(event);
        self.changed.notify_all();
    }

    pub(crate) fn push_error(&self, error: ErrorEvent) {
        self.state.lock().errors.push_back(error);
        self.changed.notify_all();
    }
}

impl Object for EventQueue {
    fn control(&self, command: Control<'_>) -> Result<()> {
        match command {
            Control::GetWaitObj(to) => {
                *to = self.wait_obj.raw();
                Ok(())
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

impl Bindable for EventQueue {
    type Raw = sys::fid_eq;
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
