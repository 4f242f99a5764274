// SPDX-License-Identifier: BSD-2-Clause
//! How libfabric meets the provider: parameters, `fi_getinfo`, `fi_fabric`.

use std::{
    net::SocketAddrV4,
    sync::{Arc, Once},
};

use ffi::{
    Errno, flags,
    host::Host,
    info::{FabricAttr, Info},
    provider::{Provider, Query, param},
    sys,
};
use nic::params::{PARAMS, Params};

use crate::{address, attr, fabric::Fabric, report};

/// The provider `tcam`.
#[derive(Debug)]
pub(crate) struct Tcam;

/// The parameters in force.
///
/// # Errors
/// `EINVAL` for a value or a name that is not allowed: running another
/// experiment than the one asked for would be worse than not running.
pub(crate) fn params() -> Result<Params, Errno> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    Params::check_names(names).and_then(|()| Params::from_lookup(param)).map_err(|error| {
        tracing::error!("{error}");
        // libfabric shows no log by default, and MPI only says that it found no
        // provider; it asks several times.
        static SAID: Once = Once::new();
        SAID.call_once(|| eprintln!("tcam: {error}"));
        Errno::EINVAL
    })
}

impl Provider for Tcam {
    type Fabric = Fabric;
    const NAME: &'static std::ffi::CStr = c"tcam";
    const VERSION: u32 = attr::VERSION;

    fn params() -> impl Iterator<Item = (&'static str, String)> {
        PARAMS.iter().map(|param| {
            let default = if param.default.is_empty() { "none" } else { param.default };
            let help = format!("{} ({}; default: {default})", param.help, param.values.describe());
            (param.name, help)
        })
    }

    fn getinfo(query: Query<'_>) -> Result<Vec<Info>, Errno> {
        let params = params()?;
        let offer = attr::offer(params.number("eager_size"), query.version);
        let mut info = match &query.hints {
            Some(hints) => attr::meet(offer, hints)?,
            None => offer,
        };
        if query.flags & flags::PROV_ATTR_ONLY != 0 {
            return Ok(vec![info]);
        }
        let (source, dest) = addresses(&query)?;
        info.src_addr = source.map(|address| address::to_bytes(address).to_vec());
        info.dest_addr = dest.map(|address| address::to_bytes(address).to_vec());
        Ok(vec![info])
    }

    fn fabric(attr: &FabricAttr) -> Result<Arc<Fabric>, Errno> {
        if attr.name.as_deref().is_some_and(|name| !name.eq_ignore_ascii_case(attr::FABRIC)) {
            return Err(Errno::ENODATA);
        }
        Ok(Arc::new(Fabric::new(attr.api_version)))
    }

    fn cleanup() {
        report::write_all_open();
    }
}

/// Version of the host libfabric for people.
pub(crate) fn libfabric_version() -> String {
    let version = Host::get().map_or(0, Host::version);
    format!("{}.{}", version >> 16, version & 0xffff)
}

/// Source and destination of a query: node and service name one of them, the
/// hints may name both.
fn addresses(query: &Query<'_>) -> Result<(Option<SocketAddrV4>, Option<SocketAddrV4>), Errno> {
    let hinted = |pick: fn(&Info) -> &Option<Vec<u8>>| {
        query.hints.as_ref().and_then(|hints| pick(hints).as_deref()).map(|bytes| {
            address::from_bytes(bytes).ok_or_else(|| {
                tracing::info!("an address in the hints is no sockaddr_in");
                Errno::ENODATA
            })
        })
    };
    let mut source = hinted(|hints| &hints.src_addr).transpose()?;
    let mut dest = hinted(|hints| &hints.dest_addr).transpose()?;
    if query.node.is_some() || query.service.is_some() {
        let numeric = query.flags & flags::NUMERICHOST != 0;
        let named = address::resolve(query.node, query.service, numeric)?;
        if query.flags & flags::SOURCE != 0 {
            if !address::is_local(*named.ip()) {
                tracing::info!("{named} is not an address of this host");
                return Err(Errno::ENODATA);
            }
            source = Some(named);
        } else {
            dest = Some(named);
        }
    }
    let source = source.unwrap_or_else(|| {
        let loopback = dest.is_some_and(|dest| dest.ip().is_loopback());
        let ip = if loopback { std::net::Ipv4Addr::LOCALHOST } else { address::of_this_host() };
        SocketAddrV4::new(ip, 0)
    });
    Ok((Some(source), dest))
}

/// Whether an API version has a feature that came with another.
pub(crate) fn api_at_least(version: u32, major: u32, minor: u32) -> bool {
    version >= major << 16 | minor
}

/// `FI_THREAD_DOMAIN`: the application serialises all access to a domain.
pub(crate) fn needs_locks(threading: u32) -> bool {
    threading != sys::FI_THREAD_DOMAIN
}
