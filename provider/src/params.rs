// SPDX-License-Identifier: BSD-2-Clause
//! The `FI_TCAM_*` parameters of this process, and the meaning of the application's API version and
//! threading level.

use std::path::Path;

use ffi::{Errno, host::Host, provider::param, sys};
use nic::params::{
    ParamError, Params,
    config::{self, Config, ConfigError},
};

use crate::{device::clusters, job};

/// The reason why there are no parameters.
#[derive(Debug, thiserror::Error)]
enum ParamsError {
    #[error("{0}")]
    Param(#[from] ParamError),
    #[error("FI_TCAM_CONFIG={file}: {error}")]
    Config { file: String, error: ConfigError },
}

/// The parameters of this process.
///
/// # Errors
/// `EINVAL` for a value or a name that is not allowed: running an experiment other than the
/// requested one would be worse than not running.
pub(crate) fn params() -> Result<Params, Errno> {
    let params = in_force().map_err(|error| {
        tracing::error!("{error}");
        Errno::EINVAL
    })?;
    clusters::check(&params)?;
    Ok(params)
}

fn in_force() -> Result<Params, ParamsError> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    Params::check_names(names)?;
    let config = config()?;
    let set = |name: &str| param(name).or_else(|| config.get(name).map(str::to_owned));
    Ok(job::of_each_rank(Params::from_lookup(set)?)?)
}

/// The contents of the settings file, if one is named.
fn config() -> Result<Config, ParamsError> {
    let Some(file) = param(config::NAME) else { return Ok(Config::default()) };
    let opened = host::regular::open(Path::new(&file)).map_err(ConfigError::from);
    let read = opened.and_then(|mut opened| Config::read(&mut opened));
    read.map_err(|error| ParamsError::Config { file, error })
}

/// Version of the loaded libfabric, as text.
pub(crate) fn libfabric_version() -> String {
    let version = Host::get().map_or(0, Host::version);
    format!("{}.{}", version >> 16, version & 0xffff)
}

/// Returns whether an API version has a feature of version `major.minor`.
pub(crate) const fn api_at_least(version: u32, major: u32, minor: u32) -> bool {
    version >= major << 16 | minor
}

/// Returns whether calls need locks. With `FI_THREAD_DOMAIN`, the application serialises all access
/// to a domain.
pub(crate) fn needs_locks(threading: u32) -> bool {
    threading != sys::FI_THREAD_DOMAIN
}
