// SPDX-License-Identifier: BSD-2-Clause
//! The configuration of a device, built from parameters by the provider and by replays.

use std::str::FromStr;
use std::sync::Arc;

use matching::measured::Clock;
use matching::pool::EntryPool;
use matching::timing::{Costs, Timing};
use matching::{
    EngineConfig, HostEngine, Kernel, Leave, Offload, OffloadConfig, Role, TableError, TagLayout,
};

use crate::clusters::OwnClusters;
use crate::params::Params;

/// Sizes and behaviour of a device.
#[derive(Clone, Debug, Default)]
pub struct DeviceConfig {
    /// Table and engine of posted receives.
    pub prq: OffloadConfig,
    /// Table and engine of unexpected messages.
    pub umq: OffloadConfig,
    /// Pool from which every table draws its entries. Without one, each table has its own entries.
    pub pool: Option<Arc<dyn EntryPool>>,
    /// Receives that the device refuses and that stay on the host.
    pub refuse: Refuse,
    /// Promises of the program about its receives.
    pub promise: Promise,
    /// Clusters of sources for the `kmeans` engine.
    pub clusters: Option<OwnClusters>,
    /// Costs charged for searches; absent if the timing model is off.
    pub timing: Option<Timing>,
    /// Clock that stamps the samples of queue lengths; absent if there is no clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// Whether the operations of queues are measured by the clock.
    pub times: bool,
}

/// Receives that a device does not accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refuse {
    /// Refuse receives from any source.
    pub any_source: bool,
    /// Refuse receives into a buffer of several parts.
    pub non_contiguous: bool,
    /// Refuse receives with a buffer of fewer bytes, until one of more than `force_above` bytes is
    /// posted.
    pub below: u64,
    /// A receive of more than this many bytes offers all earlier receives to the device again; 0
    /// for never.
    pub force_above: u64,
    /// Refuse receives of any tag, or that ignore other bits by which the MPI distinguishes
    /// messages.
    pub any_tag: bool,
}

/// Promises of a program about its receives (`FI_TCAM_ASSERT`). A receive that breaks a promise
/// is matched like any other, and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// No receive is from any source.
    pub no_any_source: bool,
    /// No receive is of any tag.
    pub no_any_tag: bool,
}

impl DeviceConfig {
    /// Builds a queue of this device.
    pub(crate) fn queue(&self, config: &OffloadConfig) -> Result<Offload, TableError> {
        let mut queue = Offload::new(config)?;
        if let (HostEngine::Kmeans, Some(own)) = (config.engine, &self.clusters) {
            let of_role = match config.engine_config.role {
                Role::Posted => &own.prq,
                Role::Unexpected => &own.umq,
            };
            queue = queue.with_clusters(Arc::clone(of_role))?;
        }
        if let Some(pool) = &self.pool {
            queue = queue.with_pool(Arc::clone(pool));
        }
        if let Some(timing) = &self.timing {
            queue = queue.with_timing(timing.clone());
        }
        if let (true, Some(clock)) = (self.times, &self.clock) {
            queue = queue.with_clock(Arc::clone(clock));
        }
        Ok(queue)
    }
}

/// Parses the value of a parameter that names an engine, table or other kind. The parameter's
/// allowed words are those names; a test compares the two.
fn named<T: FromStr>(params: &Params, name: &str) -> T {
    match params.text(name).parse() {
        Ok(value) => value,
        Err(_) => unreachable!("checked when the parameters were read"),
    }
}

fn number(params: &Params, name: &str) -> u32 {
    u32::try_from(params.number(name)).expect("checked when the parameters were read")
}

/// Builds the configuration of one queue. `entries` names the parameter with the size of its table;
/// `leaves` is the word of `preemptive` that makes it leave the table before it is full.
fn queue(params: &Params, entries: &str, leaves: &str, layout: TagLayout) -> OffloadConfig {
    OffloadConfig {
        entries: params.number(entries),
        table: named(params, "table"),
        kernel: match params.text("kernel") {
            "auto" => Kernel::best(),
            _ => named(params, "kernel"),
        },
        engine: named(params, "host_engine"),
        engine_config: EngineConfig {
            storage: named(params, "host_storage"),
            layout,
            role: if entries == "umq_entries" { Role::Unexpected } else { Role::Posted },
            theta: number(params, "theta"),
            k_collective: number(params, "k_col"),
            k_point_to_point: number(params, "k_pnp"),
            processes: number(params, "nprocs"),
        },
        overflow: named(params, "overflow"),
        leave: Leave {
            takes_along: entries == "umq_entries",
            above: params.has("preemptive", leaves).then(|| params.number("rx_size")),
            half_pool: params.has("preemptive", "pool"),
        },
        depths: !params.text("report").is_empty(),
    }
}

/// The costs that the parameters set; all zero if the timing model is off.
#[must_use]
pub fn costs(params: &Params) -> Costs {
    Costs {
        table: params.thousandths("table_ns"),
        up: params.thousandths("up_ns"),
        host: params.thousandths("host_ns"),
        entry: params.entry_cost("host_entry_ns"),
        down: params.thousandths("down_ns"),
        spill: params.thousandths("spill_ns"),
        promote: params.thousandths("promote_ns"),
    }
}

impl DeviceConfig {
    /// The device that these parameters describe, for match bits of this layout. The caller adds
    /// what needs a host: a shared pool, clusters, the timing model and a clock.
    #[must_use]
    pub fn from_params(params: &Params, layout: TagLayout) -> Self {
        let hash = named::<HostEngine>(params, "host_engine") == HostEngine::Hash;
        Self {
            prq: queue(params, "prq_entries", "posted-recv", layout),
            umq: queue(params, "umq_entries", "unexpected-msg", layout),
            pool: None,
            refuse: Refuse {
                any_source: params.has("refuse", "any-source"),
                non_contiguous: params.has("refuse", "non-contiguous"),
                any_tag: params.has("refuse", "any-tag"),
                below: params.number("refuse_below") as u64,
                force_above: params.number("force_above") as u64,
            },
            // A program that selects the hash engine promises both.
            promise: Promise {
                no_any_source: hash || params.has("assert", "no-any-source"),
                no_any_tag: hash || params.has("assert", "no-any-tag"),
            },
            clusters: None,
            timing: None,
            clock: None,
            times: params.text("times") == "on",
        }
    }
}

#[cfg(test)]
mod tests {
    use matching::TagLayout;

    use crate::params::{PARAMS, Values};

    #[test]
    fn the_allowed_layouts_are_auto_and_the_known_ones() {
        let layouts = PARAMS.iter().find(|param| param.name == "tag_layout").unwrap().values;
        let Values::Words(["auto", names @ ..]) = layouts else { panic!("{layouts:?}") };
        assert_eq!(names, TagLayout::NAMES);
    }
}
