// SPDX-License-Identifier: BSD-2-Clause
//! The matching engines of NICs, to which endpoints are assigned in turn. Cassini's driver does so
//! when an endpoint is opened (shs-cxi-driver, `cass_lni.c`). A trace does not have that order, so the
//! order of ranks is assumed.

use std::collections::{BTreeMap, BTreeSet};

use super::Trace;
use crate::results::Endpoint;

/// The engines of all NICs, numbered from the first NIC on.
#[derive(Debug)]
pub(crate) struct NicEngines {
    of_endpoints: BTreeMap<Endpoint, usize>,
    /// Largest number of endpoints of a NIC.
    pub(crate) endpoints_a_nic: usize,
    /// Number of all engines.
    pub(crate) number: usize,
}

impl NicEngines {
    /// Assigns the endpoints of traces to the engines of their NICs, each of which has `engines`.
    pub(crate) fn of<'a>(traces: impl IntoIterator<Item = &'a Trace>, engines: usize) -> Self {
        let mut nics: BTreeMap<_, Vec<(Endpoint, Option<u32>)>> = BTreeMap::new();
        let mut known = BTreeSet::new();
        for trace in traces {
            let endpoint = trace.endpoint();
            if known.insert(endpoint.clone()) {
                nics.entry(trace.host()).or_default().push((endpoint, trace.header.rank));
            }
        }
        let endpoints_a_nic = nics.values().map(Vec::len).max().unwrap_or(0);
        let number = nics.len() * engines;
        let of_nic = |(nic, members): (usize, Vec<(Endpoint, Option<u32>)>)| {
            let ranks: Vec<_> = members.iter().map(|(_, rank)| *rank).collect();
            let places = places(&ranks);
            let engine = move |place: usize| nic * engines + place % engines;
            members.into_iter().zip(places).map(move |((of, _), place)| (of, engine(place)))
        };
        let of_endpoints = nics.into_values().enumerate().flat_map(of_nic).collect();
        Self { of_endpoints, endpoints_a_nic, number }
    }

    /// Returns the engine of an endpoint, which must be one of those with a trace.
    pub(crate) fn engine(&self, endpoint: &Endpoint) -> usize {
        self.of_endpoints[endpoint]
    }
}

/// Returns the places of the endpoints of a NIC in the order in which they were opened. A rank whose
/// trace is missing keeps its place if each rank has one endpoint and the numbers are in equal steps,
/// apart from missing ones.
fn places(ranks: &[Option<u32>]) -> Vec<usize> {
    let in_turn = || (0..ranks.len()).collect();
    let numbers: Option<Vec<u32>> = ranks.iter().copied().collect();
    let Some(numbers) = numbers.filter(|of| of.is_sorted_by(|one, next| one < next)) else {
        return in_turn();
    };
    let step = numbers.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1);
    let steps = numbers.iter().map(|rank| rank - numbers[0]);
    match steps.clone().all(|steps| steps % step == 0) {
        true => steps.map(|steps| (steps / step) as usize).collect(),
        false => in_turn(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_rank_keeps_its_place() {
        let places = |ranks: &[u32]| places(&ranks.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(places(&[0, 1, 2, 3]), [0, 1, 2, 3]);
        assert_eq!(places(&[4, 5, 7]), [0, 1, 3]);
        assert_eq!(places(&[1, 3, 7]), [0, 1, 3]);
        assert_eq!(places(&[9]), [0]);
        // Steps that differ, or two endpoints of a rank.
        assert_eq!(places(&[0, 2, 5]), [0, 1, 2]);
        assert_eq!(places(&[0, 0, 1]), [0, 1, 2]);
        assert_eq!(super::places(&[Some(0), None]), [0, 1]);
    }
}
