// SPDX-License-Identifier: BSD-2-Clause
//! The size that a table needs: the points of a capacity curve, and conclusions from them.

pub(crate) mod curve;
pub(crate) mod judged;
pub(crate) mod late;
pub(crate) mod need;
pub(crate) mod point;
pub(crate) mod rows;
pub(crate) mod sizes;
pub(crate) mod smallest;
pub(crate) mod verdict;
