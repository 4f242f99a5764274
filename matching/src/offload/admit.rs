// SPDX-License-Identifier: BSD-2-Clause
//! Who may enter the table: by the overflow model, the pool, and what waits already.

use super::{Location, Offload};
use crate::Overflow;
use crate::counters::Block;
use crate::engine::Engine;

impl Offload {
    /// Whether an element may enter the table if it has room, with an entry drawn
    /// from the pool.
    #[inline]
    pub(super) fn admit(&mut self) -> Result<(), Block> {
        if self.plain && self.waiting == 0 { Ok(()) } else { self.admit_by_model() }
    }

    fn admit_by_model(&mut self) -> Result<(), Block> {
        match self.overflow {
            Overflow::Spill | Overflow::FlowControl => self.promote_waiting()?,
            Overflow::Prefix if self.on_host() == 0 => {}
            Overflow::Prefix if self.table.is_full() => return Err(Block::TableFull),
            Overflow::Prefix => return Err(Block::Order),
            Overflow::Sticky if !self.software => {}
            Overflow::Sticky => return Err(Block::Sticky),
        }
        self.draw()
    }

    /// Whether [`Offload::has_room`] is to be asked before [`Offload::insert`].
    #[inline]
    #[must_use]
    pub fn is_flow_controlled(&self) -> bool {
        self.overflow == Overflow::FlowControl && self.table.capacity() != 0
    }

    /// Whether an element may be inserted now, or whoever brings it is held back. That
    /// counts once, however often he asks.
    pub fn has_room(&mut self) -> bool {
        if !self.is_flow_controlled() {
            return true;
        }
        let admitted = !self.table.is_full() && self.admit().is_ok();
        if let (true, Some(pool)) = (admitted, &self.pool) {
            pool.give_back();
        }
        self.counters.held_back += u64::from(!admitted && !self.holding);
        self.holding = !admitted;
        admitted
    }

    /// Whether who brings elements is to wait, since some found no entry.
    #[inline]
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.waiting != 0 && self.is_flow_controlled()
    }

    /// Draws an entry from the pool, if there is one.
    pub(super) fn draw(&self) -> Result<(), Block> {
        if self.table.is_full() {
            return Err(Block::TableFull);
        }
        self.pool.as_ref().map_or(Ok(()), |pool| pool.take().map_err(Block::from))
    }

    /// Gives an entry that is there to the oldest host element or, if that may not
    /// enter, back to the pool.
    pub(super) fn pass_on(&mut self) -> Result<(), Block> {
        let promoted = self.promote();
        if let (Err(_), Some(pool)) = (promoted, &self.pool) {
            pool.give_back();
        }
        promoted
    }

    /// Moves host elements that wait for the table into it, oldest first.
    #[cold]
    pub(super) fn promote_waiting(&mut self) -> Result<(), Block> {
        while self.waiting > 0 {
            self.draw()?;
            self.pass_on()?;
        }
        Ok(())
    }

    /// Moves the oldest host element into the table, which has room and an entry
    /// from the pool for it, unless the element may not enter.
    fn promote(&mut self) -> Result<(), Block> {
        if !self.overflow.promotes() || self.waiting == 0 {
            return Err(Block::Order);
        }
        let Some(oldest) = self.host.oldest().filter(|oldest| !self.is_refused(oldest.token))
        else {
            return Err(Block::Order);
        };
        let element = self.host.element(oldest.handle);
        self.remove_from_host(oldest.handle);
        let handle = self.insert_in_table(element).expect("there is room");
        self.locations[element.token as usize] = Location::Table { handle, age: oldest.age };
        self.waiting -= 1;
        self.counters.promotions += 1;
        if let Some(timing) = &self.timing {
            self.counters.modelled.charge_promotion(timing);
        }
        self.note_table_growth();
        Ok(())
    }

    fn is_refused(&self, token: u32) -> bool {
        matches!(self.locations[token as usize], Location::Host { refused: true, .. })
    }
}
