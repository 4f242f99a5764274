// SPDX-License-Identifier: BSD-2-Clause
//! The configuration of a device, built from parameters by the provider and by replays.

use std::sync::Arc;

use matching::measured::Clock;
use matching::pool::EntryPool;
use matching::timing::{Costs, Timing};
use matching::{
    EngineConfig, HostEngine, Kernel, Leave, Offload, OffloadConfig, Role, TableError, TagLayout,
};

use crate::clusters::OwnClusters;
use crate::params::{Params, types::Auto};

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
    /// The timing model; `None` if it is off.
    pub timing: Option<Timing>,
    /// Clock for the times of samples, of operations in the timing model, and of measurements.
    /// Without a clock, samples and operations have time 0, and nothing is measured.
    pub clock: Option<Arc<dyn Clock>>,
    /// Whether the clock measures the operations of queues.
    pub times: bool,
}

/// Receives that a device does not accept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refuse {
    /// Refuse receives from any source.
    pub any_source: bool,
    /// Refuse receives into a buffer of several parts.
    pub non_contiguous: bool,
    /// Refuse receives with a buffer of fewer bytes, until a receive of more than `force_above`
    /// bytes is posted.
    pub below: u64,
    /// A receive of more than this many bytes offers all earlier receives to the device again; 0
    /// for never.
    pub force_above: u64,
    /// Refuse receives that ignore the tag or the communicator, or a part of them.
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
            queue = queue.with_clusters(Arc::clone(of_role));
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

/// Builds the configuration of the queue with this role.
fn queue(params: &Params, role: Role, layout: TagLayout) -> OffloadConfig {
    let (entries, leaves) = match role {
        Role::Posted => (params.prq_entries, "posted-recv"),
        Role::Unexpected => (params.umq_entries, "unexpected-msg"),
    };
    OffloadConfig {
        entries,
        table: params.table,
        kernel: match params.kernel {
            Auto::Auto => Kernel::best(),
            Auto::Set(kernel) => kernel,
        },
        engine: params.host_engine,
        engine_config: EngineConfig {
            storage: params.host_storage,
            layout,
            role,
            theta: params.theta,
            k_collective: params.k_col,
            k_point_to_point: params.k_pnp,
            processes: params.nprocs,
        },
        overflow: params.overflow,
        leave: Leave {
            takes_along: role == Role::Unexpected,
            above: params.preemptive.has(leaves).then_some(params.rx_size),
            half_pool: params.preemptive.has("pool"),
        },
        depths: !params.report.is_empty(),
    }
}

/// The costs that the parameters set; all zero if the timing model is off.
#[must_use]
pub fn costs(params: &Params) -> Costs {
    Costs {
        table: params.table_ns.0,
        up: params.up_ns.0,
        host: params.host_ns.0,
        entry: params.host_entry_ns,
        down: params.down_ns.0,
        spill: params.spill_ns.0,
        promote: params.promote_ns.0,
    }
}

impl DeviceConfig {
    /// Creates the configuration that these parameters describe, for match bits of this layout. The
    /// caller adds the parts that need the operating system: a shared pool, clusters, the timing
    /// model and a clock.
    #[must_use]
    pub fn from_params(params: &Params, layout: TagLayout) -> Self {
        let hash = params.host_engine == HostEngine::Hash;
        Self {
            prq: queue(params, Role::Posted, layout),
            umq: queue(params, Role::Unexpected, layout),
            pool: None,
            refuse: Refuse {
                any_source: params.refuse.has("any-source"),
                non_contiguous: params.refuse.has("non-contiguous"),
                any_tag: params.refuse.has("any-tag"),
                below: params.refuse_below,
                force_above: params.force_above,
            },
            // A program that selects the hash engine makes both promises.
            promise: Promise {
                no_any_source: hash || params.assert.has("no-any-source"),
                no_any_tag: hash || params.assert.has("no-any-tag"),
            },
            clusters: None,
            timing: None,
            clock: None,
            times: params.times.is_on(),
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
