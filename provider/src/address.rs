// SPDX-License-Identifier: BSD-2-Clause
//! Addresses: conversion from and to `sockaddr_in`, resolution of names, and the port that an
//! endpoint holds.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs as _},
    os::fd::OwnedFd,
    sync::LazyLock,
    time::Duration,
};

use channel::address::BACKLOG;
use ffi::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};

/// Number of further attempts to hold a port that is in use.
const TRIES: u32 = 10;
/// Time between attempts.
const WAIT: Duration = Duration::from_millis(2);

/// Length in bytes of `struct sockaddr_in`.
pub(crate) const LEN: usize = 16;

/// Returns the name of the endpoint at an address: a `struct sockaddr_in`. Its `sin_zero` contains
/// `secret`, which peers on other hosts must prove to know, or 0.
pub(crate) fn to_name(address: SocketAddrV4, secret: u64) -> [u8; LEN] {
    let mut bytes = to_bytes(address);
    bytes[8..].copy_from_slice(&secret.to_ne_bytes());
    bytes
}

/// Returns the secret in a name that [`to_name`] returned, or 0 if it has no secret.
pub(crate) fn secret_of(name: &[u8]) -> u64 {
    let secret = name.get(8..LEN).and_then(|bytes| bytes.try_into().ok());
    secret.map_or(0, u64::from_ne_bytes)
}

/// Returns the `struct sockaddr_in` of an address, without a secret.
pub(crate) fn to_bytes(address: SocketAddrV4) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    bytes[4..8].copy_from_slice(&address.ip().octets());
    bytes
}

/// Returns the address in a `struct sockaddr_in`; `None` if there are too few bytes or they are not
/// of `AF_INET`.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<SocketAddrV4> {
    let bytes: &[u8; LEN] = bytes.get(..LEN)?.try_into().ok()?;
    let [f0, f1, p0, p1, a, b, c, d, ..] = *bytes;
    (u16::from_ne_bytes([f0, f1]) == libc::AF_INET as u16)
        .then(|| SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([p0, p1])))
}

/// Returns the address of a node and a port. Without a node, it is an address of this host; without
/// a service, the port is 0. If `numeric`, only an IPv4 address is accepted as node.
///
/// # Errors
/// `ENODATA` if the node has no IPv4 address, or the service is not a port number.
pub(crate) fn resolve(
    node: Option<&str>,
    service: Option<&str>,
    numeric: bool,
) -> Result<SocketAddrV4, Errno> {
    let port = match service {
        None => 0,
        Some(service) => service.parse().map_err(|_| {
            tracing::info!("service {service} is not a port number");
            Errno::ENODATA
        })?,
    };
    let Some(node) = node else { return Ok(SocketAddrV4::new(of_this_host(), port)) };
    if let Ok(ip) = node.parse::<Ipv4Addr>() {
        return Ok(SocketAddrV4::new(ip, port));
    }
    if numeric {
        return Err(Errno::ENODATA);
    }
    let mut resolved = (node, port).to_socket_addrs().ok().into_iter().flatten();
    resolved
        .find_map(|address| match address {
            SocketAddr::V4(address) => Some(address),
            SocketAddr::V6(_) => None,
        })
        .ok_or_else(|| {
            tracing::info!("node {node} has no IPv4 address");
            Errno::ENODATA
        })
}

/// Returns the address of this host for peers: that of the interface `FI_TCP_IFACE`, or else that
/// of the first interface that is not loopback, or else 127.0.0.1.
pub(crate) fn of_this_host() -> Ipv4Addr {
    static ADDRESS: LazyLock<Ipv4Addr> = LazyLock::new(|| {
        let wanted = std::env::var("FI_TCP_IFACE").unwrap_or_default();
        let named = interfaces().iter().find(|(name, _)| *name == wanted);
        let first = || interfaces().iter().find(|(_, ip)| !ip.is_loopback());
        named.or_else(first).map_or(Ipv4Addr::LOCALHOST, |(_, ip)| *ip)
    });
    *ADDRESS
}

/// Returns whether an address belongs to this host.
pub(crate) fn is_local(ip: Ipv4Addr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || interfaces().iter().any(|(_, own)| *own == ip)
}

/// Returns the names and IPv4 addresses of the interfaces of this host. They are read once, because
/// each peer of a large job is compared with them.
fn interfaces() -> &'static [(String, Ipv4Addr)] {
    static INTERFACES: LazyLock<Vec<(String, Ipv4Addr)>> = LazyLock::new(|| {
        let all = if_addrs::get_if_addrs().unwrap_or_default().into_iter();
        all.filter_map(|interface| match interface.ip() {
            std::net::IpAddr::V4(ip) => Some((interface.name, ip)),
            std::net::IpAddr::V6(_) => None,
        })
        .collect()
    });
    &INTERFACES
}

/// How a port is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Peers cannot connect to the port.
    Quietly,
    /// Peers can connect to the port. It can be held although the kernel still has connections of
    /// an earlier holder.
    Listening,
}

/// Holds a port of this host, so that no other endpoint or server gets it; port 0 requests any
/// unused one. Returns the socket that holds the port, and the address with the port. For 0.0.0.0,
/// that is the address of this host for peers.
///
/// # Errors
/// `EADDRNOTAVAIL` if the address is not of this host, `EADDRINUSE` if the port is still in use
/// after all attempts, or another error of the socket.
pub(crate) fn hold_port(
    address: SocketAddrV4,
    how: Hold,
) -> Result<(OwnedFd, SocketAddrV4), Errno> {
    if !is_local(*address.ip()) {
        tracing::warn!("{address} is not an address of this host");
        return Err(Errno::EADDRNOTAVAIL);
    }
    let mut tries = 0;
    let (socket, port) = loop {
        match hold(address.port(), how) {
            // The port may become free in a moment: a process may be checking it with [`is_held`],
            // or an endpoint may be closing.
            Err(rustix::io::Errno::ADDRINUSE) if address.port() != 0 && tries < TRIES => {
                tries += 1;
                std::thread::sleep(WAIT);
            }
            held => {
                break held.map_err(|error| {
                    tracing::warn!("cannot hold port {}: {error}", address.port());
                    io::Error::from(error)
                })?;
            }
        }
    };
    let ip = if address.ip().is_unspecified() { of_this_host() } else { *address.ip() };
    Ok((socket, SocketAddrV4::new(ip, port)))
}

fn hold(port: u16, how: Hold) -> rustix::io::Result<(OwnedFd, u16)> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        Some(ipproto::TCP),
    )?;
    // With this option, two sockets can bind one port, but only one of them can listen on it. For
    // port 0, the kernel must choose an unused port.
    rustix::net::sockopt::set_socket_reuseaddr(&socket, how == Hold::Listening && port != 0)?;
    // The port is held on every address of the host, because it identifies one endpoint.
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    if how == Hold::Listening {
        // Accepted connections inherit the option. After their end, the kernel keeps some of them
        // for a while, and without the option they would keep later endpoints from the port.
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::listen(&socket, BACKLOG)?;
    }
    let name = SocketAddrV4::try_from(rustix::net::getsockname(&socket)?)?;
    Ok((socket, name.port()))
}

/// Returns whether an endpoint or a server holds a port.
pub(crate) fn is_held(port: u16) -> bool {
    // With `Listening`, connections of an earlier holder that the kernel still has do not count.
    hold(port, Hold::Listening).err() == Some(rustix::io::Errno::ADDRINUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_secrets_round_trip() {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 4711);
        assert_eq!(from_bytes(&to_bytes(address)), Some(address));
        let name = to_name(address, u64::MAX - 7);
        assert_eq!((from_bytes(&name), secret_of(&name)), (Some(address), u64::MAX - 7));
        assert_eq!(secret_of(&to_bytes(address)), 0);
        assert_eq!(from_bytes(&[0; LEN]), None);
        assert_eq!(from_bytes(&[2, 0]), None);
    }

    #[test]
    fn names_are_resolved() {
        let localhost = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7);
        assert_eq!(resolve(Some("127.0.0.1"), Some("7"), true), Ok(localhost));
        assert_eq!(resolve(Some("localhost"), Some("7"), false), Ok(localhost));
        assert_eq!(resolve(Some("localhost"), None, true), Err(Errno::ENODATA));
        assert_eq!(resolve(None, Some("no port"), false), Err(Errno::ENODATA));
    }

    fn is_held_once(first: Hold, second: Hold) {
        let localhost = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let (socket, address) = hold_port(localhost, first).unwrap();
        assert_ne!(address.port(), 0);
        assert_eq!(hold_port(address, second).unwrap_err(), Errno::EADDRINUSE);
        assert!(is_held(address.port()));
        drop(socket);
        assert!(!is_held(address.port()));
        drop(hold_port(address, second).unwrap());
    }

    #[test]
    fn a_port_is_held_once() {
        is_held_once(Hold::Quietly, Hold::Quietly);
        is_held_once(Hold::Quietly, Hold::Listening);
        is_held_once(Hold::Listening, Hold::Quietly);
        is_held_once(Hold::Listening, Hold::Listening);
        let far = SocketAddrV4::new(Ipv4Addr::new(240, 0, 0, 1), 0);
        assert_eq!(hold_port(far, Hold::Quietly).unwrap_err(), Errno::EADDRNOTAVAIL);
    }

    #[test]
    fn connections_that_have_ended_do_not_hold_a_port() {
        let localhost = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let (socket, address) = hold_port(localhost, Hold::Listening).unwrap();
        let there = std::net::TcpStream::connect(address).unwrap();
        // The end that closes first keeps the port for a minute.
        drop(rustix::net::accept(&socket).unwrap());
        drop((there, socket));
        assert!(!is_held(address.port()));
        drop(hold_port(address, Hold::Listening).unwrap());
    }
}
