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

use crate::counters::{Block, Histogram, QueueCounters, SearchDepth, Traversals};
use crate::curve::Curve;
use crate::engine::{Clusters, Engine, Host, HostEngine, HostHandle, HostPlan};
use crate::measured::{Clock, Watch};
use crate::pool::EntryPool;
use crate::profile::Profile;
use crate::sources::AddedBySource;
use crate::timing::Timing;
use crate::traffic::Classifier;
use crate::{Element, Leave, Overflow};

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

/// Where the element of a token lies.
#[derive(Clone, Copy)]
enum Location {
    Nowhere,
    Table { handle: Handle, age: u64 },
    Host { handle: HostHandle, stay: Stay },
}

/// Whether an element on the host stays there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// It waits for the table.
    No,
    /// Until [`Offload::force`].
    Short,
    Always,
}

/// One queue. See the module.
///
/// Tokens are small dense numbers of the caller's, unique among live elements.
pub struct Offload {
    table: Tables,
    plan: HostPlan,
    host: Host,
    /// Of `auto`.
    chooser: Option<Box<Chooser>>,
    overflow: Overflow,
    leave: Leave,
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
    /// Elements in table and on host when there were most since [`Offload::take_recent`].
    recent: (usize, usize),
    /// Search depths are wanted, as in every run with a report.
    depths: bool,
    /// Counted with them.
    sources: Option<Box<AddedBySource>>,
    timing: Option<Timing>,
    curve: Option<Box<Curve>>,
    /// Measures what takes time, if that is wanted.
    watch: Option<Watch>,
    /// Operations on the table are measured, or it is the CAM.
    detour: bool,
    /// Timing, measured times or the curve are wanted, or the table is the CAM.
    observed: bool,
}

impl Offload {
    /// An empty queue.
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
        let histogram =
            if config.depths { Histogram::with_all_buckets } else { Histogram::default };
        let profile = if config.depths { Profile::with_all_buckets } else { Profile::default };
        Ok(Self {
            recent: (0, 0),
            counters: QueueCounters {
                entries: table.capacity() as u64,
                search_depth: SearchDepth {
                    hit: histogram(),
                    miss: histogram(),
                    ..SearchDepth::default()
                },
                traversals: Traversals {
                    hit: histogram(),
                    miss: histogram(),
                    found: profile(),
                    not_found: profile(),
                    ..Traversals::default()
                },
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

    /// The same queue, empty still, whose table draws its entries from a pool.
    #[must_use]
    pub fn with_pool(self, pool: Arc<dyn EntryPool>) -> Self {
        Self { pool: Some(pool), plain: false, ..self }
    }

    /// The same queue, empty still, with `kmeans` behind it for these clusters.
    ///
    /// # Errors
    /// This processor does not support the kernel.
    pub fn with_clusters(mut self, clusters: Arc<Clusters>) -> Result<Self, TableError> {
        self.plan.clusters = clusters;
        self.host = self.plan.make(HostEngine::Kmeans)?;
        Ok(self)
    }

    /// The same queue, whose searches are charged.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing: Some(timing), observed: true, ..self }
    }

    /// Keeps the capacity curve from now on; the queue must be empty. It is right with
    /// [`Overflow::Spill`] and neither pool nor refusals.
    pub fn keep_curve(&mut self) {
        self.curve = Some(Box::default());
        self.observed = true;
    }

    /// The capacity curve, if it is kept.
    #[must_use]
    pub fn curve(&self) -> Option<&Curve> {
        self.curve.as_deref()
    }

    /// The same queue, whose searches, insertions and removals are measured.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { watch: Some(Watch::new(clock)), detour: true, observed: true, ..self }
    }

    /// Tells how many processes there are, for the number of the host engine's queues.
    pub fn set_processes(&mut self, n: u32) {
        self.plan.config.processes = n;
        self.host.set_processes(n);
    }

    /// Adds an element, the youngest, and says where it went.
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

    /// Adds an element, the youngest, that the device does not take, for a reason that is about
    /// the element: [`Block::Refused`] keeps it on the host, [`Block::Short`] until
    /// [`Offload::force`].
    pub fn refuse(&mut self, element: Element, reason: Block) {
        debug_assert!(matches!(reason, Block::Refused | Block::Short), "{reason:?} is the table's");
        let age = self.begin(&element);
        self.spill(element, age, reason);
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
        if let Some(sources) = &mut self.sources {
            sources.note(element);
        }
        if self.observed {
            self.observe_insert(collective);
        }
        age
    }

    /// Elements on the host.
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

    /// Elements in table and on host when there were most, since this was asked last.
    pub fn take_recent(&mut self) -> (usize, usize) {
        let now = (self.table.len(), self.on_host());
        std::mem::replace(&mut self.recent, now)
    }

    /// The same, and it may be asked again.
    #[must_use]
    pub fn recent(&self) -> (usize, usize) {
        self.recent
    }

    /// Whether an element has this token.
    #[must_use]
    pub fn contains(&self, token: u32) -> bool {
        !matches!(self.locations.get(token as usize), None | Some(Location::Nowhere))
    }

    /// Picoseconds that the timing model charged so far.
    #[must_use]
    pub fn charged(&self) -> u64 {
        self.counters.modelled.picoseconds()
    }

    /// Elements in table and host.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len() + self.on_host()
    }

    /// Elements in the table and on the host.
    #[must_use]
    pub fn occupancy(&self) -> (usize, usize) {
        (self.table.len(), self.on_host())
    }

    /// How deep searches went so far.
    #[must_use]
    pub fn search_depth(&self) -> &SearchDepth {
        &self.counters.search_depth
    }

    /// What searches on the host traversed so far.
    #[must_use]
    pub fn traversals(&self) -> &Traversals {
        &self.counters.traversals
    }

    /// Whether there is no element.
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
