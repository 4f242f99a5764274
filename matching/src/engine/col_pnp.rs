// SPDX-License-Identifier: BSD-2-Clause
//! `col-pnp`, `col-list`, `list-pnp`: one engine for collective elements and one for point-to-point
//! elements (sections 4.3 and 4.4, Algorithms 1 and 2 of Ghazimirsaeed, Grant, Afsahi 2019).
//!
//! ```text
//! insert(e):  if e is point-to-point: into PNP (Algorithm 1, line 2)
//!             else: into COL                   (lines 4 to 17)
//! search(k):  if k is point-to-point: PNP      (Algorithm 2, lines 2 and 3)
//!             else: COL                        (lines 5 to 11)
//!
//!             collective          point-to-point
//! col-pnp     COL (`col`)         PNP (`pnp`)
//! col-list    COL                 one list: PNP without room for partners
//! list-pnp    one list: COL       PNP
//!             without room
//! ```
//!
//! Details that the paper leaves open:
//! - *Kind*: the paper passes a hint down from the MPI; here the match bits determine it
//!   ([`crate::TagLayout`]).
//! - *Wildcards*. A receive whose ignore bits hide its kind, or a collective one that names no
//!   source, goes to a queue that every search visits. A point-to-point receive that names no
//!   source goes to a queue that every search for point-to-point elements visits. A search with
//!   such a key visits every queue that may hold a match. The oldest match wins, and a queue is
//!   searched only up to the age of the best match so far.
//! - *Short queues*: up to θ elements, searches use the list of all elements, which costs less than
//!   selecting queues. With more than [`Queues::LIST`] elements, collective ones among them, the
//!   limit is [`Queues::LIST`]. Up to the limit new elements get no queue, and COL does not profile
//!   the searches.
//! - *The cap* k·sqrt(n) is split as in the evaluation, k_C·sqrt(n) queues for COL and k_P·sqrt(n)
//!   for PNP, so that neither starves the other. Either cap may be reached exactly, as in the
//!   evaluation, and no queue is ever removed.
//! - *n*, unless it is set, is the number of sources seen so far.

use super::{
    col::Col,
    config::EngineConfig,
    contract::{Engine, key_of},
    hit::{HostHandle, HostHit},
    peers::DistinctSources,
    pnp::Pnp,
    queue::{Best, CountingView, Lookup, Queues},
};
use crate::{CollectiveId, Element, Key, Source, Traffic, traffic::Fields};

/// Queue of elements whose kind is hidden, and of any-source collective ones.
const HIDDEN: usize = 0;
/// Queue of any-source point-to-point elements.
const ANY: usize = 1;

/// The engine; see the module.
pub struct ColPnp<Q> {
    queues: Q,
    fields: Fields,
    config: EngineConfig,
    /// Maximum number of elements that are searched as one list. If there are more, every element
    /// has a queue.
    short: usize,
    /// Some elements may have no queue. Then there are at most `short` elements in all.
    waiting: bool,
    seen: DistinctSources,
    /// Maximum number of dedicated queues of COL.
    col_cap: usize,
    /// Maximum number of dedicated queues of PNP.
    pnp_cap: usize,
    col: Col,
    pnp: Pnp,
}

/// The kind of queue to which an element goes, or in which the element that a search looks for is.
enum Lane {
    /// [`HIDDEN`].
    Hidden,
    /// Point-to-point, with its source if it names one.
    PointToPoint(Option<u32>),
    Collective(CollectiveId, u32),
}

impl Lane {
    #[inline]
    fn of(key: &Key, fields: &Fields) -> Self {
        match (fields.kind_of_all(key), fields.source(key).get()) {
            (Some(Traffic::PointToPoint), source) => Self::PointToPoint(source),
            (Some(Traffic::Collective(id)), Some(source)) => Self::Collective(id, source),
            _ => Self::Hidden,
        }
    }
}

impl<Q: Queues> ColPnp<Q> {
    /// Creates an engine with COL and PNP on an empty storage. If `k_collective` or
    /// `k_point_to_point` is 0, that part is a list.
    #[must_use]
    pub fn new(config: &EngineConfig, mut queues: Q) -> Self {
        queues.ensure(2);
        let theta = config.theta.max(1) as usize;
        let mut engine = Self {
            col: Col::new(&mut queues),
            pnp: Pnp::new(theta, &mut queues),
            queues,
            fields: config.layout.fields(),
            config: *config,
            short: theta,
            waiting: false,
            seen: DistinctSources::default(),
            col_cap: 0,
            pnp_cap: 0,
        };
        engine.set_caps(config.processes);
        engine
    }

    /// Sets the caps, k·sqrt(n).
    fn set_caps(&mut self, n: u32) {
        let cap = |k: u32| (f64::from(k) * f64::from(n).sqrt()) as usize;
        self.col_cap = cap(self.config.k_collective);
        self.pnp_cap = cap(self.config.k_point_to_point);
    }

    fn note_source(&mut self, source: u32) {
        if self.config.processes == 0 && self.seen.note(source) {
            self.set_caps(self.seen.count());
        }
    }

    /// The oldest match. All elements must have queues.
    #[inline(never)]
    fn search_placed<S: Lookup>(&self, queues: &S, key: &Key) -> Best {
        let probe = queues.probe(key);
        // COL must see the searches that it profiles.
        let split = self.pnp.dedicated() > 0 || self.col.is_used();
        if queues.prefers_list(self.short, split) {
            queues.oldest_match(&probe)
        } else {
            self.search_queues(queues, key, &probe)
        }
    }

    fn search_queues<S: Lookup>(&self, queues: &S, key: &Key, probe: &S::Probe<'_>) -> Best {
        let hidden = || queues.older_match(HIDDEN, probe, Best::NONE);
        match Lane::of(key, &self.fields) {
            Lane::Hidden => queues.oldest_match(probe),
            Lane::PointToPoint(None) => self.match_of_any_source(queues, probe),
            Lane::PointToPoint(Some(source)) => {
                let best = queues.older_match(ANY, probe, hidden());
                self.pnp.older_match(source, queues, probe, best)
            }
            Lane::Collective(id, source) => {
                self.col.older_match(id, source, queues, probe, hidden())
            }
        }
    }

    /// If there are too many elements for one list, gives a queue to each older element without one
    /// and then to the youngest.
    #[inline(never)]
    fn place(&mut self, youngest: HostHandle, bits: u64, ignore: u64, source: Source) {
        // The fields were in registers until here: see `Lookup::Probe`.
        let key = Key { bits, ignore, source };
        let many = self.queues.len() > Q::LIST && self.short > Q::LIST;
        if many && matches!(Lane::of(&key, &self.fields), Lane::Collective(..)) {
            self.short = Q::LIST;
        }
        if self.queues.len() <= self.short {
            self.waiting = true;
            return;
        }
        if self.waiting {
            self.place_all();
            return;
        }
        let queue = self.queue_for(&key);
        self.queues.place(youngest, queue);
    }

    #[cold]
    fn place_all(&mut self) {
        self.waiting = false;
        while let Some(handle) = self.queues.unplaced() {
            let key = key_of(self.queues.element(handle));
            let queue = self.queue_for(&key);
            self.queues.place(handle, queue);
        }
    }

    fn queue_for(&mut self, key: &Key) -> usize {
        match Lane::of(key, &self.fields) {
            Lane::Hidden => HIDDEN,
            Lane::PointToPoint(None) => ANY,
            Lane::PointToPoint(Some(source)) => {
                self.note_source(source);
                let fields = &self.fields;
                let of = |element: &Element| {
                    fields.source(&key_of(element)).get().expect("PNP elements have a source")
                };
                self.pnp.place(source, self.pnp_cap, of, &mut self.queues)
            }
            Lane::Collective(id, source) => {
                self.note_source(source);
                let call = self.fields.unsigned_tag(key.bits);
                self.col.place(id, call, source, self.col_cap, &mut self.queues)
            }
        }
    }

    /// The oldest match of a point-to-point key that names no source.
    fn match_of_any_source<S: Lookup>(&self, queues: &S, probe: &S::Probe<'_>) -> Best {
        let all = [HIDDEN, ANY].into_iter().chain(self.pnp.queues());
        queues.oldest_match_in(self.pnp.dedicated(), all, probe)
    }
}

// Always inlined: three engines share this code, and a call takes a tenth of a short search.
impl<Q: Queues> Engine for ColPnp<Q> {
    type Storage = Q;

    fn storage(&self) -> &Q {
        &self.queues
    }

    #[inline(always)]
    fn insert(&mut self, element: Element, age: u64) -> HostHandle {
        let handle = self.queues.push(element, age);
        if !self.waiting || self.queues.len() > Q::LIST.min(self.short) {
            let Element { bits, ignore, source, .. } = element;
            self.place(handle, bits, ignore, source);
        }
        handle
    }

    #[inline(always)]
    fn first_match(&self, key: &Key) -> Option<HostHit> {
        let found = if self.waiting {
            self.queues.oldest_match_of(key)
        } else {
            self.search_placed(&self.queues, key)
        };
        self.queues.hit(found)
    }

    #[inline(always)]
    fn remove(&mut self, handle: HostHandle) {
        let Self { queues, col, fields, .. } = self;
        queues.remove(handle, |element, queue| {
            if queue == col.profiling_queue()
                && let Lane::Collective(id, _) = Lane::of(&key_of(element), fields)
            {
                col.note_removed(id);
            }
        });
    }

    fn traversed(&self, key: &Key) -> u64 {
        if self.waiting {
            return self.queues.traversed_of_all(self.queues.oldest_match_of(key));
        }
        let view = CountingView::new(&self.queues);
        self.search_placed(&view, key);
        view.elements()
    }

    fn dedicated(&self) -> (usize, usize) {
        (self.col.dedicated(), self.pnp.dedicated())
    }

    fn levels(&self) -> [Vec<u64>; 2] {
        [self.col.levels(), self.pnp.levels()]
    }

    fn set_processes(&mut self, n: u32) {
        self.config.processes = n;
        self.set_caps(n);
    }
}
