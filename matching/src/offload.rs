// SPDX-License-Identifier: BSD-2-Clause
//! One matching queue (posted receives or unexpected messages): a bounded table, as on a NIC, and a
//! host engine for the elements that do not fit.
//!
//! ```text
//!            insert                 search
//!              |                      | oldest match, wherever it lies
//!              v                      v
//!        [ table, bounded ]  ---> [ host engine, unbounded ]
//!              ^       spill when full       |
//!              +------ promote when an entry becomes free (oldest first)
//! ```
//!
//! With [`Overflow::Spill`] the table always holds the oldest elements: an element spills only if
//! the table is full, and an entry that becomes free is filled at once with the oldest element of
//! the host. Elements that the device refuses ([`Offload::refuse`]) stay on the host, and younger
//! elements there are not promoted past them. The table may then hold elements younger than those
//! on the host. So a search that finds a match in both places compares their ages.
//!
//! The entries of the table may come from a pool that other tables share ([`Offload::with_pool`]).
//! Then an element also spills if the pool has no entry for it. With [`Overflow::Spill`] elements
//! on the host still enter the table before any younger element, and an entry that becomes free
//! goes to the oldest element on the host.

mod config;
mod observe;
mod tables;

pub use config::OffloadConfig;
pub use tables::{TableKind, UnknownTable};

use std::sync::Arc;

use tables::Tables;
use ternary_cam::{Handle, Hit, Scanner, TableError};

use crate::counters::{Block, QueueCounters, SearchDepth, Traversals};
use crate::curve::Curve;
use crate::engine::{Clusters, Host, HostEngine, HostHandle, HostHit, HostPlan};
use crate::measured::{Clock, Watch};
use crate::pool::EntryPool;
use crate::sources::AddedBySource;
use crate::timing::Timing;
use crate::traffic::Classifier;
use crate::{Element, Key, Leave, Overflow};

/// The place of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the table.
    Table,
    /// On the host.
    Host,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Token of the element.
    pub token: u32,
    /// Place of the element.
    pub place: Place,
}

/// The place of the element with a token.
#[derive(Clone, Copy)]
enum Location {
    Nowhere,
    Table { handle: Handle, age: u64 },
    Host { handle: HostHandle, stay: Stay },
}

/// Whether an element on the host may move to the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// The element waits for a table entry.
    No,
    /// The element stays until [`Offload::force`].
    Short,
    /// The element never moves.
    Always,
}

/// One queue; see the module.
///
/// Tokens are small dense numbers chosen by the caller, unique among the elements of the queue.
pub struct Offload {
    table: Tables,
    plan: HostPlan,
    host: Host,
    overflow: Overflow,
    leave: Leave,
    /// `Sticky`: the queue has left its table.
    left_table: bool,
    /// `FlowControl`: `check_room` returned false, and this element is already counted as held
    /// back.
    counted_held_back: bool,
    /// The overflow model promotes, and there is no pool.
    always_promotes: bool,
    /// Number of elements on the host that wait for a table entry.
    waiting: usize,
    /// Number of elements on the host that stay, for good or until [`Offload::force`].
    refused: usize,
    /// Pool of table entries; `None` if no other table uses the entries of this one.
    pool: Option<Arc<dyn EntryPool>>,
    classifier: Classifier,
    /// Indexed by token. Grows with the largest token seen.
    locations: Vec<Location>,
    /// Age of the next element.
    age: u64,
    /// The last counted match, until it is removed or kept.
    matched: Option<Found>,
    counters: QueueCounters,
    /// Elements in the table and on the host when the queue was longest since
    /// [`Offload::take_recent`].
    recent: (usize, usize),
    /// Search depths are counted, as in every run with a report.
    depths: bool,
    /// Elements by source; counted if search depths are.
    sources: Option<Box<AddedBySource>>,
    timing: Option<Timing>,
    curve: Option<Box<Curve>>,
    /// Clock for measured times, if these are requested.
    watch: Option<Watch>,
    /// Operations on the table are measured, or the table is the CAM.
    indirect_table: bool,
    /// Timing, measured times or the curve are requested, or the table is the CAM.
    observed: bool,
}

impl Offload {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// The table is too large, or this processor does not support the kernel.
    pub fn new(config: &OffloadConfig) -> Result<Self, TableError> {
        let table = Tables::new(config.table, config.entries, config.kernel)?;
        let indirect_table = table.is_cam();
        let plan = HostPlan {
            engine: config.engine,
            config: config.engine_config,
            scanner: Scanner::new(config.kernel)?,
            clusters: Arc::default(),
        };
        Ok(Self {
            recent: (0, 0),
            counters: QueueCounters {
                entries: table.capacity() as u64,
                ..QueueCounters::default()
            },
            table,
            host: Host::Unused,
            plan,
            overflow: config.overflow,
            leave: config.leave,
            left_table: false,
            counted_held_back: false,
            always_promotes: config.overflow.promotes(),
            waiting: 0,
            refused: 0,
            pool: None,
            classifier: Classifier::new(config.engine_config.layout),
            locations: Vec::new(),
            age: 0,
            matched: None,
            depths: config.depths,
            sources: config
                .depths
                .then(|| Box::new(AddedBySource::new(config.engine_config.layout))),
            timing: None,
            curve: None,
            watch: None,
            indirect_table,
            observed: indirect_table,
        })
    }

    /// Makes the table of this empty queue draw its entries from a pool.
    #[must_use]
    pub fn with_pool(self, pool: Arc<dyn EntryPool>) -> Self {
        Self { pool: Some(pool), always_promotes: false, ..self }
    }

    /// Replaces the engine of this empty queue by `kmeans` with these clusters.
    #[must_use]
    pub fn with_clusters(self, clusters: Arc<Clusters>) -> Self {
        let plan = HostPlan { engine: HostEngine::Kmeans, clusters, ..self.plan };
        Self { plan, ..self }
    }

    /// Charges the operations of this queue to a timing model.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing: Some(timing), observed: true, ..self }
    }

    /// Keeps the capacity curve from now on. The queue must be empty. The curve is correct with
    /// [`Overflow::Spill`] and without pool and refusals.
    pub fn keep_curve(&mut self) {
        self.curve = Some(Box::default());
        self.observed = true;
    }

    /// The capacity curve, if it is kept.
    #[must_use]
    pub fn curve(&self) -> Option<&Curve> {
        self.curve.as_deref()
    }

    /// Measures the searches, insertions and removals of this queue.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { watch: Some(Watch::new(clock)), indirect_table: true, observed: true, ..self }
    }

    /// Sets the number of processes, which limits the number of the host engine's queues.
    pub fn set_processes(&mut self, n: u32) {
        self.plan.config.processes = n;
        self.host.set_processes(n);
    }

    /// Adds the youngest element. Returns its place.
    #[inline]
    pub fn insert(&mut self, element: Element) -> Place {
        let age = self.begin(&element);
        if let Err(reason) = self.admit() {
            return self.spill(element, age, reason);
        }
        let Ok(handle) = self.insert_in_table(element) else {
            return self.spill(element, age, Block::TableFull);
        };
        self.locations[element.token as usize] = Location::Table { handle, age };
        self.note_table_growth();
        Place::Table
    }

    /// Adds the youngest element to the host, because the device does not accept it. With the
    /// reason [`Block::Refused`] the element stays on the host for good, with [`Block::Short`]
    /// until [`Offload::force`].
    pub fn refuse(&mut self, element: Element, reason: Block) {
        debug_assert!(matches!(reason, Block::Refused | Block::Short), "{reason:?} is the table's");
        let age = self.begin(&element);
        self.spill(element, age, reason);
    }

    /// Counts a new element and makes room for its location. Returns its age.
    #[inline]
    fn begin(&mut self, element: &Element) -> u64 {
        self.count_kept_match();
        let token = element.token as usize;
        if token >= self.locations.len() {
            self.grow(token);
        }
        debug_assert!(matches!(self.locations[token], Location::Nowhere), "token {token} is live");
        let age = self.age;
        self.age += 1;
        let collective = self.classifier.is_collective(element.bits, element.ignore);
        self.counters.kinds.of_mut(collective).inserts += 1;
        if let Some(sources) = &mut self.sources {
            sources.note(element);
        }
        if self.observed {
            self.observe_insert(collective);
        }
        age
    }

    /// Number of elements on the host.
    #[inline]
    fn on_host(&self) -> usize {
        self.waiting + self.refused
    }

    #[cold]
    fn grow(&mut self, token: usize) {
        self.locations.resize((token + 1).next_power_of_two(), Location::Nowhere);
    }

    fn spill(&mut self, element: Element, age: u64, reason: Block) -> Place {
        let reason = if self.table.capacity() == 0 { Block::Disabled } else { reason };
        let collective = self.classifier.is_collective(element.bits, element.ignore);
        self.counters.kinds.of_mut(collective).block_reasons.count(reason);
        let stay = match reason {
            Block::Refused => Stay::Always,
            Block::Short => Stay::Short,
            _ => Stay::No,
        };
        let refused = stay != Stay::No;
        if !refused && self.is_flow_controlled() {
            self.counters.held_back += u64::from(!std::mem::take(&mut self.counted_held_back));
        }
        if !refused {
            self.leave();
        }
        self.refused += usize::from(refused);
        self.waiting += usize::from(!refused);
        let handle = self.insert_on_host(element, age);
        self.locations[element.token as usize] = Location::Host { handle, stay };
        let counters = &mut self.counters;
        counters.spills += 1;
        if let Some(timing) = &self.timing {
            counters.modelled.charge_spill(timing);
        }
        let host = (self.waiting + self.refused) as u64;
        counters.host_high_water = counters.host_high_water.max(host);
        counters.high_water = counters.high_water.max(host + self.table.len() as u64);
        self.note_recent();
        Place::Host
    }

    #[inline]
    fn note_table_growth(&mut self) {
        let (table, host) = (self.table.len() as u64, self.on_host() as u64);
        let counters = &mut self.counters;
        counters.table_high_water = counters.table_high_water.max(table);
        counters.high_water = counters.high_water.max(table + host);
        self.note_recent();
    }

    #[inline]
    fn note_recent(&mut self) {
        let (table, host) = (self.table.len(), self.on_host());
        if table + host > self.recent.0 + self.recent.1 {
            self.recent = (table, host);
        }
    }

    /// Returns the numbers of elements in the table and on the host when the queue was longest
    /// since the last call.
    pub fn take_recent(&mut self) -> (usize, usize) {
        let now = (self.table.len(), self.on_host());
        std::mem::replace(&mut self.recent, now)
    }

    /// Like [`take_recent`](Self::take_recent), but does not restart the interval.
    #[must_use]
    pub fn recent(&self) -> (usize, usize) {
        self.recent
    }

    /// Returns true if an element has this token.
    #[must_use]
    pub fn contains(&self, token: u32) -> bool {
        !matches!(self.locations.get(token as usize), None | Some(Location::Nowhere))
    }

    /// Picoseconds that the timing model charged to this queue.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.counters.modelled.picoseconds()
    }

    /// Number of elements in the table and on the host together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len() + self.on_host()
    }

    /// Number of elements in the table, and on the host.
    #[must_use]
    pub fn occupancy(&self) -> (usize, usize) {
        (self.table.len(), self.on_host())
    }

    /// Search depths counted up to now.
    #[must_use]
    pub fn search_depth(&self) -> &SearchDepth {
        &self.counters.search_depth
    }

    /// Traversals on the host counted up to now.
    #[must_use]
    pub fn traversals(&self) -> &Traversals {
        &self.counters.traversals
    }

    /// Returns true if the queue has no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Admission to the table: by the overflow model, the pool, and the elements already waiting.
impl Offload {
    /// Checks whether an element may enter the table. If so, an entry is drawn from the pool.
    #[inline]
    fn admit(&mut self) -> Result<(), Block> {
        if self.always_promotes && self.waiting == 0 { Ok(()) } else { self.admit_by_model() }
    }

    fn admit_by_model(&mut self) -> Result<(), Block> {
        match self.overflow {
            Overflow::Spill | Overflow::FlowControl => self.promote_waiting()?,
            Overflow::Prefix if self.on_host() == 0 => {}
            Overflow::Prefix if self.table.is_full() => return Err(Block::TableFull),
            Overflow::Prefix => return Err(Block::Order),
            Overflow::Sticky if self.left_table => return Err(Block::Sticky),
            Overflow::Sticky if self.must_leave() => return Err(Block::Preemptive),
            Overflow::Sticky => {}
        }
        self.draw()
    }

    /// Returns true if the queue must leave the table before it is full.
    fn must_leave(&self) -> bool {
        let Leave { above, half_pool, .. } = self.leave;
        above.is_some_and(|above| self.len() >= above)
            || half_pool && self.pool.as_ref().is_some_and(|pool| pool.is_half_taken())
    }

    /// Returns true if every new element goes to the host for good ([`Overflow::Sticky`]).
    #[inline]
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.overflow == Overflow::Sticky && self.left_table
    }

    /// Leaves the table for good ([`Overflow::Sticky`]): every new element goes to the host. If
    /// [`Leave::takes_along`] is set and the host is empty, the elements in the table move there as
    /// well. Called when this queue spills, or when the other queue of the context has left its
    /// table. Does nothing with other overflow models.
    #[cold]
    pub fn leave(&mut self) {
        if self.has_left() || self.overflow != Overflow::Sticky || self.table.capacity() == 0 {
            return;
        }
        self.left_table = true;
        if self.leave.takes_along && self.on_host() == 0 {
            self.onload(Stay::No);
        }
    }

    /// Moves the elements of the table to the host, where they stay, and later elements may enter the
    /// table. Returns false, and does nothing, if the table has no element, or if an element on the
    /// host waits for the table.
    #[cold]
    pub fn move_to_host(&mut self) -> bool {
        if self.table.len() == 0 || self.waiting > 0 {
            return false;
        }
        self.onload(Stay::Always);
        true
    }

    /// Moves the elements of the table, oldest first, to the host, whose elements must be older.
    fn onload(&mut self, stay: Stay) {
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
            self.locations[element.token as usize] = Location::Host { handle, stay };
            self.waiting += usize::from(stay == Stay::No);
            self.refused += usize::from(stay != Stay::No);
            self.counters.onloads += 1;
            if let Some(timing) = &self.timing {
                self.counters.modelled.charge_spill(timing);
            }
        }
        self.counters.host_high_water = self.counters.host_high_water.max(self.on_host() as u64);
    }

    /// Returns true if a full table holds back posters and senders: the caller must call
    /// [`Offload::check_room`] before it posts a receive, and [`Offload::holds_back`] after it
    /// added a message.
    #[inline]
    #[must_use]
    pub fn is_flow_controlled(&self) -> bool {
        self.overflow == Overflow::FlowControl && self.table.capacity() != 0
    }

    /// Returns true if an element may be inserted now. Otherwise the caller holds it back. Repeated
    /// calls that return false count as one element held back.
    pub fn check_room(&mut self) -> bool {
        if !self.is_flow_controlled() {
            return true;
        }
        let admitted = !self.table.is_full() && self.admit().is_ok();
        if let (true, Some(pool)) = (admitted, &self.pool) {
            pool.give_back();
        }
        self.counters.held_back += u64::from(!admitted && !self.counted_held_back);
        self.counted_held_back = !admitted;
        admitted
    }

    /// Returns true if senders must wait because some messages found no entry.
    #[inline]
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.waiting != 0 && self.is_flow_controlled()
    }

    /// Checks that the table has a free entry and, if there is a pool, draws an entry from it.
    fn draw(&self) -> Result<(), Block> {
        if self.table.is_full() {
            return Err(Block::TableFull);
        }
        self.pool.as_ref().map_or(Ok(()), |pool| pool.take().map_err(Block::from))
    }

    /// Gives a free entry to the oldest host element or, if that element may not enter the table,
    /// back to the pool.
    fn reuse_entry(&mut self) -> Result<(), Block> {
        let promoted = self.promote();
        if let (Err(_), Some(pool)) = (promoted, &self.pool) {
            pool.give_back();
        }
        promoted
    }

    /// Moves the host elements that wait for the table into it, oldest first. Returns the reason if
    /// any of them still waits.
    #[cold]
    fn promote_waiting(&mut self) -> Result<(), Block> {
        while self.waiting > 0 {
            self.draw()?;
            self.reuse_entry()?;
        }
        Ok(())
    }

    /// Moves the oldest host element into the table, or returns [`Block::Order`] if it may not
    /// enter. The table must have room, and an entry from the pool must have been drawn.
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

    /// Moves the elements on the host into the table, oldest first, including short receives. Stops
    /// if the table or the pool has no free entry, at an element that must stay, and at an element
    /// older than one in the table, because the table is in age order. The caller does this before
    /// it posts a long receive (`TM_FORCE_THRESH` of UCX). Does nothing if the queue has left its
    /// table.
    pub fn force(&mut self) {
        let Some(oldest) = self.host.oldest() else { return };
        if self.has_left() || self.table.is_full() || self.stay(oldest.token) == Stay::Always {
            return;
        }
        let ages = self.locations.iter().filter_map(|location| match *location {
            Location::Table { age, .. } => Some(age),
            _ => None,
        });
        // With `Prefix`, all elements on the host are younger than those in the table.
        let youngest = if self.overflow == Overflow::Prefix { None } else { ages.max() };
        while let Some(oldest) = self.host.oldest() {
            let stay = self.stay(oldest.token);
            if stay == Stay::Always || youngest > Some(oldest.age) || self.draw().is_err() {
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

/// Searches for the oldest element that matches, in table and host.
impl Offload {
    /// Returns the oldest element that matches, and counts a match. Before any other call that
    /// changes the queue, the caller must call [`Offload::remove_matched`] or
    /// [`Offload::keep_matched`]; otherwise the match counts as kept.
    #[inline(always)]
    pub fn search(&mut self, key: &Key) -> Option<Found> {
        self.count_kept_match();
        let found = if self.observed { self.find_observed(key) } else { self.find_counted(key) };
        self.count_search(key, found);
        self.matched = found;
        found
    }

    /// Like [`Offload::search`], but faster if the queue is empty. The queue of unexpected messages
    /// is usually empty.
    #[inline(always)]
    pub fn search_if_any(&mut self, key: &Key) -> Option<Found> {
        if !self.is_empty() || self.observed {
            return self.search(key);
        }
        self.count_kept_match();
        if self.depths {
            self.note_depths(key, None);
        }
        self.count_search(key, None);
        None
    }

    #[inline(always)]
    fn count_search(&mut self, key: &Key, found: Option<Found>) {
        let collective = self.classifier.is_collective(key.bits, key.ignore);
        let counters = self.counters.kinds.of_mut(collective);
        counters.searches += 1;
        match found {
            Some(Found { place: Place::Table, .. }) => counters.table_matches += 1,
            Some(Found { place: Place::Host, .. }) => counters.host_matches += 1,
            None => counters.misses += 1,
        }
    }

    /// Returns the oldest element that matches, without counting or charging.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<Found> {
        self.find_behind(self.table.first_match(key), key)
    }

    /// Returns the oldest element that matches `key`; `hit` is the first match in the table.
    #[inline(always)]
    fn find_behind(&self, hit: Option<Hit>, key: &Key) -> Option<Found> {
        let Some(hit) = hit else {
            if self.on_host() == 0 {
                return None;
            }
            let token = self.host.first_token(key)?;
            return Some(Found { token, place: Place::Host });
        };
        let found = Found { token: hit.token, place: Place::Table };
        if self.on_host() == 0 {
            return Some(found);
        }
        let Some(oldest) = self.host.oldest() else { return Some(found) };
        let Location::Table { age, .. } = self.locations[hit.token as usize] else {
            unreachable!("the table's elements have a place in the table");
        };
        if age < oldest.age {
            return Some(found);
        }
        match self.host.first_match(key) {
            Some(host) if host.age < age => Some(Found { token: host.token, place: Place::Host }),
            _ => Some(found),
        }
    }
}

/// Removal of elements, and the promotions that follow.
impl Offload {
    /// Removes the element with this token, which the last [`Offload::search`] found, and promotes
    /// a host element into its entry. Returns false if no element has this token.
    ///
    /// If the last search did not find this element, the removal counts as a cancel.
    #[inline(always)]
    pub fn remove_matched(&mut self, token: u32) -> bool {
        if self.matched.is_none_or(|found| found.token != token) {
            return self.cancel(token);
        }
        self.matched = None;
        self.take(token).is_some()
    }

    /// Leaves the element that the last [`Offload::search`] found in the queue, because it is a
    /// multi-receive buffer with room left.
    #[inline]
    pub fn keep_matched(&mut self, token: u32) {
        debug_assert!(
            self.matched.is_some_and(|found| found.token == token),
            "the last search did not find token {token}"
        );
        self.count_kept_match();
    }

    /// Removes an element without a match: a cancelled receive or a dropped message. Returns false
    /// if there is no such element.
    pub fn cancel(&mut self, token: u32) -> bool {
        self.count_kept_match();
        if self.observed {
            self.observe_cancel(token);
        }
        let place = self.take(token);
        match place {
            Some(Place::Table) => self.counters.table_cancels += 1,
            Some(Place::Host) => self.counters.host_cancels += 1,
            None => {}
        }
        place.is_some()
    }

    /// Counts the last match as kept if its element was not removed.
    #[inline]
    fn count_kept_match(&mut self) {
        let matched = self.matched.take();
        if let (Some(_), Some(curve)) = (matched, &mut self.curve) {
            curve.keep();
        }
        match matched {
            None => {}
            Some(Found { place: Place::Table, .. }) => self.counters.table_kept += 1,
            Some(Found { place: Place::Host, .. }) => self.counters.host_kept += 1,
        }
    }

    /// Removes an element, promotes an element of the host into an entry that this makes free, and
    /// returns where the removed element was. `None` if no element has this token.
    #[inline(always)]
    fn take(&mut self, token: u32) -> Option<Place> {
        if self.observed {
            self.observe_departure(token);
        }
        let location = self.locations.get_mut(token as usize)?;
        match std::mem::replace(location, Location::Nowhere) {
            Location::Nowhere => None,
            Location::Host { handle, stay } => {
                let refused = stay != Stay::No;
                self.remove_from_host(handle);
                self.refused -= usize::from(refused);
                self.waiting -= usize::from(!refused);
                if self.overflow.promotes() && (refused || self.pool.is_some()) {
                    // If an older element must stay, the elements behind it still wait.
                    let _ = self.promote_waiting();
                }
                Some(Place::Host)
            }
            Location::Table { handle, .. } => {
                self.remove_from_table(handle);
                if !self.always_promotes || self.waiting > 0 {
                    let _ = self.reuse_entry();
                }
                Some(Place::Table)
            }
        }
    }
}

impl std::fmt::Debug for Offload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offload")
            .field("table", &self.table)
            .field("host", &self.host.len())
            .finish_non_exhaustive()
    }
}
