// SPDX-License-Identifier: BSD-2-Clause
//! Reasons why elements are not in the table.

use serde::{Deserialize, Serialize};

use crate::sums::add;

/// The reason why an element is not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// No entry of the table was free.
    TableFull,
    /// The table has no entries at all (capacity 0).
    Disabled,
    /// An entry was free, but older elements are on the host.
    Order,
    /// The context has left its tables, so every new element goes to the host (`sticky`).
    Sticky,
    /// With this element, the context leaves its tables before they are full (`sticky`,
    /// pre-emptive).
    Preemptive,
    /// The endpoint holds its maximum share of a shared pool.
    PoolShare,
    /// The shared pool has no free entry, only entries that are reserved for others, or is damaged.
    PoolEmpty,
    /// The device does not accept this element.
    Refused,
    /// The receive is too short to be offered to the device. A later long receive may force it into
    /// the table.
    Short,
}

/// Number of elements that went to the host, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReasons {
    /// [`Block::TableFull`].
    pub table_full: u64,
    /// [`Block::Disabled`].
    pub disabled: u64,
    /// [`Block::Order`].
    pub order: u64,
    /// [`Block::Sticky`].
    pub sticky: u64,
    /// [`Block::Preemptive`].
    pub preemptive: u64,
    /// [`Block::PoolShare`].
    pub pool_share: u64,
    /// [`Block::PoolEmpty`].
    pub pool_empty: u64,
    /// [`Block::Refused`].
    pub refused: u64,
    /// [`Block::Short`].
    pub short: u64,
}

impl BlockReasons {
    /// The reasons with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        [
            ("table full", self.table_full),
            ("disabled", self.disabled),
            ("order", self.order),
            ("sticky", self.sticky),
            ("preemptive", self.preemptive),
            ("pool share", self.pool_share),
            ("pool empty", self.pool_empty),
            ("refused", self.refused),
            ("short", self.short),
        ]
        .into_iter()
    }

    pub(crate) fn count(&mut self, reason: Block) {
        self.add(reason, 1);
    }

    pub(crate) fn add(&mut self, reason: Block, count: u64) {
        *match reason {
            Block::TableFull => &mut self.table_full,
            Block::Disabled => &mut self.disabled,
            Block::Order => &mut self.order,
            Block::Sticky => &mut self.sticky,
            Block::Preemptive => &mut self.preemptive,
            Block::PoolShare => &mut self.pool_share,
            Block::PoolEmpty => &mut self.pool_empty,
            Block::Refused => &mut self.refused,
            Block::Short => &mut self.short,
        } += count;
    }

    pub(super) fn total(&self) -> i128 {
        self.iter().map(|(_, count)| i128::from(count)).sum()
    }

    /// Adds the counts of another queue.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.table_full, other.table_full);
        add(&mut self.disabled, other.disabled);
        add(&mut self.order, other.order);
        add(&mut self.sticky, other.sticky);
        add(&mut self.preemptive, other.preemptive);
        add(&mut self.pool_share, other.pool_share);
        add(&mut self.pool_empty, other.pool_empty);
        add(&mut self.refused, other.refused);
        add(&mut self.short, other.short);
    }
}
