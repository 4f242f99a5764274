// SPDX-License-Identifier: BSD-2-Clause
//! A host engine with a storage of its queues.

use std::fmt;

use matching::{HostEngine, HostStorage};
use serde::{Serialize, Serializer};

/// A host engine with a storage of its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Contender {
    #[serde(serialize_with = "name_of_engine")]
    pub(crate) engine: HostEngine,
    #[serde(serialize_with = "name_of_queue")]
    pub(crate) queue: HostStorage,
}

fn name_of_engine<S: Serializer>(engine: &HostEngine, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(engine.name())
}

fn name_of_queue<S: Serializer>(queue: &HostStorage, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(queue.name())
}

impl Contender {
    /// Returns every engine that is measured, on every storage.
    pub(crate) fn all() -> Vec<Self> {
        let engines = HostEngine::ALL.iter().copied().filter(|&engine| why_not(engine).is_none());
        let on_each = |engine| HostStorage::ALL.iter().map(move |&queue| Self { engine, queue });
        engines.flat_map(on_each).collect()
    }

    /// Returns true if the engine is for programs that promise to use no wildcard.
    pub(crate) fn promises(self) -> bool {
        self.engine == HostEngine::Hash
    }

    /// Returns the engines that are not measured, with the reason.
    pub(crate) fn left_out() -> Vec<(HostEngine, &'static str)> {
        let engines = HostEngine::ALL.iter();
        engines.filter_map(|&engine| Some((engine, why_not(engine)?))).collect()
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.engine.name(), self.queue.name())
    }
}

/// Returns the reason why an engine is not measured, or none if it is measured.
fn why_not(engine: HostEngine) -> Option<&'static str> {
    match engine {
        HostEngine::Kmeans => Some("it needs clusters of an earlier run"),
        HostEngine::TailQueues => Some("a replay has one thread, which finds it as quick as list"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_measured_or_left_out() {
        let engines = Contender::all().len() / HostStorage::ALL.len() + Contender::left_out().len();
        assert_eq!(engines, HostEngine::ALL.len());
    }
}
