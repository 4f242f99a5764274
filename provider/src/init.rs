// SPDX-License-Identifier: BSD-2-Clause
//! How libfabric meets the provider: parameters, `fi_getinfo`, `fi_fabric`.

use std::{net::SocketAddrV4, sync::Arc};

use ffi::{
    Errno, flags,
    host::Host,
    info::{FabricAttr, Info},
    provider::{Provider, Query, param},
    sys,
};
use matching::TagLayout;
use nic::params::{PARAMS, Params};

use crate::{address, attr, clusters, device_thread, fabric::Fabric, mr, report};

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
    let params = Params::check_names(names).and_then(|()| Params::from_lookup(param));
    let params = params.and_then(report::of_each_rank).map_err(|error| {
        tracing::error!("{error}");
        Errno::EINVAL
    })?;
    clusters::check(&params)?;
    Ok(params)
}

/// How match bits tell the kind of traffic on an endpoint whose receives may name a
/// source (`FI_DIRECTED_RECV`) or not.
///
/// # Errors
/// `EINVAL` for a name that is none.
pub(crate) fn tag_layout(params: &Params, directed: bool) -> Result<TagLayout, Errno> {
    match params.text("tag_layout") {
        "auto" => {
            // Unreadable: the launcher's variables may still tell.
            let loaded = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let layout = layout_of(&loaded, directed, |name| std::env::var(name).ok());
            tracing::info!("FI_TCAM_TAG_LAYOUT=auto: {layout}");
            Ok(layout)
        }
        name => name.parse().map_err(|_| Errno::EINVAL),
    }
}

/// The layout of the MPI whose library is among the mapped files or, linked
/// statically, whose launcher set its variables.
fn layout_of(maps: &str, directed: bool, variable: impl Fn(&str) -> Option<String>) -> TagLayout {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let libmpi = |version: &str| {
        let mut paths = maps.lines().filter_map(|line| line.split_once('/'));
        paths.find(|(_, path)| {
            let name = name(path);
            name.starts_with("libmpi") && name.contains(version)
        })
    };
    if libmpi(".so.40").is_some() || variable("OMPI_COMM_WORLD_RANK").is_some() {
        return match variable("OMPI_MCA_mtl_ofi_tag_mode").as_deref() {
            Some("ofi_tag_1") => TagLayout::OpenMpiTag1,
            Some("ofi_tag_2") => TagLayout::OpenMpiTag2,
            _ => TagLayout::OpenMpi,
        };
    }
    let mpich = libmpi(".so.12");
    // Intel MPI has the library name of MPICH, and libraries that MPICH has not.
    let intel = mpich.and_then(|(_, path)| path.rsplit_once('/')).is_some_and(|(folder, _)| {
        std::path::Path::new(&format!("/{folder}/libmpi_shm_heap_proxy.so")).exists()
    });
    if intel {
        return TagLayout::IntelMpi;
    }
    if mpich.is_none() && variable("PMI_RANK").is_none() {
        return TagLayout::Opaque;
    }
    // MPICH has the source in its completion-queue data if receives may name one.
    if directed { TagLayout::Mpich } else { TagLayout::MpichSourceInTag }
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
        let mr_mode = mr::required(params.text("mr"));
        let offer = attr::offer(params.number("eager_size"), mr_mode, query.version);
        let mut info = match &query.hints {
            Some(hints) => {
                let dgram = hints.ep.as_ref().is_some_and(|ep| ep.kind == sys::FI_EP_DGRAM);
                // libfabric looks for datagrams to build reliable messages on, and would
                // show us twice.
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
        Ok(Arc::new(Fabric::new(attr.api_version)))
    }

    fn cleanup() {
        device_thread::stop_all();
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

/// Whether an API version has a feature that came with another.
pub(crate) const fn api_at_least(version: u32, major: u32, minor: u32) -> bool {
    version >= major << 16 | minor
}

/// `FI_THREAD_DOMAIN`: the application serialises all access to a domain.
pub(crate) fn needs_locks(threading: u32) -> bool {
    threading != sys::FI_THREAD_DOMAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mpi_loaded_tells_the_layout() {
        let maps = |file: &str| {
            format!(
                "7f00-7f01 r-xp 0 fe:00 9  /usr/lib/libc.so.6\n7f02-7f03 r-xp 0 fe:00 9  {file}\n7f04 rw-p 0\n"
            )
        };
        let layout = |file: &str, set: &[(&str, &str)]| {
            layout_of(&maps(file), true, |name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let debian = "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4";
        assert_eq!(layout(debian, &[("PMI_RANK", "0")]), TagLayout::OpenMpi);
        let tag_1 = [("OMPI_MCA_mtl_ofi_tag_mode", "ofi_tag_1")];
        assert_eq!(layout(debian, &tag_1), TagLayout::OpenMpiTag1);
        for mpich in ["/opt/venv/lib/libmpi.so.12", "/usr/lib/libmpich.so.12.1.10"] {
            assert_eq!(layout(mpich, &[]), TagLayout::Mpich);
            let undirected = layout_of(&maps(mpich), false, |_| None);
            assert_eq!(undirected, TagLayout::MpichSourceInTag);
        }
        // A program without MPI, or with one that is linked statically.
        let other = "/usr/lib/libmpfr.so.6";
        assert_eq!(layout(other, &[]), TagLayout::Opaque);
        assert_eq!(layout(other, &[("PMI_RANK", "1")]), TagLayout::Mpich);
        assert_eq!(layout(other, &[("OMPI_COMM_WORLD_RANK", "1")]), TagLayout::OpenMpi);
    }

    #[test]
    fn intel_mpi_is_told_from_mpich_by_its_other_libraries() {
        let folder = std::env::temp_dir().join(format!("tcam-impi-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("libmpi_shm_heap_proxy.so"), "").unwrap();
        let maps = format!("7f02-7f03 r-xp 0 fe:00 9  {}/libmpi.so.12.0.0\n", folder.display());
        let layout = layout_of(&maps, true, |_| None);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(layout, TagLayout::IntelMpi);
    }
}
