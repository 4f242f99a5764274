// SPDX-License-Identifier: BSD-2-Clause
//! The contenders: the engines on their storages, and UCX's hash. The engine `kmeans` is left out,
//! because its gain depends on its clusters; `papers/reproduce.sh kmeans` measures it.

use matching::{
    ColPnp, Element, Engine, EngineConfig, Hash, Kernel, Key, Linked, List, NewMadeleine, Packed,
    RankArray, Role, Scanner, TagLayout,
};

use crate::{competitors::Ucx, matcher::Matcher, stream::Stream};

/// Engine and storage.
pub(crate) const CONTENDERS: [[&str; 2]; 11] = [
    ["list", "linked"],
    ["list", "packed"],
    ["rank-array", "linked"],
    ["rank-array", "packed"],
    ["col-list", "packed"],
    ["list-pnp", "packed"],
    ["col-pnp", "linked"],
    ["col-pnp", "packed"],
    ["hash", ""],
    ["newmadeleine", ""],
    ["UCX", "hash"],
];
pub(crate) const LINKED_COL_PNP: usize = 6;
pub(crate) const COL_PNP: usize = 7;
pub(crate) const UCX: usize = 10;

/// An engine with an age counter.
pub(crate) struct Aged<E> {
    engine: E,
    age: u64,
}

impl<E: Engine> Aged<E> {
    const fn new(engine: E) -> Self {
        Self { engine, age: 0 }
    }
}

impl<E: Engine> Matcher for Aged<E> {
    #[inline(always)]
    fn insert(&mut self, element: Element) {
        self.engine.insert(element, self.age);
        self.age += 1;
    }

    #[inline(always)]
    fn take(&mut self, key: &Key) -> Option<u32> {
        let hit = self.engine.first_match(key)?;
        self.engine.remove(hit.handle);
        Some(hit.token)
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> Option<u32> {
        self.engine.first_match(key).map(|hit| hit.token)
    }
}

/// A matcher, with the number of queues that it made.
pub(crate) trait Contender: Matcher {
    fn dedicated(&self) -> (usize, usize) {
        (0, 0)
    }
}

impl Contender for Ucx {}

impl<E: Engine> Contender for Aged<E> {
    fn dedicated(&self) -> (usize, usize) {
        self.engine.dedicated()
    }
}

/// An action for each contender.
pub(crate) trait Visitor {
    fn visit<C: Contender + 'static>(&mut self, contender: C);
}

/// Visits the contenders in the order of [`CONTENDERS`].
pub(crate) fn visit_all(stream: &Stream, visitor: &mut impl Visitor) {
    let config = |k_collective, k_point_to_point| EngineConfig {
        layout: TagLayout::Mpich,
        k_collective,
        k_point_to_point,
        processes: stream.processes as u32,
        ..EngineConfig::default()
    };
    // The parameters that the paper found best for lists.
    let as_the_paper = |k| EngineConfig { theta: 100, ..config(k, k) };
    let linked = Linked::default;
    let scanner = Scanner::new(Kernel::best()).expect("the best there is");
    let packed = || Packed::new(&config(0, 0), scanner);
    let k = stream.k;
    visitor.visit(Aged::new(List::new(linked())));
    visitor.visit(Aged::new(List::new(packed())));
    visitor.visit(Aged::new(RankArray::new(linked())));
    visitor.visit(Aged::new(RankArray::new(packed())));
    visitor.visit(Aged::new(ColPnp::new(&config(k, 0), packed())));
    visitor.visit(Aged::new(ColPnp::new(&config(0, k), packed())));
    visitor.visit(Aged::new(ColPnp::new(&as_the_paper(k), linked())));
    visitor.visit(Aged::new(ColPnp::new(&config(k, k), packed())));
    let role = if stream.unexpected { Role::Unexpected } else { Role::Posted };
    visitor.visit(Aged::new(Hash::new(TagLayout::Mpich)));
    visitor.visit(Aged::new(NewMadeleine::new(TagLayout::Mpich, role)));
    // During the check of the results, the queue contains the elements of two steps.
    visitor.visit(Ucx::new(2 * stream.posts.len() + stream.standing.len(), stream.unexpected));
}
