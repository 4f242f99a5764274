// SPDX-License-Identifier: BSD-2-Clause
//! Computes the size that a match table or a pool of entries needs: the points of a capacity curve
//! (the results at each size), and conclusions from them.

pub(crate) mod curve;
pub(crate) mod demand;
pub(crate) mod judged;
pub(crate) mod late;
pub(crate) mod list_entries;
pub(crate) mod need;
mod order;
pub(crate) mod point;
mod polls;
pub(crate) mod rows;
mod sends;
pub(crate) mod sizes;
pub(crate) mod smallest;
pub(crate) mod verdict;

pub(crate) use self::curve::Replayed;
pub(crate) use self::judged::Judged;
pub(crate) use self::need::{Knob, Need, PeakNeed};
pub(crate) use self::point::{Cost, Modelled, Point};
pub(crate) use self::polls::BetweenPolls;
pub(crate) use self::rows::{Rows, Runs};
pub(crate) use self::sizes::{Sizes, UmqSizes};
pub(crate) use self::verdict::Swept;
