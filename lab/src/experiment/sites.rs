// SPDX-License-Identifier: BSD-2-Clause
//! The places in the program from which receives were posted and messages sent, for traces with
//! sites (`tcam run --sites`).
//!
//! A message has the place that sent it, if sends are recorded: the n-th message that arrives from
//! a sender is the n-th that the sender sent to this endpoint. Otherwise it has the place of the
//! receive that took it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::ProgressBar;
use nic::replay::Change;
use nic::trace::{Address, Caller, Module, Op};
use rustc_hash::FxHashMap as HashMap;

use super::endpoints::{Endpoints, tagged};
use crate::error::Error;
use crate::results::RunRecord;
use crate::settings::Settings;
use crate::symbols::{Directories, StackFrame, Symbols, Unread};
use crate::text::{count, whole};
use crate::traces::{Player, Trace, play};

/// Name of the place of elements whose place is unknown.
const UNKNOWN: &str = "no call of the program";

/// A place: the function of MPI, and each caller.
type Place = (String, Vec<(Module, u64)>);

/// How messages got their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MessagePlace {
    /// The place that sent the message.
    #[default]
    Sent,
    /// The place of the receive that took it.
    Taken,
}

/// Places of the operations in some traces.
#[derive(Debug, Default)]
pub(crate) struct CallSites {
    /// Names of the places. Place 0 is unknown.
    names: Vec<String>,
    /// For each trace, its index and the number of the place for each site of the trace.
    traces: HashMap<PathBuf, (u32, Vec<u32>)>,
    /// Places of the messages that one trace sent to another, in their order: the place, and the
    /// number of messages in a row.
    sent: HashMap<(u32, u32), Vec<(u32, u64)>>,
    endpoints: Endpoints,
    pub(crate) messages: MessagePlace,
    /// Sentences on places whose lines are unknown.
    pub(crate) notes: Vec<String>,
    /// Sentences on ranks without places.
    pub(crate) lacking: Vec<String>,
}

/// The sites of a trace, and those of its sends by receiver.
struct Scanned {
    sites: nic::trace::Sites,
    sent: HashMap<u32, Vec<(u32, u64)>>,
    /// True if an operation could have a site.
    has_calls: bool,
}

impl CallSites {
    /// Returns true if the traces were recorded with `--sites`, even if no rank has places.
    pub(crate) fn are_recorded(traces: &[Trace]) -> bool {
        let is_of = |(directory, jobs): (&PathBuf, &BTreeSet<u64>)| {
            let jobs = jobs.iter().copied().map(Some);
            RunRecord::beside(directory).is_some_and(|record| record.sites && record.is_of(jobs))
        };
        traces.iter().any(|trace| trace.header.sites) || directories(traces).iter().any(is_of)
    }

    /// Returns the places of these traces; none if no places were recorded. Reads the traces once.
    pub(crate) fn of(traces: &[Trace]) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self::with_symbols(traces)?.map(|(sites, _)| sites).unwrap_or_default()))
    }

    /// Writes the functions and lines of the places into the directory of the traces; removes those
    /// of an earlier recording. Returns sentences on ranks without places.
    pub(crate) fn write(traces: &[Trace], directory: &Path) -> Result<Vec<String>, Error> {
        Symbols::remove(directory)?;
        let Some((found, symbols)) = Self::with_symbols(traces)? else { return Ok(Vec::new()) };
        let jobs = traces.iter().filter_map(|trace| trace.header.origin.job);
        symbols.write(directory, jobs.collect())?;
        Ok(found.lacking)
    }

    fn with_symbols(traces: &[Trace]) -> Result<Option<(Self, Symbols)>, Error> {
        let traces = tagged(traces);
        if !Self::are_recorded(&traces) {
            return Ok(None);
        }
        let endpoints = Endpoints::of((0..).zip(&traces).map(|(at, trace)| (&trace.header, at)));
        // The bar counts replays only.
        let hidden = ProgressBar::hidden();
        let scanned = play::each(&traces, &hidden, |trace, _| scan(trace, &endpoints))?;
        let mut needed: BTreeMap<Module, BTreeSet<u64>> = BTreeMap::new();
        let (mut numbers, mut places) = (BTreeMap::new(), Vec::new());
        let mut found = Self { endpoints, messages: MessagePlace::Taken, ..Self::default() };
        let (mut of_traces, mut sent) = (Vec::new(), Vec::new());
        found.lacking = lacking(&traces, &scanned);
        for Scanned { sites: nic::trace::Sites { modules, sites }, sent: of_trace, .. } in scanned {
            let mut of_sites = vec![0];
            for site in sites {
                let caller = |caller: Caller| {
                    let module: &Module = &modules[caller.module as usize];
                    (module.clone(), caller.offset)
                };
                let place: Place = (site.function, site.callers.into_iter().map(caller).collect());
                for (module, offset) in &place.1 {
                    needed.entry(module.clone()).or_default().insert(*offset);
                }
                of_sites.push(*numbers.entry(place.clone()).or_insert_with(|| {
                    places.push(place);
                    places.len() as u32
                }));
            }
            of_traces.push(of_sites);
            sent.push(of_trace);
        }
        let symbols = Symbols::of(&needed, &directories(&traces));
        found.names.push(UNKNOWN.to_owned());
        found.names.extend(places.iter().map(|place| name(place, &symbols)));
        found.notes = symbols.unused.iter().cloned().chain(notes(&places, &symbols)).collect();
        for (from, (trace, (of_sites, sent))) in
            (0..).zip(traces.iter().zip(of_traces.into_iter().zip(sent)))
        {
            for (to, mut sent) in sent {
                found.messages = MessagePlace::Sent;
                sent.iter_mut().for_each(|(site, _)| *site = of_sites[*site as usize]);
                found.sent.insert((from, to), sent);
            }
            found.traces.insert(trace.path.clone(), (from, of_sites));
        }
        Ok(Some((found, symbols)))
    }

    /// Returns true if no place is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.len() <= 1
    }

    /// Returns the name of a place.
    pub(crate) fn name(&self, place: u32) -> &str {
        self.names.get(place as usize).map_or(UNKNOWN, String::as_str)
    }

    /// Returns the places of the operations of a trace.
    pub(crate) fn in_trace<'a>(&'a self, trace: &'a Trace) -> Result<TraceSites<'a>, Error> {
        let Some((index, places)) = self.traces.get(&trace.path) else {
            return Ok(TraceSites::default());
        };
        let mut taken = HashMap::default();
        if self.messages == MessagePlace::Taken {
            let mut player = Player::new(trace, &Settings::default())?;
            let mut changes = Vec::new();
            while let Some(timed) = player.next()? {
                player.step_with_changes(&timed, |change| changes.push(change))?;
                let place = places[player.site() as usize];
                let numbers = changes.drain(..).filter_map(|change| match change {
                    Change::Taken(number) => Some((number, place)),
                    _ => None,
                });
                taken.extend(numbers);
            }
        }
        let sites = Some((self, *index, places.as_slice()));
        Ok(TraceSites { sites, host: &trace.header.host, taken, ..TraceSites::default() })
    }
}

/// Reads the sites of a trace.
fn scan(trace: &Trace, endpoints: &Endpoints) -> Result<Scanned, Error> {
    let mut sent: HashMap<u32, Vec<(u32, u64)>> = HashMap::default();
    let mut receivers: HashMap<u32, Option<u32>> = HashMap::default();
    let host = &trace.header.host;
    let mut has_calls = false;
    let sites = play::scan(trace, |op, site, peers| {
        has_calls |= matches!(op, Op::Post(_) | Op::PostAnyway(_) | Op::Held(_) | Op::Send(_));
        let Op::Send(message) = op else { return };
        let receiver = *receivers.entry(message.peer).or_insert_with(|| {
            peers.get(&message.peer).and_then(|address| endpoints.at(host, *address))
        });
        let Some(receiver) = receiver else { return };
        let sent = sent.entry(receiver).or_default();
        match sent.last_mut().filter(|(last, _)| *last == site) {
            Some((_, count)) => *count += 1,
            None => sent.push((site, 1)),
        }
    })?;
    Ok(Scanned { sites, sent, has_calls })
}

/// The places of the operations of a trace that is replayed.
#[derive(Default)]
pub(crate) struct TraceSites<'a> {
    /// All places, the index of the trace, and the number of the place for each of its sites.
    sites: Option<(&'a CallSites, u32, &'a [u32])>,
    host: &'a str,
    /// Places of the receives that took messages, by number of the message.
    taken: HashMap<u64, u32>,
    /// For each source, the messages that it sent here and that did not arrive yet.
    coming: HashMap<u32, std::vec::IntoIter<(u32, u64)>>,
    /// For each source, the place of the next messages, and their number.
    next: HashMap<u32, (u32, u64)>,
    /// Place of the operation.
    place: u32,
}

impl TraceSites<'_> {
    /// Notes an operation that is replayed next.
    pub(crate) fn note(&mut self, op: &Op, site: u32, peers: &BTreeMap<u32, Address>) {
        let Some((sites, own, places)) = self.sites else { return };
        let Op::Arrive(message) = op else {
            self.place = places[site as usize];
            return;
        };
        if sites.messages == MessagePlace::Taken {
            return;
        }
        let coming = self.coming.entry(message.source).or_insert_with(|| {
            let address = peers.get(&message.source);
            let sender = address.and_then(|address| sites.endpoints.at(self.host, *address));
            let sent = sender.and_then(|sender| sites.sent.get(&(sender, own)));
            sent.cloned().unwrap_or_default().into_iter()
        });
        let next = self.next.entry(message.source).or_default();
        if next.1 == 0 {
            *next = coming.next().unwrap_or_default();
        }
        next.1 = next.1.saturating_sub(1);
        self.place = next.0;
    }

    /// Returns the place of a receive that is posted.
    pub(crate) fn posted(&self) -> u32 {
        self.place
    }

    /// Returns the place of a message that is kept.
    pub(crate) fn kept(&self, number: u64) -> u32 {
        match self.sites {
            Some((sites, ..)) if sites.messages == MessagePlace::Taken => {
                self.taken.get(&number).copied().unwrap_or(0)
            }
            _ => self.place,
        }
    }
}

/// Returns the name of a place, such as `post_all at fds_gather.c:87 (MPI_Irecv)`. With several
/// callers, each is named, and functions that the compiler put into others count as callers.
fn name((function, callers): &Place, symbols: &Symbols) -> String {
    let mut names: Vec<String> = Vec::new();
    for (module, offset) in callers {
        let frames = symbols.at(module, *offset);
        names.extend(frames.iter().filter_map(|frame| frame_name(frame, module)));
        if frames.is_empty() {
            names.push(format!("{}+{offset:#x}", base(&module.path)));
        }
    }
    names.truncate(callers.len());
    if let Some(main) = names.iter().position(|name| name.starts_with("main ")) {
        names.truncate(main + 1);
    }
    format!("{} ({function})", names.join(", called by "))
}

fn frame_name(StackFrame { function, file, line }: &StackFrame, module: &Module) -> Option<String> {
    let function = function.as_deref();
    match (file, line) {
        (Some(file), Some(line)) => {
            Some(format!("{} at {}:{line}", function.unwrap_or("?"), base(file)))
        }
        _ => function.map(|function| format!("{function} in {}", base(&module.path))),
    }
}

/// Returns the file name of a path.
fn base(path: &str) -> &str {
    match path.rsplit('/').next() {
        Some("") | None => "memory without a file",
        Some(name) => name,
    }
}

/// Returns the directories of these traces, with the jobs of the traces in each.
fn directories(traces: &[Trace]) -> Directories {
    let mut directories = Directories::new();
    for trace in traces {
        let directory = trace.path.parent().unwrap_or(Path::new("")).to_owned();
        directories.entry(directory).or_default().extend(trace.header.origin.job);
    }
    directories
}

/// Returns a sentence for each reason why ranks have no places.
fn lacking(traces: &[Trace], scanned: &[Scanned]) -> Vec<String> {
    let process = |trace: &Trace| (trace.header.rank, trace.host().to_owned(), trace.header.pid);
    let of = |is_of: fn(&Trace, &Scanned) -> bool| {
        let of = traces.iter().zip(scanned).filter(|(trace, scanned)| is_of(trace, scanned));
        of.map(|(trace, _)| process(trace)).collect::<BTreeSet<_>>()
    };
    let (all, without) = (of(|_, _| true), of(|trace, _| !trace.header.sites));
    let mut unreached = of(|trace, scanned| trace.header.sites && scanned.has_calls);
    let named = of(|_, scanned| !scanned.sites.sites.is_empty());
    unreached.retain(|process| !named.contains(process));
    let sentence = |ranks: BTreeSet<_>, why: &str| {
        let some = match (ranks.len(), all.len()) {
            (0, _) => return None,
            (some, of) if some == of && of > 1 => format!("None of the {of} ranks has"),
            (1, of) => format!("1 of {} has no", count(of as u64, "rank")),
            (some, of) => format!("{} of {of} ranks have no", whole(some as u64)),
        };
        Some(format!("{some} places in the program: {why}"))
    };
    let whys = [
        sentence(
            without,
            "libtcam-sites.so was not loaded, because a script has set another LD_PRELOAD, or \
             because the program is linked with -static",
        ),
        sentence(
            unreached,
            "no call of MPI went through libtcam-sites.so, probably because MPI is linked into the \
             program",
        ),
    ];
    whys.into_iter().flatten().collect()
}

/// Returns a sentence for each module whose lines are unknown.
fn notes(places: &[Place], symbols: &Symbols) -> Vec<String> {
    let all = || places.iter().flat_map(|(_, callers)| callers.iter().take(1));
    let lineless = all().filter(|(module, offset)| {
        symbols.at(module, *offset).iter().all(|frame| frame.line.is_none())
    });
    let modules: BTreeSet<_> = lineless.map(|(module, _)| module).collect();
    let note = |module: &Module| {
        let file = base(&module.path);
        match symbols.unread.get(module) {
            Some(Unread::Absent) => format!("Lines of {file} are unknown: the file is not here"),
            Some(Unread::Changed) => {
                format!("Lines of {file} are unknown: the file has changed since the recording")
            }
            None if file.contains(".cpython-") || file.contains(".abi3.") => format!(
                "{file} is a module of Python: places are those of the module, and the lines of \
                 Python are unknown"
            ),
            None => format!("Lines of {file} are unknown: it has no debug information (-g)"),
        }
    };
    // Without a build id, a program that was compiled again is not recognised.
    let nameless = all().map(|(module, _)| module).filter(|of| of.build_id.is_empty());
    let nameless: BTreeSet<_> = nameless.filter(|of| !modules.contains(of)).collect();
    let unsure = nameless.into_iter().map(|module| {
        let file = base(&module.path);
        format!("{file} has no build id: its lines are wrong if it has changed since the recording")
    });
    modules.into_iter().map(note).chain(unsure).collect()
}

#[cfg(test)]
mod tests {
    use matching::{Key, Source};
    use nic::trace::{Encoder, Header, Posted, Sent, Site, put_module, put_peer, put_site};
    use nic::trace::{Sink, site_record};

    use super::*;
    use crate::experiment::{TimeWindow, by, fill};
    use crate::traces::{Take, files};

    const KEY: Key = Key { bits: 5, ignore: 0, source: Source::new(0) };

    /// Writes the trace of a rank, whose only peer is the other one, at port 11 or 10. Each operation
    /// has a site.
    fn write(directory: &Path, rank: u32, operations: &[(u32, Op)]) {
        let header = Header {
            rank: Some(rank),
            pid: rank + 1,
            context: "tagged".to_owned(),
            address: format!("127.0.0.1:{}", 10 + rank),
            layout: "mpich".to_owned(),
            sites: true,
            ..Header::default()
        };
        let (mut bytes, mut encoder) = (header.to_bytes(), Encoder::default());
        let module = Module { build_id: String::new(), path: "/nowhere/app".to_owned() };
        put_module(&mut bytes, &module).unwrap();
        for offset in [16, 32] {
            let callers = vec![Caller { module: 0, offset: offset + u64::from(rank) }];
            put_site(&mut bytes, &Site { function: "MPI_X".to_owned(), callers }).unwrap();
        }
        let address = Address { ip: 0x7f00_0001, port: 11 - rank as u16 };
        put_peer(&mut bytes, 0, address).unwrap();
        for (site, op) in operations {
            bytes.put([site_record(*site)]).unwrap();
            encoder.op(&mut bytes, op).unwrap();
        }
        std::fs::write(directory.join(format!("{rank}.1.2.tagged.trace")), bytes).unwrap();
    }

    /// Records two messages that rank 1 sent at two sites, and that rank 0 took at one. Returns the
    /// sentences on them.
    fn readings(sends: bool) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let arrive = Op::Arrive(nic::message::Envelope { source: 0, bits: 5, len: 8 });
        let post = Op::Post(Posted { key: KEY, len: 8, multi: None, non_contiguous: false });
        let send = Op::Send(Sent { peer: 0, bits: 5, len: 8 });
        let received = [(0, arrive), (0, arrive), (2, post), (2, post), (1, post)];
        write(directory.path(), 0, &received);
        let sent = [(1, send), (2, send), (2, send)];
        write(directory.path(), 1, if sends { &sent } else { &[] });
        let take = Take { cut_off: true, ..Take::default() };
        let found = files::find(&[directory.path().to_owned()], take).unwrap();
        CallSites::write(&found, directory.path()).unwrap();
        let makeups = fill::of(&found, TimeWindow::ALL, &ProgressBar::hidden()).unwrap();
        by::readings(&makeups)
    }

    #[test]
    fn messages_have_the_places_of_their_senders_or_receivers() {
        let of_receives = readings(false);
        assert_eq!(
            of_receives[..2],
            [
                "The only receive in the PRQ of rank 0 at its longest was posted by app+0x10 (MPI_X)",
                "Both messages in the UMQ of rank 0 at its longest were received by app+0x20 (MPI_X)",
            ]
        );
        let of_sends = readings(true);
        assert!(of_sends[1].contains("was sent by app+0x"), "{of_sends:?}");
        assert!(of_sends[1].ends_with("and the other at another place"), "{of_sends:?}");
        assert_eq!(of_sends.last().unwrap(), "Lines of app are unknown: the file is not here");
    }
}
