// SPDX-License-Identifier: BSD-2-Clause
//! Shows the results of an experiment as tables, pictures, pages and files. An experiment consists
//! of the reports and traces of a run.

pub(crate) mod by;
pub(crate) mod endpoints;
pub(crate) mod export;
pub(crate) mod figures;
pub(crate) mod fill;
pub(crate) mod material;
pub(crate) mod operation;
pub(crate) mod operations;
pub(crate) mod outcome;
pub(crate) mod page;
pub(crate) mod phases;
pub(crate) mod profile;
pub(crate) mod rank;
pub(crate) mod repeated;
pub(crate) mod sheets;
pub(crate) mod sites;
pub(crate) mod threads;

pub(crate) use self::by::{By, Communicators, Groups};
pub(crate) use self::fill::{ElementClass, Series, TimeWindow};
pub(crate) use self::material::Material;
pub(crate) use self::outcome::{Counts, Experiment, Inputs, Keep};
pub(crate) use self::profile::{Clustered, RankProfile, SourceProfile};
pub(crate) use self::rank::{QueueKind, Rank};
pub(crate) use self::repeated::Repeated;
pub(crate) use self::sites::CallSites;
pub(crate) use self::threads::Threads;
