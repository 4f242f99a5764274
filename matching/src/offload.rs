// SPDX-License-Identifier: BSD-2-Clause
//! One queue as a NIC keeps it: a bounded table and a host engine behind it.
//!
//! ```text
//!            insert                 search
//!              |                      | oldest match, wherever it lies
//!              v                      v
//!        [ table, bounded ]  ---> [ host engine, unbounded ]
//!              ^       spill when full       |
//!              +------ promote when a slot frees (oldest first)
//! ```
//!
//! With [`Overflow::Spill`] the table always holds the oldest elements: an element
//! spills only when the table is full, and every slot that frees takes the oldest
//! element of the host at once. The other models let younger elements into the
//! table while older ones are on the host, or the other way round, so ages decide.
//! So they do for elements that the device refuses ([`Offload::refuse`]): they stay
//! on the host, and what waits there behind one is not promoted past it.
//!
//! The entries of the table may come from a pool that others draw from, too
//! ([`Offload::with_pool`]): then an element spills when the pool gives none. With
//! [`Overflow::Spill`] what waits on the host still enters the table before
//! anything younger, and an entry that frees goes to the oldest that waits.

mod observe;

use std::sync::Arc;

use ternary_cam::{Handle, Table, TableError};

use crate::counters::{Block, Histogram, KindCounters, QueueCounters, SearchDepth};
use crate::engine::{Engine, EngineConfig, Host, HostEngine, HostHandle};
use crate::pool::EntryPool;
use crate::timing::Timing;
use crate::traffic::Classifier;
use crate::{Element, Kernel, Key};

/// Where an element lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the table.
    Table,
    /// On the host.
    Host,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Token of the element.
    pub token: u32,
    /// Where it lay.
    pub place: Place,
}

/// What happens when the table is full (`FI_TCAM_OVERFLOW`), because NICs differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The element goes to the host; the oldest host element is promoted when a
    /// slot frees.
    #[default]
    Spill,
    /// The table holds a bounded prefix: nothing enters it while the host holds
    /// any element, and nothing is promoted (ConnectX).
    Prefix,
    /// Once full, everything new goes to the host for good; what is in the table
    /// stays there until it is matched (CXI's hybrid mode).
    Sticky,
    /// Who brings an element is held back until a slot frees (CXI's hardware mode):
    /// a receive is not posted ([`Offload::has_room`]), the sender of a message waits
    /// ([`Offload::holds_back`]). What is inserted all the same spills.
    FlowControl,
}

impl Overflow {
    /// Every model.
    pub const ALL: [Self; 4] = [Self::Spill, Self::Prefix, Self::Sticky, Self::FlowControl];

    /// Name, as in `FI_TCAM_OVERFLOW`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spill => "spill",
            Self::Prefix => "prefix",
            Self::Sticky => "sticky",
            Self::FlowControl => "flow-control",
        }
    }

    /// Whether what waits on the host enters the table when a slot frees.
    const fn promotes(self) -> bool {
        matches!(self, Self::Spill | Self::FlowControl)
    }
}

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Not the name of an [`Overflow`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no overflow model: there are {all}", all = Overflow::ALL.map(Overflow::name).join(", "))]
pub struct UnknownOverflow(String);

impl std::str::FromStr for Overflow {
    type Err = UnknownOverflow;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|overflow| overflow.name() == name);
        found.ok_or_else(|| UnknownOverflow(name.to_owned()))
    }
}

/// How a queue is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffloadConfig {
    /// Capacity of the table, 0 to 65,536; 0 keeps everything on the host.
    pub entries: usize,
    /// Compare kernel of the table.
    pub kernel: Kernel,
    /// Engine behind the table.
    pub engine: HostEngine,
    /// Parameters of the engine.
    pub engine_config: EngineConfig,
    /// What happens when the table is full.
    pub overflow: Overflow,
    /// Whether to record search-depth histograms.
    pub depths: bool,
}

impl Default for OffloadConfig {
    fn default() -> Self {
        Self {
            entries: 4096,
            kernel: Kernel::best(),
            engine: HostEngine::default(),
            engine_config: EngineConfig::default(),
            overflow: Overflow::default(),
            depths: false,
        }
    }
}

/// Where the element of a token lies.
#[derive(Clone, Copy)]
enum Location {
    Nowhere,
    Table { handle: Handle, age: u64 },
    Host { handle: HostHandle, refused: bool },
}

/// One queue. See the module.
///
/// Tokens are small dense numbers of the caller's, unique among live elements.
pub struct Offload {
    table: Table,
    host: Host,
    overflow: Overflow,
    /// `Sticky`: the table was full once.
    software: bool,
    /// `FlowControl`: an element is held back.
    holding: bool,
    /// The overflow model promotes, and every entry of the table is its own.
    plain: bool,
    /// Elements on the host that may enter the table, and those that may not.
    waiting: usize,
    refused: usize,
    /// What each entry of the table is drawn from; none if all are its own.
    pool: Option<Arc<dyn EntryPool>>,
    classifier: Classifier,
    /// By token. Grows with the largest token seen.
    locations: Vec<Location>,
    /// Age of the next element.
    age: u64,
    /// The counted match that is neither removed nor kept yet.
    matched: Option<Found>,
    counters: QueueCounters,
    depths: bool,
    timing: Option<Timing>,
    /// Depths or timing are wanted.
    observed: bool,
}

impl Offload {
    /// An empty queue.
    ///
    /// # Errors
    /// The table is too large, or this processor does not support the kernel.
    pub fn new(config: &OffloadConfig) -> Result<Self, TableError> {
        let table = Table::new(config.entries, config.kernel)?;
        let histogram =
            if config.depths { Histogram::with_all_buckets } else { Histogram::default };
        Ok(Self {
            counters: QueueCounters {
                entries: table.capacity() as u64,
                search_depth: SearchDepth { hit: histogram(), miss: histogram() },
                ..QueueCounters::default()
            },
            table,
            host: Host::new(config.engine, &config.engine_config),
            overflow: config.overflow,
            software: false,
            holding: false,
            plain: config.overflow.promotes(),
            waiting: 0,
            refused: 0,
            pool: None,
            classifier: Classifier::new(config.engine_config.layout),
            locations: vec![Location::Nowhere; config.entries],
            age: 0,
            matched: None,
            depths: config.depths,
            timing: None,
            observed: config.depths,
        })
    }

    /// The same queue, empty still, whose table draws its entries from a pool.
    #[must_use]
    pub fn with_pool(self, pool: Arc<dyn EntryPool>) -> Self {
        Self { pool: Some(pool), plain: false, ..self }
    }

    /// The same queue, whose searches are charged.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing: Some(timing), observed: true, ..self }
    }

    /// Adds an element, the youngest, and says where it went.
    #[inline]
    pub fn insert(&mut self, element: Element) -> Place {
        let age = self.begin(&element);
        if let Err(reason) = self.admit() {
            return self.spill(element, age, reason);
        }
        let Ok(handle) = self.table.insert(element) else {
            return self.spill(element, age, Block::TableFull);
        };
        self.locations[element.token as usize] = Location::Table { handle, age };
        self.note_table_growth();
        Place::Table
    }

    /// Adds an element, the youngest, that the device does not take: it goes to the
    /// host and stays there.
    pub fn refuse(&mut self, element: Element) {
        let age = self.begin(&element);
        self.spill(element, age, Block::Refused);
    }

    /// Counts an element and makes room for its location; its age.
    #[inline]
    fn begin(&mut self, element: &Element) -> u64 {
        self.settle();
        let token = element.token as usize;
        if token >= self.locations.len() {
            self.grow(token);
        }
        debug_assert!(matches!(self.locations[token], Location::Nowhere), "token {token} is live");
        let age = self.age;
        self.age += 1;
        let collective = self.classifier.is_collective(element.bits, element.ignore);
        self.counters.kinds.of_mut(collective).inserts += 1;
        age
    }

    /// Whether an element may enter the table if it has room, with an entry drawn
    /// from the pool.
    #[inline]
    fn admit(&mut self) -> Result<(), Block> {
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

    /// Elements on the host.
    #[inline]
    fn on_host(&self) -> usize {
        self.waiting + self.refused
    }

    /// Draws an entry from the pool, if there is one.
    fn draw(&self) -> Result<(), Block> {
        if self.table.is_full() {
            return Err(Block::TableFull);
        }
        self.pool.as_ref().map_or(Ok(()), |pool| pool.take().map_err(Block::from))
    }

    #[cold]
    fn grow(&mut self, token: usize) {
        self.locations.resize((token + 1).next_power_of_two(), Location::Nowhere);
    }

    fn spill(&mut self, element: Element, age: u64, reason: Block) -> Place {
        let reason = if self.table.capacity() == 0 { Block::Disabled } else { reason };
        let collective = self.classifier.is_collective(element.bits, element.ignore);
        self.counters.kinds.of_mut(collective).block_reasons.count(reason);
        let refused = reason == Block::Refused;
        if !refused && self.is_flow_controlled() {
            self.counters.held_back += u64::from(!std::mem::take(&mut self.holding));
        }
        self.refused += usize::from(refused);
        self.waiting += usize::from(!refused);
        self.software |= !refused;
        let handle = self.host.insert(element, age);
        self.locations[element.token as usize] = Location::Host { handle, refused };
        let counters = &mut self.counters;
        counters.spills += 1;
        let host = (self.waiting + self.refused) as u64;
        counters.host_high_water = counters.host_high_water.max(host);
        counters.high_water = counters.high_water.max(host + self.table.len() as u64);
        Place::Host
    }

    #[inline]
    fn note_table_growth(&mut self) {
        let (table, host) = (self.table.len() as u64, self.on_host() as u64);
        let counters = &mut self.counters;
        counters.table_high_water = counters.table_high_water.max(table);
        counters.high_water = counters.high_water.max(table + host);
    }

    /// The oldest element that matches, counted as a match. What becomes of it is
    /// said next, before any other call that changes the queue, by
    /// [`Offload::remove_matched`] or [`Offload::keep_matched`]; a match that is
    /// neither counts as kept.
    #[inline]
    pub fn search(&mut self, key: &Key) -> Option<Found> {
        self.settle();
        let found = self.find(key);
        let collective = self.classifier.is_collective(key.bits, key.ignore);
        let counters = self.counters.kinds.of_mut(collective);
        counters.searches += 1;
        match found {
            Some(Found { place: Place::Table, .. }) => counters.table_matches += 1,
            Some(Found { place: Place::Host, .. }) => counters.host_matches += 1,
            None => counters.misses += 1,
        }
        if self.observed {
            self.observe(key, found);
        }
        self.matched = found;
        found
    }

    /// The oldest element that matches, neither counted nor charged.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<Found> {
        let Some(hit) = self.table.first_match(key) else {
            if self.on_host() == 0 {
                return None;
            }
            let host = self.host.first_match(key)?;
            return Some(Found { token: host.token, place: Place::Host });
        };
        let found = Found { token: hit.token, place: Place::Table };
        if self.on_host() == 0 {
            return Some(found);
        }
        let Some(oldest) = self.host.oldest() else { return Some(found) };
        let Location::Table { age, .. } = self.locations[hit.token as usize] else {
            unreachable!("the table's elements are in the table");
        };
        if age < oldest.age {
            return Some(found);
        }
        match self.host.first_match(key) {
            Some(host) if host.age < age => Some(Found { token: host.token, place: Place::Host }),
            _ => Some(found),
        }
    }

    /// Takes out the element the last [`Offload::search`] found and promotes into
    /// the slot it frees. Whether the element was there.
    ///
    /// An element that the last search did not find counts as cancelled.
    #[inline]
    pub fn remove_matched(&mut self, token: u32) -> bool {
        if self.matched.is_none_or(|found| found.token != token) {
            return self.cancel(token);
        }
        self.matched = None;
        self.take(token).is_some()
    }

    /// Leaves the element the last [`Offload::search`] found where it is: a
    /// multi-receive buffer with room to spare.
    #[inline]
    pub fn keep_matched(&mut self, token: u32) {
        debug_assert!(
            self.matched.is_some_and(|found| found.token == token),
            "token {token} is not what the last search found"
        );
        self.settle();
    }

    /// Takes an element out that no arrival matched: cancelled, claimed or
    /// discarded. Whether it was there.
    pub fn cancel(&mut self, token: u32) -> bool {
        self.settle();
        let place = self.take(token);
        match place {
            Some(Place::Table) => self.counters.table_cancels += 1,
            Some(Place::Host) => self.counters.host_cancels += 1,
            None => {}
        }
        place.is_some()
    }

    /// Counts a match that was not taken out as kept.
    #[inline]
    fn settle(&mut self) {
        match self.matched.take() {
            None => {}
            Some(Found { place: Place::Table, .. }) => self.counters.table_kept += 1,
            Some(Found { place: Place::Host, .. }) => self.counters.host_kept += 1,
        }
    }

    /// Frees an element's place and promotes.
    #[inline]
    fn take(&mut self, token: u32) -> Option<Place> {
        let location = self.locations.get_mut(token as usize)?;
        match std::mem::replace(location, Location::Nowhere) {
            Location::Nowhere => None,
            Location::Host { handle, refused } => {
                self.host.remove(handle);
                self.refused -= usize::from(refused);
                self.waiting -= usize::from(!refused);
                if self.overflow.promotes() && (refused || self.pool.is_some()) {
                    // What waits behind something else goes on waiting.
                    let _ = self.promote_waiting();
                }
                Some(Place::Host)
            }
            Location::Table { handle, .. } => {
                self.table.remove(handle);
                if !self.plain || self.waiting > 0 {
                    let _ = self.pass_on();
                }
                Some(Place::Table)
            }
        }
    }

    /// Gives an entry that is there to the oldest host element or, if that may not
    /// enter, back to the pool.
    fn pass_on(&mut self) -> Result<(), Block> {
        let promoted = self.promote();
        if let (Err(_), Some(pool)) = (promoted, &self.pool) {
            pool.give_back();
        }
        promoted
    }

    /// Moves host elements that wait for the table into it, oldest first.
    #[cold]
    fn promote_waiting(&mut self) -> Result<(), Block> {
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
        let element = self.host.remove(oldest.handle);
        let handle = self.table.insert(element).expect("there is room");
        self.locations[element.token as usize] = Location::Table { handle, age: oldest.age };
        self.waiting -= 1;
        self.counters.promotions += 1;
        self.note_table_growth();
        Ok(())
    }

    fn is_refused(&self, token: u32) -> bool {
        matches!(self.locations[token as usize], Location::Host { refused: true, .. })
    }

    /// Elements in table and host.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len() + self.on_host()
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the queue did so far, with the occupancy of now.
    #[must_use]
    pub fn counters(&self) -> QueueCounters {
        let (collective, point_to_point) = self.host.dedicated();
        let kept = |place| u64::from(self.matched.is_some_and(|found| found.place == place));
        // The hot path counts by kind only.
        let KindCounters { inserts, searches, table_matches, host_matches, misses, block_reasons } =
            self.counters.of_both_kinds();
        QueueCounters {
            inserts,
            searches,
            table_matches,
            host_matches,
            misses,
            block_reasons,
            table_kept: self.counters.table_kept + kept(Place::Table),
            host_kept: self.counters.host_kept + kept(Place::Host),
            table_occupancy: self.table.len() as u64,
            host_occupancy: self.host.len() as u64,
            dedicated_collective: collective as u64,
            dedicated_point_to_point: point_to_point as u64,
            ..self.counters.clone()
        }
    }

    /// Tokens of every element, oldest first.
    pub fn iter_tokens(&mut self) -> impl Iterator<Item = u32> + '_ {
        let locations = &self.locations;
        let mut host = self.host.iter().peekable();
        let mut table = self.table.iter().map(|(_, entry)| entry.token).peekable();
        std::iter::from_fn(move || {
            let table_age = table.peek().map(|&token| match locations[token as usize] {
                Location::Table { age, .. } => age,
                _ => unreachable!("the table's elements are in the table"),
            });
            match (table_age, host.peek()) {
                (Some(age), Some(&(_, other))) if other < age => {
                    host.next().map(|(token, _)| token)
                }
                (Some(_), _) => table.next(),
                (None, _) => host.next().map(|(token, _)| token),
            }
        })
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
