// SPDX-License-Identifier: BSD-2-Clause
//! The part of a report that is kept when its counts are added up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nic::origin::Origin;
use nic::report::Report;

/// A report without its counts. Values that several reports of a job have in common are kept once.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) libfabric: Arc<str>,
    pub(crate) tcam: Arc<str>,
    pub(crate) host: Arc<str>,
    pub(crate) pid: u32,
    pub(crate) rank: Option<u32>,
    /// See [`Report::start_ns`].
    pub(crate) start_ns: u64,
    pub(crate) address: Box<str>,
    pub(crate) program: Arc<str>,
    pub(crate) origin: Arc<Origin>,
    /// Number of processes whose addresses the MPI gave.
    pub(crate) processes: u32,
    pub(crate) config: Arc<BTreeMap<String, String>>,
    /// True if tagged messages were matched.
    pub(crate) has_tagged: bool,
}

/// Values that several reports have in common.
#[derive(Debug, Default)]
pub(super) struct Shared {
    texts: BTreeSet<Arc<str>>,
    origins: BTreeSet<Arc<Origin>>,
    configs: BTreeSet<Arc<BTreeMap<String, String>>>,
}

impl Shared {
    pub(super) fn head(&mut self, report: &Report) -> Head {
        let mut text = |of: &String| match self.texts.get(of.as_str()) {
            Some(there) => Arc::clone(there),
            None => {
                let new: Arc<str> = of.as_str().into();
                self.texts.insert(Arc::clone(&new));
                new
            }
        };
        Head {
            libfabric: text(&report.libfabric),
            tcam: text(&report.tcam),
            host: text(&report.host),
            pid: report.pid,
            rank: report.rank,
            start_ns: report.start_ns,
            address: report.address.as_str().into(),
            program: text(&report.program),
            origin: share(&mut self.origins, &report.origin),
            processes: report.processes,
            config: share(&mut self.configs, &report.config),
            has_tagged: report.tagged.has_operations(),
        }
    }
}

fn share<T: Clone + Ord>(all: &mut BTreeSet<Arc<T>>, of: &T) -> Arc<T> {
    if let Some(there) = all.get(of) {
        return Arc::clone(there);
    }
    let new = Arc::new(of.clone());
    all.insert(Arc::clone(&new));
    new
}
