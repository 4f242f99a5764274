// SPDX-License-Identifier: BSD-2-Clause
//! What is compared: a host engine on a storage of its queues.

use std::fmt;

use matching::{HostEngine, Queue};
use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    pub(crate) engine: HostEngine,
    pub(crate) queue: Queue,
}

/// Its names, as files have them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) engine: String,
    pub(crate) queue: String,
}

impl Contender {
    /// Every engine that is judged, on every storage.
    pub(crate) fn all() -> Vec<Self> {
        let engines = HostEngine::ALL.iter().copied().filter(|&engine| why_not(engine).is_none());
        let on_each = |engine| Queue::ALL.iter().map(move |&queue| Self { engine, queue });
        engines.flat_map(on_each).collect()
    }

    /// Engines that are not judged, and why.
    pub(crate) fn left_out() -> Vec<(HostEngine, &'static str)> {
        let engines = HostEngine::ALL.iter();
        engines.filter_map(|&engine| Some((engine, why_not(engine)?))).collect()
    }

    pub(crate) fn names(self) -> Names {
        Names { engine: self.engine.name().to_owned(), queue: self.queue.name().to_owned() }
    }

    /// The contender of these names, if there is one.
    pub(crate) fn named(names: &Names) -> Option<Self> {
        let (engine, queue) = (names.engine.parse().ok()?, names.queue.parse().ok()?);
        Some(Self { engine, queue })
    }

    /// Another engine on the same storage.
    pub(crate) fn with(self, engine: HostEngine) -> Self {
        Self { engine, ..self }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.engine.name(), self.queue.name())
    }
}

/// Why an engine is not judged, if it is not.
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
    fn names_are_read_back_and_every_engine_is_judged_or_left_out() {
        let all = Contender::all();
        for contender in &all {
            assert_eq!(Contender::named(&contender.names()), Some(*contender));
        }
        let engines = all.len() / Queue::ALL.len() + Contender::left_out().len();
        assert_eq!(engines, HostEngine::ALL.len());
        let strange = Names { engine: "tree".to_owned(), queue: "packed".to_owned() };
        assert_eq!(Contender::named(&strange), None);
    }
}
