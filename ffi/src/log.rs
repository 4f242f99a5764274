// SPDX-License-Identifier: BSD-2-Clause
//! Forwards `tracing` events to libfabric's log, where `FI_LOG_LEVEL` selects them.
//!
//! The last part of an event's target determines the subsystem. For example, events of
//! `tcam_fi::av` belong to `FI_LOG_AV`, which `FI_LOG_SUBSYS=av` selects.
//!
//! libfabric prints no log by default, and an MPI only reports that an endpoint failed. Therefore
//! an error that the log does not print goes to standard error, once for each place in the code.

use std::{
    collections::HashSet,
    fmt::{self, Write as _},
    io::Write as _,
    sync::{Mutex, PoisonError},
};

use tracing::{
    Event, Level, Metadata, Subscriber, callsite::Identifier, field::Field, field::Visit,
};
use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt as _, registry::LookupSpan};

use crate::{host::Host, sys};

struct FabricLog {
    host: &'static Host,
    provider: usize,
    /// Places in the code whose errors went to standard error.
    printed: Mutex<HashSet<Identifier>>,
}

/// Installs the log. A second call has no effect.
pub(crate) fn install(host: &'static Host, provider: *const sys::fi_provider) {
    let layer = FabricLog { host, provider: provider as usize, printed: Mutex::default() };
    // A failure means that a log is installed already.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer));
}

fn level(level: Level) -> sys::fi_log_level {
    match level {
        Level::ERROR | Level::WARN => sys::FI_LOG_WARN,
        Level::INFO => sys::FI_LOG_INFO,
        Level::DEBUG | Level::TRACE => sys::FI_LOG_DEBUG,
    }
}

fn subsystem(target: &str) -> sys::fi_log_subsys {
    match target.rsplit("::").next().unwrap_or_default() {
        "fabric" => sys::FI_LOG_FABRIC,
        "domain" | "open" => sys::FI_LOG_DOMAIN,
        // Endpoints, their contexts, and their connections to peers.
        "ep" | "ep_shared" | "sep" | "context" | "bind" | "srx" | "stx" | "sizes" | "peers"
        | "liveness" | "diagnosis" | "segment" | "peer" | "senders" | "peer_table"
        | "connections" => sys::FI_LOG_EP_CTRL,
        // Messages, reads, writes and atomic operations.
        "progress" | "inbound" | "rx" | "tx" | "tagged" | "rma" | "rma_target" | "atomic"
        | "copies" | "check" | "matcher" | "flow" => sys::FI_LOG_EP_DATA,
        "av" | "rx_contexts" | "shared_av" => sys::FI_LOG_AV,
        "cq" => sys::FI_LOG_CQ,
        "eq" => sys::FI_LOG_EQ,
        "mr" | "regions" => sys::FI_LOG_MR,
        "cntr" => sys::FI_LOG_CNTR,
        _ => sys::FI_LOG_CORE,
    }
}

impl FabricLog {
    fn provider(&self) -> *const sys::fi_provider {
        self.provider as *const sys::fi_provider
    }

    fn takes(&self, metadata: &Metadata<'_>) -> bool {
        self.host.log_enabled(
            self.provider(),
            level(*metadata.level()),
            subsystem(metadata.target()),
        )
    }

    /// Returns true for the first event of each place in the code.
    fn mark_printed(&self, metadata: &Metadata<'_>) -> bool {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.insert(metadata.callsite())
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for FabricLog {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() == Level::ERROR || self.takes(metadata)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut text = Text(String::new());
        event.record(&mut text);
        if !self.takes(metadata) {
            if self.mark_printed(metadata) {
                // One write, since other ranks write to the same output.
                let line = format!("tcam: {}\n", text.0);
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            return;
        }
        self.host.log(
            self.provider(),
            level(*metadata.level()),
            subsystem(metadata.target()),
            metadata.module_path().unwrap_or_default(),
            metadata.line().unwrap_or_default(),
            &text.0,
        );
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String does not fail.
        let _ = if field.name() == "message" {
            write!(self.0, "{value:?}")
        } else {
            write!(self.0, " {}={value:?}", field.name())
        };
    }
}
