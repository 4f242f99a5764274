// SPDX-License-Identifier: BSD-2-Clause
//! Traces on the disk, and their replays.

pub(crate) mod counted;
pub(crate) mod engines;
pub(crate) mod files;
pub(crate) mod node;
pub(crate) mod play;
pub(crate) mod player;
pub(crate) mod repeats;
pub(crate) mod take;
pub(crate) mod together;
pub(crate) mod trace;

pub(crate) use self::counted::Counted;
pub(crate) use self::engines::NicEngines;
pub(crate) use self::files::Found;
pub(crate) use self::node::Placed;
pub(crate) use self::play::Curves;
pub(crate) use self::player::Player;
pub(crate) use self::repeats::{Measured, Recording};
pub(crate) use self::take::Take;
pub(crate) use self::together::JointReplay;
pub(crate) use self::trace::Trace;
