// SPDX-License-Identifier: BSD-2-Clause
//! Draws pictures: the capacity curve and the need of a NIC. Also has the parts that all pictures
//! share.

pub(crate) mod canvas;
pub(crate) mod capacity;
pub(crate) mod chart;
pub(crate) mod need;
pub(crate) mod panel;
pub(crate) mod picture;
pub(crate) mod signs;

pub(crate) use self::canvas::{Align, Canvas, Position};
pub(crate) use self::chart::{Chart, Scale};
pub(crate) use self::need::NeedOfNic;
pub(crate) use self::picture::Picture;
pub(crate) use self::signs::Sign;
