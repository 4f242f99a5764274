// SPDX-License-Identifier: BSD-2-Clause
//! Admission to the table: by the overflow model, the pool, and the elements already waiting.

use super::{Location, Offload, Stay};
use crate::counters::Block;
use crate::engine::{Engine, HostHit};
use crate::{Leave, Overflow};

impl Offload {
    /// Checks whether an element may enter the table. If so, an entry is drawn from the pool.
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
            Overflow::Sticky if self.software => return Err(Block::Sticky),
            Overflow::Sticky if self.is_to_leave() => return Err(Block::Preemptive),
            Overflow::Sticky => {}
        }
        self.draw()
    }

    /// Returns true if the queue must leave the table before it is full.
    fn is_to_leave(&self) -> bool {
        let Leave { above, half_pool, .. } = self.leave;
        above.is_some_and(|above| self.len() >= above)
            || half_pool && self.pool.as_ref().is_some_and(|pool| pool.is_half_taken())
    }

    /// Returns true if every new element goes to the host for good ([`Overflow::Sticky`]).
    #[inline]
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.overflow == Overflow::Sticky && self.software
    }

    /// Leaves the table for good ([`Overflow::Sticky`]): every new element goes to the host, and if
    /// [`Leave::takes_along`] is set, those in the table move there as well. Called when this queue
    /// spills, or when the other queue of the context has left its table.
    #[cold]
    pub fn leave(&mut self) {
        if self.has_left() || self.overflow != Overflow::Sticky || self.table.capacity() == 0 {
            return;
        }
        self.software = true;
        if self.leave.takes_along && self.on_host() == 0 {
            self.onload();
        }
    }

    /// Moves the elements of the table to the host, which is empty, oldest first.
    fn onload(&mut self) {
        let elements: Vec<_> = self.table.iter().collect();
        for (handle, element) in elements {
            let Location::Table { age, .. } = self.locations[element.token as usize] else {
                unreachable!("the table's elements have a place in the table");
            };
            self.remove_from_table(handle);
            if let Some(pool) = &self.pool {
                pool.give_back();
            }
            let handle = self.insert_on_host(element, age);
            self.locations[element.token as usize] = Location::Host { handle, stay: Stay::No };
            self.waiting += 1;
            self.counters.onloads += 1;
            if let Some(timing) = &self.timing {
                self.counters.modelled.charge_spill(timing);
            }
        }
        self.counters.host_high_water = self.counters.host_high_water.max(self.on_host() as u64);
    }

    /// Returns true if [`Offload::has_room`] must be called before [`Offload::insert`].
    #[inline]
    #[must_use]
    pub fn is_flow_controlled(&self) -> bool {
        self.overflow == Overflow::FlowControl && self.table.capacity() != 0
    }

    /// Returns true if an element may be inserted now. If not, its poster or sender is held back,
    /// which counts once until an element is admitted.
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

    /// Returns true if senders must wait because some messages found no entry.
    #[inline]
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.waiting != 0 && self.is_flow_controlled()
    }

    /// Draws an entry from the pool, if there is a pool.
    pub(super) fn draw(&self) -> Result<(), Block> {
        if self.table.is_full() {
            return Err(Block::TableFull);
        }
        self.pool.as_ref().map_or(Ok(()), |pool| pool.take().map_err(Block::from))
    }

    /// Gives a free entry to the oldest host element or, if that may not enter, back to the pool.
    pub(super) fn pass_on(&mut self) -> Result<(), Block> {
        let promoted = self.promote();
        if let (Err(_), Some(pool)) = (promoted, &self.pool) {
            pool.give_back();
        }
        promoted
    }

    /// Moves the host elements that wait for the table into it, oldest first.
    #[cold]
    pub(super) fn promote_waiting(&mut self) -> Result<(), Block> {
        while self.waiting > 0 {
            self.draw()?;
            self.pass_on()?;
        }
        Ok(())
    }

    /// Moves the oldest host element into the table, unless it may not enter. The table must have
    /// room, and an entry from the pool must have been drawn.
    fn promote(&mut self) -> Result<(), Block> {
        if !self.overflow.promotes() || self.waiting == 0 {
            return Err(Block::Order);
        }
        let Some(oldest) = self.host.oldest().filter(|oldest| self.stay(oldest.token) == Stay::No)
        else {
            return Err(Block::Order);
        };
        self.waiting -= 1;
        self.move_up(oldest);
        Ok(())
    }

    /// Moves the elements on the host into the table, oldest first, including short receives. It
    /// stops if the table is full or at an element that must stay. A long receive is worth it
    /// (`TM_FORCE_THRESH` of UCX). Does nothing if the queue has left its table.
    pub fn force(&mut self) {
        if self.has_left() {
            return;
        }
        while let Some(oldest) = self.host.oldest() {
            let stay = self.stay(oldest.token);
            if stay == Stay::Always || self.draw().is_err() {
                return;
            }
            self.waiting -= usize::from(stay == Stay::No);
            self.refused -= usize::from(stay == Stay::Short);
            self.move_up(oldest);
        }
    }

    /// Moves the oldest host element into the table, which has room and an entry for it.
    fn move_up(&mut self, oldest: HostHit) {
        let element = self.host.element(oldest.handle);
        self.remove_from_host(oldest.handle);
        let handle = self.insert_in_table(element).expect("there is room");
        self.locations[element.token as usize] = Location::Table { handle, age: oldest.age };
        self.counters.promotions += 1;
        if let Some(timing) = &self.timing {
            self.counters.modelled.charge_promotion(timing);
        }
        self.note_table_growth();
    }

    fn stay(&self, token: u32) -> Stay {
        match self.locations[token as usize] {
            Location::Host { stay, .. } => stay,
            _ => unreachable!("the host's elements have a place on the host"),
        }
    }
}
