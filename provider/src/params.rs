// SPDX-License-Identifier: BSD-2-Clause
//! What is in force in this process: the `FI_TCAM_*` parameters, and what the versions and the
//! threading of the application mean.

use ffi::{Errno, host::Host, provider::param, sys};
use nic::params::Params;

use crate::{device::clusters, job};

/// The parameters in force.
///
/// # Errors
/// `EINVAL` for a value or a name that is not allowed: running another
/// experiment than the one asked for would be worse than not running.
pub(crate) fn params() -> Result<Params, Errno> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let params = Params::check_names(names).and_then(|()| Params::from_lookup(param));
    let params = params.and_then(job::of_each_rank).map_err(|error| {
        tracing::error!("{error}");
        Errno::EINVAL
    })?;
    clusters::check(&params)?;
    Ok(params)
}

/// Version of the host libfabric for people.
pub(crate) fn libfabric_version() -> String {
    let version = Host::get().map_or(0, Host::version);
    format!("{}.{}", version >> 16, version & 0xffff)
}

/// Whether an API version has a feature that came with another.
pub(crate) const fn api_at_least(version: u32, major: u32, minor: u32) -> bool {
    version >= major << 16 | minor
}

/// `FI_THREAD_DOMAIN`: the application serialises all access to a domain.
pub(crate) fn needs_locks(threading: u32) -> bool {
    threading != sys::FI_THREAD_DOMAIN
}
