// SPDX-License-Identifier: BSD-2-Clause
//! Whether an endpoint has a network, and which (`FI_TCAM_NET`).

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use channel::net::end;
use ffi::{Errno, Result, client::Client};
use nic::params::Params;

use crate::{address, job};

/// What is found by another name in older versions of libfabric.
const ALSO: [(&str, &str); 1] = [("tcp", "net")];

/// The provider below an endpoint that is opened at an address of this host; none if there is to be
/// none.
///
/// # Errors
/// `ENODATA` if there is no provider of that name, or it does not do what is needed; what it answers
/// otherwise.
pub(crate) fn open_below(params: &Params, wanted: SocketAddrV4) -> Result<Option<Client>> {
    let name = match params.text("net") {
        "off" => return Ok(None),
        "auto" if !job::has_several_hosts() => return Ok(None),
        "auto" => "tcp",
        name => name,
    };
    let is_near = wanted.ip().is_loopback();
    let mut opened = open_at(name, Some(&*wanted.ip().to_string()).filter(|_| is_near));
    // Its own choice may be where no other host gets, when an interface has just come up.
    let own = address::of_this_host();
    if let Ok(below) = &opened
        && !is_near
        && !own.is_loopback()
        && ip_of(below).is_some_and(|ip| ip.is_loopback())
    {
        opened = open_at(name, Some(&own.to_string()));
    }
    match opened {
        Ok(below) => {
            tracing::info!("other hosts are reached over {}", below.provider());
            Ok(Some(below))
        }
        Err(errno) => {
            tracing::error!(
                "FI_TCAM_NET={name}: there is no provider of this name below this one that sends \
                 messages between endpoints without connections, several to a receive ({errno}); \
                 fi_info lists the providers there are"
            );
            Err(errno)
        }
    }
}

/// The provider of this name, at an address of this host or where it likes.
fn open_at(name: &str, node: Option<&str>) -> Result<Client> {
    let also = ALSO.iter().filter(|(of, _)| *of == name).map(|(_, also)| *also);
    let mut opened = Err(Errno::ENODATA);
    for provider in std::iter::once(name).chain(also) {
        opened = end::open_below(provider, node);
        if opened.is_ok() {
            break;
        }
    }
    opened
}

/// The address that its peers have of a provider below, if they have one of IP.
fn ip_of(below: &Client) -> Option<Ipv4Addr> {
    address::from_bytes(below.name()).map(|name| *name.ip())
}

/// The address of this host that peers are told: that of the provider below, if it says one.
pub(crate) fn address_of(below: &Client, wanted: SocketAddrV4) -> SocketAddrV4 {
    match ip_of(below).filter(|ip| !ip.is_unspecified() && !ip.is_loopback()) {
        Some(ip) if !wanted.ip().is_loopback() => SocketAddrV4::new(ip, wanted.port()),
        _ => wanted,
    }
}

/// How the network is to be used.
pub(crate) fn settings(params: &Params) -> end::Settings {
    end::Settings {
        key: job::key(params.text("job_key")),
        timeout: Duration::from_secs(params.number("net_timeout") as u64),
    }
}
