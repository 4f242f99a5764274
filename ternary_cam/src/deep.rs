// SPDX-License-Identifier: BSD-2-Clause
//! The entries that have left the nursery, and what finds the oldest of them.
//!
//! | entries | key | found by |
//! |---|---|---|
//! | of one kind | exact | a probe of the home index |
//! | exact | of the kind that the home index serves | the same |
//! | exact | of another kind | a probe of a side index, once such keys repeat |
//! | of several classes | exact | a probe of the home index for each class; the oldest wins |
//! | some without a class | exact | that and the scan; if they are most, soon the scan of all |
//! | with wildcards | with wildcards | the scan of all entries, once there were such keys |
//! | any | the first ones of their kind | a pass over the slots |
//! | few | any, if entries or keys are of several kinds | a comparison with all of them, the tray |
//!
//! The home index holds base entries under the pattern that most keys have, others under that of
//! their class. Keys have no wildcards at first, but a queue of unexpected messages that is only
//! ever searched with any source soon keeps its home index, and nothing else, under that. What no
//! search has used for long is dropped, and built again when searches wish for it.

mod age_log;
#[cfg(test)]
mod check;
mod classes;
mod home;
mod index;
mod insert;
mod keep;
mod parts;
mod pattern;
mod remove;
mod rings;
mod scan;
mod search;
mod side;
mod spread;
mod state;
mod tray;
mod tuple_space;
mod uniform;
mod upkeep;
mod wishes;

pub(crate) use parts::Deep;
