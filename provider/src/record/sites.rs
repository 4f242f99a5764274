// SPDX-License-Identifier: BSD-2-Clause
//! Records the places in the program from which it called MPI (`FI_TCAM_TRACE_SITES`).

use std::collections::HashMap;
use std::path::Path;

use ffi::sites::Sites;
use host::{
    modules::{Mappings, build_id},
    trace_file::TraceFile,
};
use nic::trace::{
    Caller, MOST_SITES, Module, Sink as _, Site, Stop, put_module, put_site, site_record,
};

/// The result of writing records.
pub(super) type Recorded<T = ()> = Result<T, Stop>;

/// Number of places whose numbers are found without the map; a power of two.
const RECENT: usize = 256;

/// The places of the calls that a trace records. A type parameter of the recorder, so that a
/// recording without places does nothing for them.
pub(super) trait CallSites: Send {
    /// Compares the place from which the calling thread called MPI with the recorded one.
    fn look(&self) -> Look;

    /// Notes that the record of this place was written.
    fn note(&mut self, word: u64);

    /// Records the place from which the calling thread called MPI.
    fn put(&mut self, file: &mut TraceFile) -> Recorded;
}

/// The place from which a thread called MPI.
#[derive(Clone, Copy, Debug)]
pub(super) enum Look {
    /// The recorded one.
    Same,
    /// Another one that was recorded lately: its word, and the record that names it.
    Recent(u64, u32),
    /// Another one.
    Other,
}

/// No places are recorded.
#[derive(Debug)]
pub(super) struct NoSites;

impl CallSites for NoSites {
    #[inline(always)]
    fn look(&self) -> Look {
        Look::Same
    }

    fn note(&mut self, _: u64) {}

    fn put(&mut self, _: &mut TraceFile) -> Recorded {
        Ok(())
    }
}

/// The places that a trace has named.
#[derive(Debug)]
pub(super) struct RecordedSites {
    source: Sites,
    /// The recorded place, as [`Sites::word`].
    last: u64,
    /// Numbers of places by word. Word 0, of a thread that has not called MPI, has number 0.
    numbers: HashMap<u64, u32>,
    /// Places that were recorded lately, with their numbers.
    recent: Box<[(u64, u32); RECENT]>,
    /// Numbers of modules by path.
    modules: HashMap<String, u32>,
    mappings: Mappings,
}

impl CallSites for RecordedSites {
    #[inline(always)]
    fn look(&self) -> Look {
        let word = self.source.word();
        if word == self.last {
            return Look::Same;
        }
        match self.recent[place_of(word)] {
            (recent, number) if recent == word => Look::Recent(word, site_record(number)),
            _ => Look::Other,
        }
    }

    #[inline(always)]
    fn note(&mut self, word: u64) {
        self.last = word;
    }

    fn put(&mut self, file: &mut TraceFile) -> Recorded {
        let word = self.source.word();
        let place = place_of(word);
        if self.recent[place].0 != word {
            self.recent[place] = (word, self.number(word, file)?);
        }
        self.last = word;
        file.put([site_record(self.recent[place].1)])
    }
}

/// Returns the place of a word in the list of recent ones.
#[inline(always)]
fn place_of(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % RECENT
}

impl RecordedSites {
    pub(super) fn new(source: Sites) -> Self {
        Self {
            source,
            last: 0,
            numbers: HashMap::from([(0, 0)]),
            recent: Box::new([(0, 0); RECENT]),
            modules: HashMap::new(),
            mappings: Mappings::default(),
        }
    }

    /// Returns the number of a place. Names a new place in the file.
    fn number(&mut self, word: u64, file: &mut TraceFile) -> Recorded<u32> {
        if let Some(&number) = self.numbers.get(&word) {
            return Ok(number);
        }
        let number = self.numbers.len() as u32;
        if number > MOST_SITES {
            return Ok(0);
        }
        let (function, addresses) = self.source.place(word);
        let mut callers = Vec::with_capacity(addresses.len());
        for address in addresses {
            callers.push(self.caller(address, file)?);
        }
        put_site(file, &Site { function, callers })?;
        self.numbers.insert(word, number);
        Ok(number)
    }

    /// Returns the module of an address and the offset in it. Names a new module in the file.
    fn caller(&mut self, address: u64, file: &mut TraceFile) -> Recorded<Caller> {
        if self.mappings.at(address).is_none() {
            // A module was loaded. If /proc is not mounted, modules have no names.
            self.mappings = Mappings::read().unwrap_or_default();
        }
        let (path, offset) = self.mappings.at(address).unwrap_or(("", address));
        if let Some(&module) = self.modules.get(path) {
            return Ok(Caller { module, offset });
        }
        let module = self.modules.len() as u32;
        self.modules.insert(path.to_owned(), module);
        let build_id = build_id(Path::new(path));
        put_module(file, &Module { build_id, path: path.to_owned() })?;
        Ok(Caller { module, offset })
    }
}
