// SPDX-License-Identifier: BSD-2-Clause
//! The configuration of a device, built from parameters by the provider and by replays.

use std::sync::Arc;

use matching::measured::Clock;
use matching::pool::{EntryPool, Share};
use matching::timing::{Costs, Timing};
use matching::{
    EngineConfig, HostEngine, Kernel, Leave, Offload, OffloadConfig, Role, TableError, TagLayout,
};

use crate::clusters::OwnClusters;
use crate::params::{
    Params,
    types::{Auto, Exhausted},
};

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
    /// If an element finds no entry in the pool, the unexpected messages move to the host
    /// ([`Exhausted::Onload`], with `flow-control`).
    pub onloads: bool,
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

/// Returns the share of a pool that the parameters give to an endpoint. The entries for its buffers
/// are reserved, and [`take_buffers`] takes them.
#[must_use]
pub fn share_of(params: &Params) -> Share {
    let reserved = params.pool_reserved.max(params.pool_buffers);
    Share { reserved, max: params.pool_max }
}

/// Takes the entries for the buffers of an endpoint that has just become a member of a pool. Entries
/// that others have taken although they are reserved for it are missing until these give them back.
pub fn take_buffers(params: &Params, pool: &impl EntryPool) {
    for _ in 0..params.pool_buffers {
        if pool.take().is_err() {
            break;
        }
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
            onloads: params.exhausted == Exhausted::Onload,
            clusters: None,
            timing: None,
            clock: None,
            times: params.times.is_on(),
        }
    }
}

#[cfg(test)]
mod tests {
    use matching::pool::LocalPool;
    use matching::timing::EntryCost;

    use super::*;
    use crate::params::{PARAMS, Values};

    #[test]
    fn the_allowed_layouts_are_auto_and_the_known_ones() {
        let layouts = PARAMS.iter().find(|param| param.name == "tag_layout").unwrap().values;
        let Values::Words(["auto", names @ ..]) = layouts else { panic!("{layouts:?}") };
        assert_eq!(names, TagLayout::NAMES);
    }

    fn config(set: &[(&str, &str)]) -> DeviceConfig {
        let lookup = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        DeviceConfig::from_params(&Params::from_lookup(lookup).unwrap(), TagLayout::Mpich)
    }

    #[test]
    fn parameters_of_queues_apply_to_the_right_queue() {
        let plain = config(&[]);
        let DeviceConfig { prq, umq, refuse, promise, times, .. } = plain;
        assert_eq!((refuse, promise, times), (Refuse::default(), Promise::default(), false));
        assert_eq!((prq.depths, prq.kernel), (false, Kernel::best()));
        let roles = [prq, umq].map(|queue| queue.engine_config.role);
        assert_eq!(roles, [Role::Posted, Role::Unexpected]);
        assert_eq!(prq.engine_config.layout, TagLayout::Mpich);
        // CXI onloads unexpected headers.
        let of_prq = Leave { takes_along: false, above: None, half_pool: false };
        assert_eq!((prq.leave, umq.leave), (of_prq, Leave { takes_along: true, ..of_prq }));
        let queues = |name, value| {
            let DeviceConfig { prq, umq, .. } = config(&[(name, value), ("rx_size", "77")]);
            [prq, umq]
        };
        assert_eq!(queues("prq_entries", "5").map(|of| of.entries), [5, umq.entries]);
        assert_eq!(queues("umq_entries", "6").map(|of| of.entries), [prq.entries, 6]);
        let leaves =
            |value| queues("preemptive", value).map(|of| (of.leave.above, of.leave.half_pool));
        assert_eq!(leaves("posted-recv"), [(Some(77), false), (None, false)]);
        assert_eq!(leaves("unexpected-msg"), [(None, false), (Some(77), false)]);
        assert_eq!(leaves("pool"), [(None, true); 2]);
        for of in queues("report", "there") {
            assert!(of.depths);
        }
        for of in queues("kernel", "scalar") {
            assert_eq!(of.kernel, Kernel::Scalar);
        }
        for of in [
            queues("theta", "9"),
            queues("k_col", "9"),
            queues("k_pnp", "9"),
            queues("nprocs", "9"),
        ]
        .map(|[of, _]| of.engine_config)
        {
            let EngineConfig { theta, k_collective, k_point_to_point, processes, .. } = of;
            let changed = [theta, k_collective, k_point_to_point, processes];
            assert_eq!(changed.iter().filter(|value| **value == 9).count(), 1, "{changed:?}");
        }
    }

    #[test]
    fn refusals_and_promises_are_separate() {
        let refuse = |value| {
            let Refuse { any_source, non_contiguous, any_tag, .. } =
                config(&[("refuse", value)]).refuse;
            [any_source, non_contiguous, any_tag]
        };
        assert_eq!(refuse("any-source"), [true, false, false]);
        assert_eq!(refuse("non-contiguous"), [false, true, false]);
        assert_eq!(refuse("any-tag"), [false, false, true]);
        let limits = config(&[("refuse_below", "7"), ("force_above", "8")]).refuse;
        assert_eq!((limits.below, limits.force_above), (7, 8));
        let promise = |name, value| {
            let Promise { no_any_source, no_any_tag } = config(&[(name, value)]).promise;
            [no_any_source, no_any_tag]
        };
        assert_eq!(promise("assert", "no-any-source"), [true, false]);
        assert_eq!(promise("assert", "no-any-tag"), [false, true]);
        assert_eq!(promise("host_engine", "hash"), [true, true]);
        assert_eq!(promise("host_engine", "list"), [false, false]);
        assert!(config(&[("times", "on")]).times);
    }

    #[test]
    fn buffers_are_reserved_and_taken() {
        let set = |set: &[(&str, &str)]| {
            let lookup = |name: &str| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            Params::from_lookup(lookup).unwrap()
        };
        let params = set(&[("pool_buffers", "3"), ("pool_reserved", "2"), ("pool_max", "5")]);
        assert_eq!(share_of(&params), Share { reserved: 3, max: 5 });
        let pool = LocalPool::new(8);
        let first = pool.join(share_of(&params)).unwrap();
        take_buffers(&params, &first);
        assert_eq!(pool.taken(), 3);
        assert_eq!(
            [(); 3].map(|()| first.take().is_ok()),
            [true, true, false],
            "five are its most"
        );
        // Its reserved entries are left for the second endpoint.
        let second = pool.join(share_of(&params)).unwrap();
        take_buffers(&params, &second);
        assert_eq!((pool.taken(), second.take().is_ok()), (8, false));
        assert!(pool.join(share_of(&params)).is_err());
        drop(first);
        assert_eq!((pool.taken(), second.take().is_ok()), (3, true));
        assert_eq!(share_of(&set(&[("pool_buffers", "3"), ("pool_reserved", "7")])).reserved, 7);
    }

    #[test]
    fn each_cost_has_its_parameter() {
        let names = ["table_ns", "up_ns", "host_ns", "down_ns", "spill_ns", "promote_ns"];
        let values: Vec<_> = (1..).zip(names).map(|(ns, name)| (name, ns.to_string())).collect();
        let mut set: Vec<_> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        set.push(("host_entry_ns", "7"));
        let lookup = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let expected = Costs {
            table: 1000,
            up: 2000,
            host: 3000,
            entry: EntryCost::flat(7000),
            down: 4000,
            spill: 5000,
            promote: 6000,
        };
        assert_eq!(costs(&Params::from_lookup(lookup).unwrap()), expected);
    }
}
