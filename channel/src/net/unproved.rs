// SPDX-License-Identifier: BSD-2-Clause
//! The accepted connections whose dialers have not yet proved that they know the secret. A stranger
//! may open any number of them. So the connections of each address are counted, and those of the
//! address with the most make room for others.

use std::{collections::HashMap, net::Ipv4Addr};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unproved {
    /// Numbers of the connections, each with the address of its dialer; the oldest first.
    all: Vec<(usize, Ipv4Addr)>,
    /// Number of connections by address, never 0.
    counts: HashMap<Ipv4Addr, usize>,
}

impl Unproved {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of connections from an address.
    pub(super) fn count(&self, address: Ipv4Addr) -> usize {
        self.counts.get(&address).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, number: usize, address: Ipv4Addr) {
        self.all.push((number, address));
        *self.counts.entry(address).or_default() += 1;
    }

    /// Removes a connection, if it is unproved.
    pub(super) fn remove(&mut self, number: usize) {
        let Some(at) = self.all.iter().position(|(other, _)| *other == number) else { return };
        let (_, address) = self.all.remove(at);
        match self.counts.get_mut(&address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.counts.remove(&address)),
        }
    }

    /// Returns the oldest connection from the address with the most connections, and this address.
    pub(super) fn oldest_of_most(&self) -> Option<(usize, Ipv4Addr)> {
        let most = self.counts.values().max()?;
        self.all.iter().copied().find(|(_, address)| self.counts.get(address) == Some(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_with_the_most_connections_makes_room() {
        let [few, many] = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let mut unproved = Unproved::default();
        assert_eq!(unproved.oldest_of_most(), None);
        unproved.add(7, few);
        for number in [3, 9, 4] {
            unproved.add(number, many);
        }
        for number in [3, 9] {
            assert_eq!(unproved.oldest_of_most(), Some((number, many)));
            unproved.remove(number);
        }
        // Of addresses with equal numbers, the one with the oldest connection makes room.
        assert_eq!(unproved.oldest_of_most(), Some((7, few)));
        unproved.remove(7);
        unproved.remove(7);
        assert_eq!((unproved.len(), unproved.count(few), unproved.count(many)), (1, 0, 1));
    }
}
