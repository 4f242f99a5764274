// SPDX-License-Identifier: BSD-2-Clause
//! The entries that have left the nursery, and the structures that find the oldest match.
//!
//! | entries | key | found by |
//! |---|---|---|
//! | of one kind | exact | a probe of the home index |
//! | exact | of the kind that the home index serves | a probe of the home index |
//! | exact | of another kind | a probe of a side index, once such keys repeat |
//! | of several classes | exact | a probe of the home index for each class; the oldest wins |
//! | some without a class | exact | the home index and the scan; if most have no class, soon the scan of all |
//! | with wildcards | with wildcards | the scan of all entries, after the first such keys |
//! | any | the first ones of their kind | a pass over the slots |
//! | few | any, if entries or keys are of several kinds | a comparison with all entries (the tray) |
//!
//! The home index (primary index) holds base entries under the pattern of most keys, and other
//! entries under the pattern of their class. At first, keys have no wildcards. A queue of
//! unexpected messages that is only searched with any source soon keeps only its home index, under
//! that pattern. A structure that no search has used for long is dropped, and built again when
//! searches request it (a *wish*).

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
