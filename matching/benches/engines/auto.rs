// SPDX-License-Identifier: BSD-2-Clause
//! Runs `auto` and the fixed engines that it is compared with, each behind a table without entries,
//! as in a device.

use matching::{
    Element, EngineConfig, HostEngine, HostStorage, Key, Offload, OffloadConfig, Role, TagLayout,
};

use crate::{
    contender::{Contender, Visitor},
    matcher::Matcher,
    stream::Stream,
};

/// The engines that `auto` is compared with; `kmeans` is left out because it needs a file.
pub(crate) const FIXED: [HostEngine; 7] = [
    HostEngine::List,
    HostEngine::RankArray,
    HostEngine::ColList,
    HostEngine::ListPnp,
    HostEngine::ColPnp,
    HostEngine::Hash,
    HostEngine::NewMadeleine,
];

/// An engine behind a table, as in a device.
pub(crate) struct Behind(Offload);

impl Matcher for Behind {
    #[inline(always)]
    fn insert(&mut self, element: Element) {
        self.0.insert(element);
    }

    #[inline(always)]
    fn take(&mut self, key: &Key) -> Option<u32> {
        let found = self.0.search(key)?;
        self.0.remove_matched(found.token);
        Some(found.token)
    }

    #[inline(always)]
    fn find(&self, key: &Key) -> Option<u32> {
        self.0.find(key).map(|found| found.token)
    }
}

impl Contender for Behind {
    fn chosen(&self) -> String {
        let choices = self.0.counters().choices;
        let engines: Vec<_> = choices.into_iter().map(|choice| choice.engine).collect();
        if engines.is_empty() { "list".to_owned() } else { engines.join(", ") }
    }
}

/// Visits engines behind tables.
pub(crate) fn visit(
    stream: &Stream,
    queue: HostStorage,
    engines: &[HostEngine],
    visitor: &mut impl Visitor,
) {
    let engine_config = EngineConfig {
        storage: queue,
        layout: TagLayout::Mpich,
        role: if stream.unexpected { Role::Unexpected } else { Role::Posted },
        processes: stream.processes as u32,
        ..EngineConfig::default()
    };
    for &engine in engines {
        let config = OffloadConfig { entries: 0, engine, engine_config, ..Default::default() };
        visitor.visit(Behind(Offload::new(&config).expect("the best kernel there is")));
    }
}
