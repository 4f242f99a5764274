// SPDX-License-Identifier: BSD-2-Clause
//! The interface to libfabric: parameters, `fi_getinfo`, `fi_fabric`.

use std::{net::SocketAddrV4, sync::Arc};

use ffi::{
    Errno, flags,
    info::{FabricAttr, Info},
    provider::{Provider, Query},
    sys,
};
use nic::params::PARAMS;

use crate::{address, attr, fabric::Fabric, mr_mode, params, record::exit, wait::device_thread};

/// The provider `tcam`.
#[derive(Debug)]
pub(crate) struct Tcam;

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
        let params = params::params()?;
        let mr_mode = mr_mode::required(params.mr);
        let offer = attr::offer(params.eager_size, mr_mode, query.version);
        let mut info = match &query.hints {
            Some(hints) => {
                let dgram = hints.ep.as_ref().is_some_and(|ep| ep.kind == sys::FI_EP_DGRAM);
                // libfabric makes this query to find a datagram provider below its own provider of
                // reliable messages. An answer would make it list this provider twice.
                if dgram && query.flags & flags::OFI_CORE_PROV_ONLY != 0 {
                    return Err(Errno::ENODATA);
                }
                attr::meet(offer, hints)?
            }
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
        Ok(Arc::new(Fabric { api_version: attr.api_version }))
    }

    fn cleanup() {
        device_thread::stop_all();
        exit::run_all();
    }
}

/// Returns the source and the destination of a query. Node and service name one of them: the source
/// with `FI_SOURCE`, or else the destination. The hints may name both, but node and service take
/// precedence. If no source is named, the source is an address of this host with port 0: 127.0.0.1
/// for a loopback destination.
///
/// # Errors
/// `ENODATA` if an address in the hints is not a `sockaddr_in`, if node or service cannot be
/// resolved, or if the source is not an address of this host.
fn addresses(query: &Query<'_>) -> Result<(Option<SocketAddrV4>, Option<SocketAddrV4>), Errno> {
    let hinted = |pick: fn(&Info) -> &Option<Vec<u8>>| {
        query.hints.as_ref().and_then(|hints| pick(hints).as_deref()).map(|bytes| {
            address::from_bytes(bytes).ok_or_else(|| {
                tracing::info!("an address in the hints is not a sockaddr_in");
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
            source = Some(named);
        } else {
            dest = Some(named);
        }
    }
    if let Some(source) = source
        && !address::is_local(*source.ip())
    {
        tracing::info!("the source {source} is not an address of this host");
        return Err(Errno::ENODATA);
    }
    let source = source.unwrap_or_else(|| {
        let loopback = dest.is_some_and(|dest| dest.ip().is_loopback());
        let ip = if loopback { std::net::Ipv4Addr::LOCALHOST } else { address::of_this_host() };
        SocketAddrV4::new(ip, 0)
    });
    Ok((Some(source), dest))
}
