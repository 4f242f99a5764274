// SPDX-License-Identifier: BSD-2-Clause
//! Lists the endpoints and shared receive contexts that may still be open when the process exits,
//! so that they write their reports then.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// An object that writes or releases something when the process exits.
pub(crate) trait AtExit: Send + Sync {
    /// Called once, when the process exits.
    fn at_exit(&self);
}

/// Objects that may be open when the process exits, in the order in which they were opened.
pub(crate) type Open = Mutex<Vec<Weak<dyn AtExit>>>;

pub(crate) static CONTEXTS: Open = Mutex::new(Vec::new());
pub(crate) static ENDPOINTS: Open = Mutex::new(Vec::new());

/// Registers an object for [`run_all`], which calls contexts before endpoints.
pub(crate) fn register<T: AtExit + 'static>(object: &Arc<T>, open: &Open) {
    let mut open = open.lock();
    open.retain(|object| object.strong_count() > 0);
    open.push(Arc::downgrade(object) as Weak<dyn AtExit>);
}

/// Calls [`AtExit::at_exit`] of all registered objects that still exist. Called when the process
/// exits.
pub(crate) fn run_all() {
    for open in [&CONTEXTS, &ENDPOINTS] {
        let open = std::mem::take(&mut *open.lock());
        for object in open.iter().filter_map(Weak::upgrade) {
            object.at_exit();
        }
    }
}
