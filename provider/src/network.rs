// SPDX-License-Identifier: BSD-2-Clause
//! Decides whether endpoints use the network (`FI_TCAM_NET`), and creates the settings for it.

use std::time::Duration;

use channel::{
    identity::random,
    net::{NetSettings, secret::Secret},
};
use ffi::Result;
use nic::params::{Params, types::Net};

use crate::job;

/// Returns whether endpoints connect to other hosts.
pub(crate) fn is_wanted(params: &Params) -> bool {
    match params.net {
        Net::Auto => job::has_several_hosts(),
        net => net == Net::Tcp,
    }
}

/// Returns the secret of the job: that of `FI_TCAM_JOB_KEY`, or a public one with
/// `FI_TCAM_NET_OPEN=yes`. Returns `None` without either; each endpoint then has its own secret,
/// which is a part of its name.
fn job_secret(params: &Params) -> Option<Secret> {
    let key = &params.job_key;
    (!key.is_empty() || params.net_open.is_on()).then(|| Secret::of_job(key))
}

/// Returns a new random secret for the name of an endpoint, or 0 if the job has a secret.
///
/// # Errors
/// The kernel returns no random numbers.
pub(crate) fn own_secret(params: &Params) -> Result<u64> {
    match job_secret(params) {
        Some(_) => Ok(0),
        None => Ok(u64::from_ne_bytes(random()?).max(1)),
    }
}

/// Returns the network settings of an endpoint with the secret `own` in its name.
pub(crate) fn settings(params: &Params, own: u64) -> NetSettings {
    NetSettings {
        job: job_secret(params),
        own: Secret::of_endpoint(own),
        timeout: Duration::from_secs(params.net_timeout),
        seals: params.net_seal.is_on(),
        has_times: !params.trace.is_empty(),
    }
}
