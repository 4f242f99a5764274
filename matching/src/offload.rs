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
//! With [`Overflow::Spill`] the table always holds the oldest elements: an element spills only if
//! the table is full, and every entry that frees takes the oldest element of the host at once. The
//! other models let younger elements into the table while older ones are on the host, or the other
//! way round, so ages decide. Ages also decide for elements that the device refuses
//! ([`Offload::refuse`]): they stay on the host, and elements behind them are not promoted past
//! them.
//!
//! The entries of the table may come from a pool that other tables share ([`Offload::with_pool`]).
//! Then an element spills if the pool has no entry for it. With [`Overflow::Spill`] elements on the
//! host still enter the table before any younger one, and an entry that frees goes to the oldest of
//! them.

mod admit;
mod choose;
mod config;
mod depart;
mod measure;
mod observe;
mod reconsider;
mod search;
mod tables;
mod tell;

use choose::Chooser;
pub use config::OffloadConfig;
pub use tables::{TableKind, UnknownTable};

use std::sync::Arc;

use tables::Tables;
use ternary_cam::{Handle, TableError};

use crate::counters::{Block, QueueCounters, SearchDepth, Traversals};
use crate::curve::Curve;
use crate::engine::{Clusters, Engine, Host, HostEngine, HostHandle, HostPlan};
use crate::measured::{Clock, Watch};
use crate::pool::EntryPool;
use crate::sources::AddedBySource;
use crate::timing::Timing;
use crate::traffic::Classifier;
use crate::{Element, Leave, Overflow};

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
    Always,
}

/// One queue; see the module.
///
/// Tokens are small dense numbers chosen by the caller, unique among the elements of the queue.
pub struct Offload {
    table: Tables,
    plan: HostPlan,
    host: Host,
    /// Chooses the engine, for `auto`.
    chooser: Option<Box<Chooser>>,
    overflow: Overflow,
    leave: Leave,
    /// `Sticky`: the queue has left its table.
    software: bool,
    /// `FlowControl`: an element is held back.
    holding: bool,
    /// The overflow model promotes, and there is no pool.
    plain: bool,
    /// Elements on the host that may enter the table (`waiting`), and those that may not
    /// (`refused`).
    waiting: usize,
    refused: usize,
    /// Pool of table entries; `None` if the table has its own.
    pool: Option<Arc<dyn EntryPool>>,
    classifier: Classifier,
    /// Indexed by token. Grows with the largest token seen.
    locations: Vec<Location>,
    /// Age of the next element.
    age: u64,
    /// The last counted match, until it is removed or kept.
    matched: Option<Found>,
    counters: QueueCounters,
    /// Elements in the table and on the host at the maximum since [`Offload::take_recent`].
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
    detour: bool,
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
        let detour = table.is_cam();
        let plan = HostPlan {
            config: config.engine_config,
            kernel: config.kernel,
            clusters: Arc::default(),
        };
        Ok(Self {
            recent: (0, 0),
            counters: QueueCounters {
                entries: table.capacity() as u64,
                ..QueueCounters::default()
            },
            table,
            host: plan.make(config.engine)?,
            chooser: (config.engine == HostEngine::Auto)
                .then(|| Box::new(Chooser::new(&config.engine_config))),
            plan,
            overflow: config.overflow,
            leave: config.leave,
            software: false,
            holding: false,
            plain: config.overflow.promotes(),
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
            detour,
            observed: detour,
        })
    }

    /// Makes the table of this empty queue draw its entries from a pool.
    #[must_use]
    pub fn with_pool(self, pool: Arc<dyn EntryPool>) -> Self {
        Self { pool: Some(pool), plain: false, ..self }
    }

    /// Replaces the engine of this empty queue by `kmeans` with these clusters.
    ///
    /// # Errors
    /// This processor does not support the kernel.
    pub fn with_clusters(mut self, clusters: Arc<Clusters>) -> Result<Self, TableError> {
        self.plan.clusters = clusters;
        self.host = self.plan.make(HostEngine::Kmeans)?;
        Ok(self)
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
        Self { watch: Some(Watch::new(clock)), detour: true, observed: true, ..self }
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

    /// Adds the youngest element although the device does not accept it. [`Block::Refused`] keeps
    /// it on the host for good, [`Block::Short`] until [`Offload::force`].
    pub fn refuse(&mut self, element: Element, reason: Block) {
        debug_assert!(matches!(reason, Block::Refused | Block::Short), "{reason:?} is the table's");
        let age = self.begin(&element);
        self.spill(element, age, reason);
    }

    /// Counts an element and makes room for its location. Returns its age.
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
            self.counters.held_back += u64::from(!std::mem::take(&mut self.holding));
        }
        if !refused {
            self.leave();
        }
        if self.chooser.is_some() {
            self.reconsider(&element);
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

    /// Returns the elements in the table and on the host at the maximum since the last call.
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

impl std::fmt::Debug for Offload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offload")
            .field("table", &self.table)
            .field("host", &self.host.len())
            .finish_non_exhaustive()
    }
}
