// SPDX-License-Identifier: BSD-2-Clause
//! Finds the endpoints of traces by the addresses that other traces have.

use nic::trace::{Address, Header};
use rustc_hash::FxHashMap as HashMap;

use crate::traces::Trace;

/// Returns the traces of tagged messages.
pub(crate) fn tagged(traces: &[Trace]) -> Vec<Trace> {
    traces.iter().filter(|trace| trace.header.context == "tagged").cloned().collect()
}

/// Numbers of endpoints, such as their ranks, by address.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    by_address: HashMap<String, u32>,
    /// Numbers by host and port: addresses of a host with the same port belong to one endpoint.
    by_port: HashMap<(String, u16), u32>,
}

impl Endpoints {
    /// Makes the map of endpoints whose traces have these headers.
    pub(crate) fn of<'a>(endpoints: impl IntoIterator<Item = (&'a Header, u32)>) -> Self {
        let mut all = Self::default();
        for (header, number) in endpoints {
            all.by_address.insert(header.address.clone(), number);
            let port = header.address.rsplit(':').next().and_then(|port| port.parse().ok());
            all.by_port.extend(port.map(|port| ((header.host.clone(), port), number)));
        }
        all
    }

    /// Returns the ranks by their addresses, from the traces that are present.
    pub(crate) fn ranks(traces: &[Trace]) -> Self {
        let headers = traces.iter().map(|trace| &trace.header);
        Self::of(headers.filter_map(|header| Some((header, header.rank?))))
    }

    /// Returns the number of the endpoint with this address, or with this port on this host.
    /// Returns `None` if no trace of that endpoint is present.
    pub(crate) fn at(&self, host: &str, Address { ip, port }: Address) -> Option<u32> {
        let address = format!("{}:{port}", std::net::Ipv4Addr::from(ip));
        let same = || self.by_port.get(&(host.to_owned(), port));
        self.by_address.get(&address).or_else(same).copied()
    }
}
