// SPDX-License-Identifier: BSD-2-Clause
//! Whether an endpoint has a network, and which (`FI_TCAM_NET`).

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use channel::net::{
    end,
    secret::{Secret, random},
};
use ffi::{Result, client::Client};
use nic::params::Params;

use crate::{address, job};

/// How an endpoint reaches other hosts.
#[derive(Debug)]
pub(crate) struct Network {
    /// Another provider of the same libfabric; without one, connections of its own.
    pub(crate) below: Option<Client>,
}

/// The network of an endpoint that is opened at an address of this host; none if there is to be none.
///
/// # Errors
/// `ENODATA` if there is no provider of the name that `FI_TCAM_NET` has, or it does not do what is
/// needed; what it answers otherwise.
pub(crate) fn open(params: &Params, wanted: SocketAddrV4) -> Result<Option<Network>> {
    let name = match params.text("net") {
        "off" => return Ok(None),
        "auto" if !job::has_several_hosts() => return Ok(None),
        "auto" | "tcp" => return Ok(Some(Network { below: None })),
        name => name,
    };
    let is_near = wanted.ip().is_loopback();
    let mut opened = end::open_below(name, Some(&*wanted.ip().to_string()).filter(|_| is_near));
    // Its own choice may be where no other host gets, when an interface has just come up.
    let own = address::of_this_host();
    if let Ok(below) = &opened
        && !is_near
        && !own.is_loopback()
        && ip_of(below).is_some_and(|ip| ip.is_loopback())
    {
        opened = end::open_below(name, Some(&own.to_string()));
    }
    match opened {
        Ok(below) => {
            tracing::info!("other hosts are reached over {}", below.provider());
            Ok(Some(Network { below: Some(below) }))
        }
        Err(errno) => {
            let hint = match std::env::var("FI_PROVIDER") {
                // libfabric looks for the layers of such a provider among those that it names.
                Ok(listed) if name.contains(';') => format!(
                    "; FI_PROVIDER={listed} hides the layers of {name}: set FI_PROVIDER=tcam,{}",
                    name.replace(';', ",")
                ),
                _ => String::new(),
            };
            tracing::error!(
                "FI_TCAM_NET={name}: there is no provider of this name below this one that sends \
                 messages between endpoints without connections, several to a receive ({errno}); \
                 fi_info lists the providers there are{hint}"
            );
            Err(errno)
        }
    }
}

/// The address that its peers have of a provider below, if they have one of IP.
fn ip_of(below: &Client) -> Option<Ipv4Addr> {
    address::from_bytes(below.name()).map(|name| *name.ip())
}

impl Network {
    /// The address of this host that peers are told: that of the provider below, if it says one.
    pub(crate) fn address(&self, wanted: SocketAddrV4) -> SocketAddrV4 {
        let below = self.below.as_ref().and_then(ip_of);
        match below.filter(|ip| !ip.is_unspecified() && !ip.is_loopback()) {
            Some(ip) if !wanted.ip().is_loopback() => SocketAddrV4::new(ip, wanted.port()),
            _ => wanted,
        }
    }
}

/// The secret of the job: `FI_TCAM_JOB_KEY`; with `FI_TCAM_NET_OPEN=yes` one that everybody knows.
/// Without one, endpoints have secrets of their own, which travel in their names.
fn job_secret(params: &Params) -> Option<Secret> {
    let key = params.text("job_key");
    (!key.is_empty() || params.text("net_open") == "yes").then(|| Secret::of_job(key))
}

/// A new secret for the name of an endpoint with a network; 0 if the job has one.
///
/// # Errors
/// The kernel has no random numbers.
pub(crate) fn own_secret(params: &Params) -> Result<u64> {
    match job_secret(params) {
        Some(_) => Ok(0),
        None => Ok(u64::from_ne_bytes(random()?).max(1)),
    }
}

/// How the network of an endpoint is to be used whose name has the secret `own`.
pub(crate) fn settings(params: &Params, own: u64) -> end::Settings {
    end::Settings {
        job: job_secret(params),
        own: Secret::of_endpoint(own),
        timeout: Duration::from_secs(params.number("net_timeout") as u64),
    }
}
