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

/// The reason why the parameters cannot be used.
#[derive(Debug, thiserror::Error)]
enum ParamsError {
    #[error("{0}")]
    Param(#[from] ParamError),
    #[error("FI_TCAM_CONFIG={file}: {error}")]
    Config { file: String, error: ConfigError },
}

/// Returns the parameters of this process.
///
/// # Errors
/// `EINVAL` for an invalid name or value, or for a file that cannot be used. The application then
/// gets no provider: a run with other settings than the requested ones would give misleading
/// results.
pub(crate) fn params() -> Result<Params, Errno> {
    let params = read_params().map_err(|error| {
        tracing::error!("{error}");
        Errno::EINVAL
    })?;
    clusters::check(&params)?;
    Ok(params)
}

fn read_params() -> Result<Params, ParamsError> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    Params::check_names(names)?;
    let config = config()?;
    let set = |name: &str| param(name).or_else(|| config.get(name).map(str::to_owned));
    Ok(job::check_report_pattern(Params::from_lookup(set)?)?)
}

/// Reads the settings file (`FI_TCAM_CONFIG`). Returns empty settings if none is named.
fn config() -> Result<Config, ParamsError> {
    let Some(file) = param(config::NAME) else { return Ok(Config::default()) };
    let opened = host::regular::open(Path::new(&file)).map_err(ConfigError::from);
    let read = opened.and_then(|mut opened| Config::read(&mut opened));
    read.map_err(|error| ParamsError::Config { file, error })
}

/// Returns the version of the loaded libfabric, such as `1.17`.
pub(crate) fn libfabric_version() -> String {
    let version = Host::get().map_or(0, Host::version);
    format!("{}.{}", version >> 16, version & 0xffff)
}

/// Returns whether an API version is `major.minor` or later.
pub(crate) const fn api_at_least(version: u32, major: u32, minor: u32) -> bool {
    version >= major << 16 | minor
}

/// Returns whether calls need locks. With `FI_THREAD_DOMAIN`, the application serialises all access
/// to a domain.
pub(crate) fn needs_locks(threading: u32) -> bool {
    threading != sys::FI_THREAD_DOMAIN
}
