// SPDX-License-Identifier: BSD-2-Clause
//! Reasons why elements are not in the table.

use serde::{Deserialize, Serialize};

use crate::counter_struct;

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

counter_struct! {
    /// Number of elements that went to the host, by reason.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct BlockReasons {
        /// [`Block::TableFull`].
        sum table_full "table full",
        /// [`Block::Disabled`].
        sum disabled "disabled",
        /// [`Block::Order`].
        sum order "order",
        /// [`Block::Sticky`].
        sum sticky "sticky",
        /// [`Block::Preemptive`].
        sum preemptive "preemptive",
        /// [`Block::PoolShare`].
        sum pool_share "pool share",
        /// [`Block::PoolEmpty`].
        sum pool_empty "pool empty",
        /// [`Block::Refused`].
        sum refused "refused",
        /// [`Block::Short`].
        sum short "short",
    }
}

impl BlockReasons {
    /// The reasons with their names for readers.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Self::COUNTERS.iter().map(|reason| (reason.text, (reason.get)(self)))
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
}
