// SPDX-License-Identifier: BSD-2-Clause
//! Making a device from the `FI_TCAM_*` parameters.

use std::{sync::Arc, time::Instant};

use ffi::{Errno, Result};
use host::{endpoint::Owner, node_pool::NodePool};
use matching::measured::Clock;
use matching::pool::{EntryPool, Share};
use matching::timing::{Costs, Timing};
use nic::{config, config::DeviceConfig, device::Device, params::Params};

use crate::device::{
    carried::{Kept, RecvOp},
    clock::Monotonic,
    clusters,
    directed::Directed,
    pace::Spin,
    tag_layout::tag_layout,
};

/// The timing model, if anything costs something.
fn timing(params: &Params) -> Option<Timing> {
    let costs = config::costs(params);
    (costs != Costs::default()).then(|| Timing { costs, pace: Arc::new(Spin::new()) })
}

/// The membership of the pool, if endpoints share one.
pub(crate) fn node_pool(params: &Params, owner: &Owner) -> Result<Option<Arc<NodePool>>> {
    if params.text("pool") == "endpoint" {
        return Ok(None);
    }
    let number = |name| u32::try_from(params.number(name)).map_err(|_| Errno::EINVAL);
    let share = Share { reserved: number("pool_reserved")?, max: number("pool_max")? };
    let (entries, engines) = (number("pool_entries")?, number("pool_engines")?);
    let pool = NodePool::join(entries, engines, share, owner)?;
    Ok(Some(Arc::new(pool)))
}

/// A device, and the number of processes that it was told of.
pub(crate) fn device(
    params: &Params,
    directed: Directed,
    node_pool: Option<&Arc<NodePool>>,
    opened: Instant,
) -> Result<(Device<RecvOp, Kept>, u32)> {
    let mut config = DeviceConfig {
        pool: node_pool.map(|pool| Arc::clone(pool) as Arc<dyn EntryPool>),
        clusters: clusters::own(params)?,
        timing: timing(params),
        clock: Some(Arc::new(Monotonic::since(opened)) as Arc<dyn Clock>),
        ..DeviceConfig::from_params(params, tag_layout(params, directed.tagged)?)
    };
    // A receive that names no source is refused.
    config.promise.no_any_source |= directed.exact;
    let device = Device::new(&config).map_err(|error| {
        tracing::error!("FI_TCAM_KERNEL={}: {error}", params.text("kernel"));
        Errno::EINVAL
    })?;
    Ok((device, config.prq.engine_config.processes))
}
