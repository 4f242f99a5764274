// SPDX-License-Identifier: BSD-2-Clause
//! Creates a device, the model of a NIC that matches messages (`nic::device`), from the `FI_TCAM_*`
//! parameters.

use std::{sync::Arc, time::Instant};

use ffi::{Errno, Result};
use host::{node_pool::NodePool, owner::Owner};
use matching::measured::Clock;
use matching::pool::EntryPool;
use matching::timing::{Costs, Timing};
use nic::{
    config::{self, DeviceConfig},
    device::Device,
    params::{Params, types::PoolOwner},
};

use crate::device::{
    carried::{Kept, RecvOp},
    clusters,
    flow::Flow,
    matcher::Matching,
    pace::Spin,
    receive::Directed,
    shared::Shared,
    tag_layout::tag_layout,
};

/// The clock for measurements: nanoseconds since the endpoint was opened, which are read without a
/// system call.
#[derive(Debug)]
struct Monotonic(Instant);

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        // 584 years fit.
        self.0.elapsed().as_nanos() as u64
    }
}

/// Returns the timing model; `None` if all costs are zero.
fn timing(params: &Params) -> Option<Timing> {
    let costs = config::costs(params);
    (costs != Costs::default()).then(|| Timing { costs, pace: Arc::new(Spin::new()) })
}

/// Joins the pool of entries, if endpoints share one; returns `None` otherwise.
pub(crate) fn node_pool(params: &Params, owner: &Owner) -> Result<Option<Arc<NodePool>>> {
    if params.pool == PoolOwner::Endpoint {
        return Ok(None);
    }
    let share = config::share_of(params);
    let pool = NodePool::join(params.pool_entries, params.pool_engines, share, owner)?;
    config::take_buffers(params, &pool);
    Ok(Some(Arc::new(pool)))
}

/// Returns the configuration of a device.
fn config_of(
    params: &Params,
    directed: Directed,
    node_pool: Option<&Arc<NodePool>>,
    opened: Instant,
) -> Result<DeviceConfig> {
    let mut config = DeviceConfig {
        pool: node_pool.map(|pool| Arc::clone(pool) as Arc<dyn EntryPool>),
        clusters: clusters::own(params)?,
        timing: timing(params),
        clock: Some(Arc::new(Monotonic(opened)) as Arc<dyn Clock>),
        ..DeviceConfig::from_params(params, tag_layout(params, directed.tagged))
    };
    // With `FI_EXACT_DIRECTED_RECV`, a directed receive without a source is refused.
    config.promise.no_any_source |= directed.exact;
    Ok(config)
}

/// Creates a device. Returns it with the number of processes in its configuration.
pub(crate) fn device(
    params: &Params,
    directed: Directed,
    node_pool: Option<&Arc<NodePool>>,
    opened: Instant,
) -> Result<(Device<RecvOp, Kept>, u32)> {
    let config = config_of(params, directed, node_pool, opened)?;
    let device = Device::new(&config).map_err(|error| {
        tracing::error!("FI_TCAM_KERNEL={}: {error}", params.text("kernel"));
        Errno::EINVAL
    })?;
    Ok((device, config.prq.engine_config.processes))
}

/// Creates the device of an endpoint that several threads use if `locked`, and otherwise one thread
/// at a time. Returns it with the number of processes in its configuration.
pub(crate) fn matching(
    params: &Params,
    directed: Directed,
    node_pool: Option<&Arc<NodePool>>,
    opened: Instant,
    locked: bool,
) -> Result<(Matching, u32)> {
    let (device, processes) = device(params, directed, node_pool, opened)?;
    let shared = Shared::new(device, Flow::from_params(params), locked);
    Ok((Matching::Own(Arc::new(shared)), processes))
}
