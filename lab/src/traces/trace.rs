// SPDX-License-Identifier: BSD-2-Clause
//! Opens a trace on the disk, and makes the device that it is replayed on.

use std::fs::File;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, OnceLock};

use matching::timing::{Costs, Pace, Timing};
use matching::{HostEngine, TagLayout};
use nic::clusters::{self, OwnClusters};
use nic::config::{self, DeviceConfig, Promise};
use nic::params::{Params, types::Auto};
use nic::timings::COSTS;
use nic::trace::{Address, HEADER, Header, Reader, Stop, TraceError};

use super::Take;
use super::node::{NodeFilter, Nodes};
use crate::error::Error;
use crate::results::Endpoint;
use crate::results::summary::{self, NO_LIBFABRIC};
use crate::settings::Settings;

/// Makes tcam print only once that a file of clusters (groups of sources, see `tcam cluster`) is of
/// another job.
static OTHER_JOB: Once = Once::new();

/// A trace on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    /// Start of the recording, in nanoseconds since 1970. All traces of a host have one clock, see
    /// [`files::find`](super::files::find).
    pub(super) start_ns: u64,
    /// Time at which the first rank of the run began, in nanoseconds since 1970.
    pub(super) began_ns: u64,
    /// Bytes of the file after the header: the window, which contains the youngest records, and the
    /// records after it (see [`nic::trace`]).
    pub(crate) bytes: u64,
    pub(crate) take: Take,
    /// True if its process was killed during the recording, or still runs.
    unfinished: bool,
    /// Why the recording ended before its program; `None` if it did not.
    stop: Option<Stop>,
    /// Why the trace is not complete. Set when a replay finds that it is not.
    cut: Arc<OnceLock<String>>,
    /// The placement of ranks on nodes, if messages within a node are left out.
    pub(crate) nodes: Option<Arc<Nodes>>,
}

impl Trace {
    pub(super) fn open(path: PathBuf, take: Take) -> Result<Self, Error> {
        let reader = reader(&path)?;
        let len = path.metadata().map_err(Error::io(&path))?.len();
        let header = reader.header().clone();
        let bytes = len.saturating_sub(HEADER as u64);
        let (unfinished, stop) = (reader.is_unfinished(), reader.stop());
        let (cut, nodes) = (Arc::default(), None);
        let (start_ns, began_ns) = (header.start_ns, header.start_ns);
        Ok(Self { path, header, start_ns, began_ns, bytes, take, unfinished, stop, cut, nodes })
    }

    /// Returns the time at which the recording began, in nanoseconds since the run began.
    pub(crate) fn since_ns(&self) -> u64 {
        self.start_ns.saturating_sub(self.began_ns)
    }

    /// Returns the start of the recording, in nanoseconds since 1970.
    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Returns the filter of messages between ranks of the same node. Returns `None` if the ranks
    /// were not placed on nodes, or if the rank of this trace is unknown.
    pub(crate) fn node_filter(&self) -> Option<NodeFilter<'_>> {
        let (nodes, rank) = (self.nodes.as_deref()?, self.header.rank?);
        // With an unknown layout, a receive that names no address is from any source.
        let layout = self.header.layout.parse().unwrap_or_default();
        Some(NodeFilter::new(nodes, rank, self.is_generated(), layout))
    }

    pub(crate) fn is_generated(&self) -> bool {
        self.header.libfabric == NO_LIBFABRIC
    }

    /// Returns true if messages arrived when their receiver polled.
    pub(crate) fn is_polled(&self) -> bool {
        summary::is_polled(&self.header.config, &self.header.libfabric)
    }

    /// Identifies the NIC of the trace. Returns the host of the process, or an empty name and the
    /// node on which the rank was placed.
    pub(crate) fn host(&self) -> (String, Option<u32>) {
        let node =
            self.nodes.as_ref().zip(self.header.rank).and_then(|(nodes, rank)| nodes.of(rank));
        (if node.is_some() { String::new() } else { self.header.host.clone() }, node)
    }

    /// Returns the address of the endpoint, or `None` if the header has none.
    pub(crate) fn address(&self) -> Option<Address> {
        let at = self.header.address.parse::<SocketAddrV4>().ok()?;
        Some(Address { ip: (*at.ip()).into(), port: at.port() })
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        (self.header.host.clone(), self.header.pid, self.header.address.clone())
    }

    /// Returns the bytes of records after the window. A short recording leaves the window nearly
    /// empty, so its bytes do not count.
    pub(crate) fn records(&self) -> u64 {
        self.bytes.saturating_sub(u64::from(self.header.window))
    }

    pub(crate) fn reader(&self) -> Result<Reader<File>, Error> {
        reader(&self.path)
    }

    /// Prints why the trace is not complete, once for any number of replays.
    pub(crate) fn tell(&self, why: &str) {
        if self.cut.set(why.to_owned()).is_ok() {
            eprintln!("{}: {why}", self.path.display());
        }
    }

    /// Returns why the trace is not complete, if a replay found that.
    pub(crate) fn cut(&self) -> Option<&str> {
        self.cut.get().map(String::as_str)
    }

    /// Returns true if nothing is known to be missing from the trace.
    pub(crate) fn is_whole(&self) -> bool {
        !self.unfinished && self.stop.is_none() && self.cut().is_none()
    }

    /// Returns true if the recording ended because the disk was full.
    pub(crate) fn found_no_room(&self) -> bool {
        self.stop == Some(Stop::Disk)
    }

    pub(crate) fn error(&self, error: TraceError) -> Error {
        Error::Trace { path: self.path.clone(), error }
    }

    /// Returns the recorded parameters; those of `settings` have priority. If `settings` contain a
    /// device, no recorded parameter is used; if they contain a timing, no recorded cost. The
    /// recorded kernel is never used.
    pub(crate) fn params(&self, settings: &Settings) -> Result<Params, Error> {
        // A device or a timing sets parameters whose recorded values would have priority over it.
        let (device, timing) = (settings.get("device"), settings.get("timing"));
        let recorded = |name: &str| match (device, name) {
            // The kernel depends on the machine, not on the experiment.
            (Some(_), _) | (None, "kernel") => None,
            (None, _) if timing.is_some() && COSTS.contains(&name) => None,
            (None, _) => self.header.config.get(name).cloned(),
        };
        let set = |name: &str| settings.get(name).map(str::to_owned);
        Ok(Params::from_lookup(|name| set(name).or_else(|| recorded(name)))?)
    }

    /// Returns the layout of match bits: the one that the parameters set, or the recorded one.
    /// Fails if this tcam does not know the recorded one.
    pub(crate) fn layout(&self, params: &Params) -> Result<TagLayout, Error> {
        if let Auto::Set(layout) = params.tag_layout {
            return Ok(layout);
        }
        self.header.layout.parse().map_err(|_| {
            message!(
                "{}: recorded with the tag layout `{}`, which this tcam does not know",
                self.path.display(),
                self.header.layout
            )
        })
    }

    /// Reads the clusters of this rank from a file. Returns `None` if the file is of another job,
    /// and prints a message.
    fn clusters(&self, file: &str) -> Result<Option<OwnClusters>, Error> {
        let path = Path::new(file);
        let Header { rank, origin, .. } = &self.header;
        let mut opened = host::regular::open(path).map_err(Error::io(path))?;
        let read = clusters::read(&mut opened, rank.unwrap_or(0), origin.ranks);
        match read {
            Ok(own) => Ok(Some(own)),
            Err(error) if error.is_other_job() => {
                OTHER_JOB.call_once(|| {
                    eprintln!("{file}: {error}; every source is in the default cluster");
                });
                Ok(None)
            }
            Err(error) => Err(Error::Clusters { path: path.to_owned(), error }),
        }
    }

    /// Returns the device of these parameters. The costs of its timing model are counted, but time
    /// does not pass.
    pub(crate) fn device(&self, params: &Params) -> Result<DeviceConfig, Error> {
        let layout = self.layout(params)?;
        let mut config = DeviceConfig::from_params(params, layout);
        (config.prq.depths, config.umq.depths) = (true, true);
        config.times = false;
        // Whether elements fit is judged by those that spill.
        config.onloads = false;
        if self.header.context != "tagged" {
            // Untagged receives are those of the MPI itself, and the promises are those of the
            // program.
            config.promise = Promise::default();
        }
        if config.prq.engine == HostEngine::Kmeans {
            config.clusters = self.clusters(&params.clusters)?;
        }
        let costs = config::costs(params);
        if costs != Costs::default() {
            config.timing = Some(Timing { costs, pace: Arc::new(NoTime) });
        }
        Ok(config)
    }
}

/// Ignores the time that the timing model charges. In a replay only recorded times pass.
#[derive(Debug)]
struct NoTime;

impl Pace for NoTime {
    fn spend(&self, _picoseconds: u64) {}
}

pub(super) fn reader(path: &Path) -> Result<Reader<File>, Error> {
    let file = host::regular::open(path).map_err(Error::io(path))?;
    Reader::new(file.into_inner()).map_err(|error| Error::Trace { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_window_has_no_records() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, window: u32, more: usize| {
            let path = directory.path().join(name);
            let mut bytes = Header { window, ..Header::default() }.to_bytes();
            bytes.resize(bytes.len() + more, 0);
            std::fs::write(&path, bytes).unwrap();
            Trace::open(path, Take::default()).unwrap()
        };
        assert_eq!(put("0.trace", 4096, 4096).records(), 0);
        assert_eq!(put("1.trace", 4096, 3 * 4096).records(), 2 * 4096);
        assert_eq!(put("2.trace", 0, 40).records(), 40);
    }
}
