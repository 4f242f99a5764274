// SPDX-License-Identifier: BSD-2-Clause
//! Compares a queue with a naive model of the overflow models: a list of elements with their
//! places. The model predicts the place of each element after each operation, and the counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use matching::pool::{LocalPool, Share};
use matching::timing::{Costs, Pace, Timing};
use matching::{
    Block, BlockReasons, Element, Found, Key, Leave, Offload, OffloadConfig, Overflow, Place,
    QueueCounters, Source, TableKind,
};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Insert,
    /// Inserts if there is room.
    InsertIfRoom,
    Refuse(Block),
    /// Removes the match with this age rank, modulo the length.
    Match(usize),
    Cancel(usize),
    Force,
    Leave,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Insert),
        3 => Just(Op::InsertIfRoom),
        1 => Just(Op::Refuse(Block::Refused)),
        2 => Just(Op::Refuse(Block::Short)),
        6 => (0..20_usize).prop_map(Op::Match),
        2 => (0..20_usize).prop_map(Op::Cancel),
        1 => Just(Op::Force),
    ]
}

/// The place of an element. On the host, the reason why it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Table,
    Waits,
    Short,
    Refused,
}

/// The naive model.
struct Model {
    entries: usize,
    overflow: Overflow,
    leave: Leave,
    /// Entries of the pool and the maximum share of the queue, if there is a pool.
    pool: Option<(usize, usize)>,
    /// Tokens and places, oldest element first.
    elements: Vec<(u32, At)>,
    has_left: bool,
    /// The element that the next insertion adds is already counted as held back.
    counted: bool,
    counts: QueueCounters,
    /// Elements in the table and on the host when the queue was longest.
    longest: (usize, usize),
}

impl Model {
    fn count(&self, at: At) -> usize {
        self.elements.iter().filter(|element| element.1 == at).count()
    }

    fn lengths(&self) -> (usize, usize) {
        let table = self.count(At::Table);
        (table, self.elements.len() - table)
    }

    /// The reason why no entry is free.
    fn draw(&self) -> Result<(), Block> {
        let taken = self.count(At::Table);
        let limits = [
            (self.entries, Block::TableFull),
            (self.pool.map_or(usize::MAX, |pool| pool.1), Block::PoolShare),
            (self.pool.map_or(usize::MAX, |pool| pool.0), Block::PoolEmpty),
        ];
        limits.into_iter().find(|limit| taken >= limit.0).map_or(Ok(()), |limit| Err(limit.1))
    }

    fn oldest_on_host(&mut self) -> Option<&mut (u32, At)> {
        self.elements.iter_mut().find(|element| element.1 != At::Table)
    }

    fn promotes(&self) -> bool {
        matches!(self.overflow, Overflow::Spill | Overflow::FlowControl)
    }

    /// Promotes the oldest element on the host, if it waits for an entry.
    fn promote(&mut self) -> Result<(), Block> {
        let oldest = self.oldest_on_host().filter(|oldest| oldest.1 == At::Waits);
        oldest.ok_or(Block::Order)?.1 = At::Table;
        self.counts.promotions += 1;
        Ok(())
    }

    fn promote_waiting(&mut self) -> Result<(), Block> {
        while self.count(At::Waits) > 0 {
            self.draw()?;
            self.promote()?;
        }
        Ok(())
    }

    fn admit(&mut self) -> Result<(), Block> {
        let len = self.elements.len();
        let (table, host) = self.lengths();
        let Leave { above, half_pool, .. } = self.leave;
        match self.overflow {
            Overflow::Spill | Overflow::FlowControl => self.promote_waiting()?,
            Overflow::Prefix if host > 0 && table == self.entries => return Err(Block::TableFull),
            Overflow::Prefix if host > 0 => return Err(Block::Order),
            Overflow::Sticky if self.has_left => return Err(Block::Sticky),
            Overflow::Sticky if above.is_some_and(|above| len >= above) => {
                return Err(Block::Preemptive);
            }
            Overflow::Sticky if half_pool && self.pool.is_some_and(|pool| table > pool.0 / 2) => {
                return Err(Block::Preemptive);
            }
            _ => {}
        }
        self.draw()
    }

    fn is_flow_controlled(&self) -> bool {
        self.overflow == Overflow::FlowControl && self.entries > 0
    }

    fn check_room(&mut self) -> bool {
        if !self.is_flow_controlled() {
            return true;
        }
        let room = self.count(At::Table) < self.entries && self.admit().is_ok();
        self.counts.held_back += u64::from(!room && !self.counted);
        self.counted = !room;
        room
    }

    fn insert(&mut self, token: u32) -> Place {
        match self.admit() {
            Ok(()) => {
                self.elements.push((token, At::Table));
                Place::Table
            }
            Err(reason) => {
                if self.is_flow_controlled() {
                    self.counts.held_back += u64::from(!self.counted);
                    self.counted = false;
                }
                self.spill(token, reason);
                Place::Host
            }
        }
    }

    fn spill(&mut self, token: u32, reason: Block) {
        let at = match reason {
            _ if self.entries == 0 => At::Waits,
            Block::Refused => At::Refused,
            Block::Short => At::Short,
            _ => At::Waits,
        };
        let BlockReasons {
            table_full,
            disabled,
            order,
            sticky,
            preemptive,
            pool_share,
            pool_empty,
            refused,
            short,
        } = &mut self.counts.block_reasons;
        *match reason {
            _ if self.entries == 0 => disabled,
            Block::TableFull => table_full,
            Block::Disabled => disabled,
            Block::Order => order,
            Block::Sticky => sticky,
            Block::Preemptive => preemptive,
            Block::PoolShare => pool_share,
            Block::PoolEmpty => pool_empty,
            Block::Refused => refused,
            Block::Short => short,
        } += 1;
        if at == At::Waits {
            self.leave();
        }
        self.elements.push((token, at));
        self.counts.spills += 1;
    }

    fn leave(&mut self) {
        if self.has_left || self.overflow != Overflow::Sticky || self.entries == 0 {
            return;
        }
        self.has_left = true;
        if self.leave.takes_along && self.lengths().1 == 0 {
            self.counts.onloads += self.elements.len() as u64;
            self.elements.iter_mut().for_each(|element| element.1 = At::Waits);
        }
    }

    fn remove(&mut self, rank: usize) {
        let (_, at) = self.elements.remove(rank);
        if !self.promotes() {
            return;
        }
        // If an element must stay, the elements behind it still wait.
        let _ = match at {
            At::Table => self.promote(),
            At::Waits if self.pool.is_none() => Ok(()),
            _ => self.promote_waiting(),
        };
    }

    fn force(&mut self) {
        if self.has_left {
            return;
        }
        loop {
            let rank = self.elements.iter().position(|element| element.1 != At::Table);
            let Some(rank) = rank else { return };
            let before_table = self.elements[rank..].iter().any(|element| element.1 == At::Table);
            if self.elements[rank].1 == At::Refused || before_table || self.draw().is_err() {
                return;
            }
            self.elements[rank].1 = At::Table;
            self.counts.promotions += 1;
        }
    }

    fn note_lengths(&mut self) {
        let (table, host) = self.lengths();
        let QueueCounters { table_high_water, host_high_water, high_water, .. } = &mut self.counts;
        for (most, length) in
            [(table_high_water, table), (host_high_water, host), (high_water, table + host)]
        {
            *most = (*most).max(length as u64);
        }
        if table + host > self.longest.0 + self.longest.1 {
            self.longest = (table, host);
        }
    }
}

/// A pace that adds up the time instead of waiting.
#[derive(Debug, Default)]
struct Sum(AtomicU64);

impl Pace for Sum {
    fn spend(&self, picoseconds: u64) {
        self.0.fetch_add(picoseconds, Ordering::Relaxed);
    }
}

const SPILL: u64 = 5;
const PROMOTE: u64 = 700;

#[derive(Clone, Debug)]
struct Case {
    config: OffloadConfig,
    pool: Option<(usize, usize)>,
    is_timed: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let leave = (any::<bool>(), prop::option::of(0..4_usize), any::<bool>())
        .prop_map(|(takes_along, above, half_pool)| Leave { takes_along, above, half_pool });
    let table = prop_oneof![2 => Just(TableKind::Index), 1 => Just(TableKind::Cam)];
    let pool = prop::option::of((1..5_usize, 1..5_usize));
    let overflow = prop::sample::select(Overflow::ALL);
    (0..5_usize, overflow, leave, table, pool, any::<bool>()).prop_map(
        |(entries, overflow, leave, table, pool, is_timed)| {
            let config =
                OffloadConfig { entries, overflow, leave, table, ..OffloadConfig::default() };
            Case { config, pool, is_timed }
        },
    )
}

fn key(token: u32) -> Key {
    Key { bits: token.into(), ignore: 0, source: Source::new(1) }
}

fn play(case: &Case, ops: &[Op]) {
    let Case { config, pool, is_timed } = *case;
    let OffloadConfig { entries, overflow, leave, .. } = config;
    let mut queue = Offload::new(&config).unwrap();
    let local = LocalPool::new(pool.map_or(1, |pool| pool.0 as u32));
    if let Some((_, max)) = pool {
        let share = Share { reserved: 0, max: max as u32 };
        queue = queue.with_pool(Arc::new(local.join(share).unwrap()));
    }
    let pace = Arc::new(Sum::default());
    if is_timed {
        let costs = Costs { spill: SPILL, promote: PROMOTE, ..Costs::default() };
        queue = queue.with_timing(Timing { costs, pace: pace.clone() });
    }
    let mut model = Model {
        entries,
        overflow,
        leave,
        pool,
        elements: Vec::new(),
        has_left: false,
        counted: false,
        counts: QueueCounters::default(),
        longest: (0, 0),
    };
    assert_eq!(queue.is_flow_controlled(), model.is_flow_controlled());
    for (token, &op) in (0..).zip(ops) {
        let element = Element { bits: token.into(), ignore: 0, source: Source::ANY, token };
        let len = model.elements.len();
        match op {
            Op::Insert => assert_eq!(queue.insert(element), model.insert(token)),
            Op::InsertIfRoom => {
                let room = queue.check_room();
                assert_eq!(room, model.check_room());
                if room {
                    assert_eq!(queue.insert(element), model.insert(token));
                }
            }
            Op::Refuse(reason) => {
                queue.refuse(element, reason);
                model.spill(token, reason);
            }
            Op::Match(rank) if len > 0 => {
                let (token, _) = model.elements[rank % len];
                assert_eq!(queue.search(&key(token)).map(|found| found.token), Some(token));
                assert!(queue.remove_matched(token));
                model.remove(rank % len);
            }
            Op::Cancel(rank) if len > 0 => {
                assert!(queue.cancel(model.elements[rank % len].0));
                model.remove(rank % len);
            }
            Op::Match(_) | Op::Cancel(_) => assert!(!queue.cancel(token)),
            Op::Force => {
                queue.force();
                model.force();
            }
            Op::Leave => {
                queue.leave();
                model.leave();
            }
        }
        model.note_lengths();
        let (table, host) = model.lengths();
        assert_eq!((queue.occupancy(), queue.len()), ((table, host), table + host), "{op:?}");
        for &(token, at) in &model.elements {
            let place = if at == At::Table { Place::Table } else { Place::Host };
            assert_eq!(queue.find(&key(token)), Some(Found { token, place }), "{op:?}");
        }
        let tokens = model.elements.iter().map(|element| element.0);
        assert!(queue.iter_tokens().eq(tokens));
        assert_eq!(queue.has_left(), model.has_left);
        let waits = model.count(At::Waits) > 0;
        assert_eq!(queue.holds_back(), waits && model.is_flow_controlled());
        assert_eq!(queue.recent(), model.longest);
        if pool.is_some() {
            assert_eq!(local.taken() as usize, table);
        }
    }
    let counters = queue.counters();
    counters.check().unwrap();
    let of = |of: &QueueCounters| {
        let moves = [of.spills, of.promotions, of.onloads, of.held_back];
        let marks = [of.table_high_water, of.host_high_water, of.high_water];
        (moves, marks, of.block_reasons.clone())
    };
    assert_eq!(of(&counters), of(&model.counts));
    let (spills, promotions) = (counters.spills + counters.onloads, counters.promotions);
    let charged = u64::from(is_timed) * (spills * SPILL + promotions * PROMOTE);
    assert_eq!((queue.charged(), pace.0.load(Ordering::Relaxed)), (charged, charged));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 2000 }))]

    #[test]
    fn elements_are_where_the_overflow_model_says(
        case in case(),
        ops in prop::collection::vec(op(), 0..60),
        leaves_at in prop::option::of(0..60_usize),
    ) {
        let mut ops = ops;
        if let Some(at) = leaves_at {
            ops.insert(at.min(ops.len()), Op::Leave);
        }
        play(&case, &ops);
    }
}
