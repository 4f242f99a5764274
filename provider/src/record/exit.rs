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
type Open = Mutex<Vec<Weak<dyn AtExit>>>;

static CONTEXTS: Open = Mutex::new(Vec::new());
static ENDPOINTS: Open = Mutex::new(Vec::new());

fn register(object: Weak<dyn AtExit>, open: &Open) {
    let mut open = open.lock();
    open.retain(|object| object.strong_count() > 0);
    open.push(object);
}

/// Registers an endpoint for [`run_all`].
pub(crate) fn register_endpoint<T: AtExit + 'static>(endpoint: &Arc<T>) {
    register(Arc::downgrade(endpoint) as Weak<dyn AtExit>, &ENDPOINTS);
}

/// Registers a shared receive context for [`run_all`], which calls contexts before endpoints.
pub(crate) fn register_context<T: AtExit + 'static>(context: &Arc<T>) {
    register(Arc::downgrade(context) as Weak<dyn AtExit>, &CONTEXTS);
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
