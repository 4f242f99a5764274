// SPDX-License-Identifier: BSD-2-Clause
//! Finds the functions and lines of addresses in programs and libraries, and keeps them in a file
//! beside the traces, so that a recording can be read on another machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use addr2line::fallible_iterator::FallibleIterator as _;
use host::modules::build_id;
use host::regular;
use nic::plain::plain;
use nic::trace::Module;
use object::read::ReadCache;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::file;

/// Name of the file, in the directory of the traces.
const FILE: &str = "sites.tcam";
const FORMAT: &str = "tcam-sites";
const VERSION: u32 = 1;
/// Largest size of the file in bytes that is read.
const LONGEST: u64 = 256 << 20;

/// A function that was called, or that the compiler put into another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StackFrame {
    /// Name without parameters.
    pub(crate) function: Option<String>,
    /// Source file; `None` without debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
}

/// The frames at the offsets in a module, the innermost first.
type Frames = BTreeMap<u64, Vec<StackFrame>>;

/// Why the functions and lines of a module are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unread {
    /// The file is not there, or is no program or library.
    Absent,
    /// The file is another one than that of the recording.
    Changed,
}

/// Directories of traces, with the jobs of the traces in each.
pub(crate) type Directories = BTreeMap<PathBuf, BTreeSet<u64>>;

/// Functions and lines by module.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    known: BTreeMap<Module, Frames>,
    /// Sentences on files beside the traces that are not used.
    pub(crate) unused: Vec<String>,
    /// Modules that could not be read.
    pub(crate) unread: BTreeMap<Module, Unread>,
}

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    format: String,
    version: u32,
    /// Jobs of the traces.
    jobs: BTreeSet<u64>,
    modules: Vec<StoredModule>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredModule {
    path: String,
    build_id: String,
    frames: Frames,
}

impl Symbols {
    /// Finds these addresses. Addresses that a file beside the traces has are not looked up again.
    pub(crate) fn of(needed: &BTreeMap<Module, BTreeSet<u64>>, directories: &Directories) -> Self {
        let mut found = Self::default();
        for (directory, jobs) in directories {
            let path = directory.join(FILE);
            match Stored::read(&path, jobs) {
                Ok(stored) => found.add(stored),
                Err(why) => found.unused.push(format!(
                    "{} is not used, because {why}: lines are looked up in the program",
                    plain(&path.display().to_string())
                )),
            }
        }
        for (module, offsets) in needed {
            let known = found.known.entry(module.clone()).or_default();
            if offsets.iter().all(|offset| known.contains_key(offset)) {
                continue;
            }
            match frames_in(module, offsets) {
                Ok(frames) => known.extend(frames),
                Err(unread) => drop(found.unread.insert(module.clone(), unread)),
            }
        }
        found
    }

    /// Returns the frames at an offset; empty if they are unknown.
    pub(crate) fn at(&self, module: &Module, offset: u64) -> &[StackFrame] {
        self.known.get(module).and_then(|frames| frames.get(&offset)).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, stored: Vec<StoredModule>) {
        for StoredModule { path, build_id, frames } in stored {
            let known = self.known.entry(Module { build_id, path }).or_default();
            for (offset, mut frames) in frames {
                for StackFrame { function, file, .. } in &mut frames {
                    let texts = [function, file].into_iter().flatten();
                    texts.for_each(|text| *text = plain(text).into_owned());
                }
                known.insert(offset, frames);
            }
        }
    }

    /// Writes the file into the directory of the traces of these jobs, and replaces an earlier file.
    pub(crate) fn write(self, directory: &Path, jobs: BTreeSet<u64>) -> Result<(), Error> {
        let modules = self
            .known
            .into_iter()
            .map(|(Module { path, build_id }, frames)| StoredModule { path, build_id, frames });
        let (format, modules) = (FORMAT.to_owned(), modules.collect());
        let stored = Stored { format, version: VERSION, jobs, modules };
        file::write(
            &directory.join(FILE),
            serde_json::to_string(&stored).map_err(Error::Json)? + "\n",
        )
    }

    /// Removes the file of an earlier recording.
    pub(crate) fn remove(directory: &Path) -> Result<(), Error> {
        file::remove(&directory.join(FILE))
    }
}

impl Stored {
    /// Reads a file beside traces of these jobs; empty if there is no file. Fails with the reason why
    /// the file cannot be used.
    fn read(path: &Path, jobs: &BTreeSet<u64>) -> Result<Vec<StoredModule>, String> {
        let text = match regular::read_text(path, LONGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("it cannot be read ({error})")),
        };
        match serde_json::from_str::<Self>(&text) {
            Ok(of) if of.format != FORMAT || of.version != VERSION => {
                Err("another version of tcam wrote it".to_owned())
            }
            Ok(of) if of.jobs != *jobs && of.jobs.is_disjoint(jobs) => {
                Err("it is of another run".to_owned())
            }
            Ok(of) => Ok(of.modules),
            Err(_) => Err("it is damaged".to_owned()),
        }
    }
}

/// Returns the frames at these offsets in a module.
fn frames_in(module: &Module, offsets: &BTreeSet<u64>) -> Result<Frames, Unread> {
    let path = Path::new(&module.path);
    let image = Image::of(path).ok_or(Unread::Absent)?;
    if build_id(path) != module.build_id {
        return Err(Unread::Changed);
    }
    let debug = debug_file(module, &image).and_then(|path| Image::of(&path));
    let images = || debug.iter().chain([&image]);
    let at = |&offset: &u64| {
        // The address of a return is behind the call.
        let address = image.address(offset)?.checked_sub(1)?;
        let symbol = || images().find_map(|image| image.symbol(address)).map(short_name);
        let found = images().map(|image| image.frames_at(address));
        let mut frames = found.into_iter().find(|frames| !frames.is_empty()).unwrap_or_default();
        match frames.last_mut() {
            // Functions with the same code may share the debug information of one of them, and the
            // function of a lambda has no full name there.
            Some(last) if last.function.as_deref().is_none_or(is_lambda) => {
                last.function = symbol().or(last.function.take());
            }
            Some(_) => {}
            None => frames.extend(
                symbol().map(|name| StackFrame { function: Some(name), ..StackFrame::default() }),
            ),
        }
        // A lambda that the compiler put into another function has no symbol.
        let names = frames.iter_mut().filter_map(|frame| frame.function.as_mut());
        names.filter(|name| is_lambda(name)).for_each(|name| *name = "{lambda}".to_owned());
        Some((offset, frames))
    };
    Ok(offsets.iter().filter_map(at).collect())
}

/// Name of the function of a lambda; a template has parameters behind it.
const CALL_OPERATOR: &str = "operator()";

/// Returns true for the name of a lambda's function without that of the function that contains it.
fn is_lambda(name: &str) -> bool {
    name.starts_with(CALL_OPERATOR)
}

/// Returns the file with the debug information that a distribution or the user keeps apart: by the
/// build id, or by the name in the program (`.gnu_debuglink`). Its build id must be that of the
/// program.
fn debug_file(module: &Module, image: &Image) -> Option<PathBuf> {
    const SYSTEM: &str = "/usr/lib/debug";
    let (first, rest) = module.build_id.split_at_checked(2)?;
    let by_id = Path::new(SYSTEM).join(".build-id").join(first).join(format!("{rest}.debug"));
    let beside = || {
        let (directory, name) = (Path::new(&module.path).parent()?, image.debug_link.as_ref()?);
        let in_system = Path::new(SYSTEM).join(directory.strip_prefix("/").ok()?);
        let places = [directory.to_owned(), directory.join(".debug"), in_system];
        Some(places.map(|place| place.join(name)))
    };
    let files = [by_id].into_iter().chain(beside().into_iter().flatten());
    files.into_iter().find(|file| build_id(file) == module.build_id)
}

/// Returns the name of a function without the parameters of C++ and the mangling of Fortran.
fn short_name(name: &str) -> String {
    let demangled = addr2line::demangle_auto(name.into(), None);
    let name = demangled.as_ref();
    // gfortran: __module_MOD_procedure
    if let Some((module, procedure)) = name.strip_prefix("__").and_then(|of| of.split_once("_MOD_"))
    {
        return format!("{module}::{procedure}");
    }
    if let Some(method) = cython_name(name) {
        return method;
    }
    let name = name.split(" [clone").next().unwrap_or(name).trim_end_matches(" const");
    // Not a function that has a lambda as an argument.
    if let Some((function, rest)) = name.rsplit_once("::{lambda(")
        && rest.split_once('}').is_some_and(|(_, rest)| rest.starts_with("::operator()"))
    {
        return format!("{}::{{lambda}}", short_name(without_result(function)));
    }
    if !name.ends_with(')') || name.ends_with(CALL_OPERATOR) {
        return name.to_owned();
    }
    let mut depth = 0;
    let open = name.rfind(|char| {
        depth += i32::from(char == ')') - i32::from(char == '(');
        depth == 0
    });
    without_result(name[..open.unwrap_or(name.len())].trim()).to_owned()
}

/// Returns the name of a function without the type of its result, which the name of a template has.
fn without_result(name: &str) -> &str {
    let mut depth = 0;
    let start = name.rfind(|char| {
        depth += i32::from(")>}".contains(char)) - i32::from("(<{".contains(char));
        depth == 0 && char == ' '
    });
    start.filter(|_| !name.contains("operator")).map_or(name, |at| &name[at + 1..])
}

/// Returns the name of a method in a module that Cython compiled: `mpi4py.MPI.Comm.Irecv` for
/// `__pyx_pw_6mpi4py_3MPI_4Comm_79Irecv`.
fn cython_name(name: &str) -> Option<String> {
    let prefixes = ["__pyx_pw_", "__pyx_pf_", "__pyx_f_"];
    let mut rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let mut parts = Vec::new();
    loop {
        let (digits, text) = rest.split_at(rest.find(|char: char| !char.is_ascii_digit())?);
        let length: usize = digits.parse().ok().filter(|_| text.is_ascii()).unwrap_or(0);
        match text.split_at_checked(length) {
            Some((part, next)) if length > 0 && next.starts_with('_') => {
                parts.push(part);
                rest = &next[1..];
            }
            // The last number counts the methods.
            _ => {
                parts.push(text);
                return Some(parts.join("."));
            }
        }
    }
}

/// A program or library, or its debug information.
struct Image {
    /// Offset in the file, length, and address of each segment.
    segments: Vec<[u64; 3]>,
    /// Address, length and name of each function with a symbol.
    functions: Vec<(u64, u64, String)>,
    /// Name of the file with the debug information.
    debug_link: Option<String>,
    lines: addr2line::Loader,
}

impl Image {
    /// Reads a file. Returns `None` if it is no program or library.
    fn of(path: &Path) -> Option<Self> {
        // A path from a trace may name a pipe, which is not opened.
        let content = ReadCache::new(regular::open(path).ok()?);
        let file = object::File::parse(&content).ok()?;
        let lines = addr2line::Loader::new(path).ok()?;
        let segment = |segment: object::Segment<'_, '_, _>| {
            let (offset, length) = segment.file_range();
            [offset, length, segment.address()]
        };
        let function = |symbol: object::Symbol<'_, '_, _>| {
            let is_function = symbol.kind() == object::SymbolKind::Text && symbol.size() > 0;
            let name = symbol.name().ok().filter(|_| is_function)?;
            Some((symbol.address(), symbol.size(), name.to_owned()))
        };
        let segments = file.segments().map(segment).collect();
        let functions = file.symbols().chain(file.dynamic_symbols()).filter_map(function).collect();
        let debug_link = file.gnu_debuglink().ok().flatten();
        let debug_link = debug_link.and_then(|(name, _)| String::from_utf8(name.to_vec()).ok());
        Some(Self { segments, functions, debug_link, lines })
    }

    /// Returns the address of an offset in the file.
    fn address(&self, offset: u64) -> Option<u64> {
        let of = |&&[from, length, _]: &&[u64; 3]| {
            (from..=from.saturating_add(length)).contains(&offset)
        };
        self.segments.iter().find(of).map(|[from, _, address]| address.wrapping_add(offset - from))
    }

    /// Returns the name of the function that contains an address.
    fn symbol(&self, address: u64) -> Option<&str> {
        let of = |(from, length, _): &&(u64, u64, String)| {
            (*from..from.saturating_add(*length)).contains(&address)
        };
        self.functions.iter().find(of).map(|(.., name)| name.as_str())
    }

    /// Returns the frames at an address; empty without debug information.
    fn frames_at(&self, address: u64) -> Vec<StackFrame> {
        let Ok(frames) = self.lines.find_frames(address) else {
            return Vec::new();
        };
        let frame = |frame: addr2line::Frame<'_, _>| {
            let location = frame.location.as_ref();
            let named = frame.function.as_ref().and_then(|name| name.demangle().ok());
            Ok(StackFrame {
                function: named.map(|name| short_name(&name)),
                file: location.and_then(|of| of.file).map(str::to_owned),
                line: location.and_then(|of| of.line).filter(|line| *line > 0),
            })
        };
        let frames: Vec<StackFrame> = frames.map(frame).collect().unwrap_or_default();
        if frames.iter().any(|frame| frame.file.is_some()) { frames } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_parameters() {
        for (name, short) in [
            ("post_all", "post_all"),
            ("__halo_MOD_exchange", "halo::exchange"),
            ("_ZN4halo4postEPdi", "halo::post"),
            ("_ZNK4halo4Comm5irecvEi", "halo::Comm::irecv"),
            ("_ZN12_GLOBAL__N_14postEi", "(anonymous namespace)::post"),
            ("main", "main"),
            ("operator()", "operator()"),
            ("_ZZ4mainENKUlvE_clEv", "main::{lambda}"),
            ("_ZZN4halo4postEiENKUlRiE_clES0_", "halo::post::{lambda}"),
            ("_ZZN4halo4postEiENKUlRT_E0_clIiEEDaS1_", "halo::post::{lambda}"),
            ("_ZZ4mainENKUlT_E0_clIiEEDaS_", "main::{lambda}"),
            ("_ZZN4halo4postEiENK5LocalclERi", "halo::post(int)::Local::operator()"),
            ("_Z4callIZ4mainEUlvE_EvT_", "call<main::{lambda()#1}>"),
            ("_ZNK4halo4CommcvT_IbEEv", "halo::Comm::operator bool<bool>"),
            ("__pyx_pw_6mpi4py_3MPI_4Comm_79Irecv", "mpi4py.MPI.Comm.Irecv"),
            ("__pyx_f_6mpi4py_3MPI_bootstrap", "mpi4py.MPI.bootstrap"),
            ("__pyx_pw_", "__pyx_pw_"),
        ] {
            assert_eq!(short_name(name), short, "{name}");
        }
    }

    #[test]
    fn a_module_is_found_by_its_build_id() {
        let path = std::env::current_exe().unwrap();
        let module = Module { build_id: build_id(&path), path: path.display().to_string() };
        let other = Module { build_id: "00".to_owned(), ..module.clone() };
        let missing = Module { path: "/nowhere".to_owned(), ..module.clone() };
        let needed = [&module, &other, &missing].map(|of| (of.clone(), BTreeSet::from([64])));
        let symbols = Symbols::of(&needed.into(), &Directories::new());
        let unread = [(missing, Unread::Absent), (other, Unread::Changed)];
        assert_eq!(symbols.unread, unread.into());
        assert!(symbols.at(&module, 65).is_empty());
    }

    #[test]
    fn the_file_beside_the_traces_replaces_the_modules() {
        let directory = tempfile::tempdir().unwrap();
        let module = Module { build_id: String::new(), path: "/gone/app".to_owned() };
        let line = Some(7);
        let frame =
            StackFrame { function: Some("f".to_owned()), file: Some("a.c".to_owned()), line };
        let frames = BTreeMap::from([(9, vec![frame.clone()])]);
        let known = BTreeMap::from([(module.clone(), frames)]);
        let of_jobs = |jobs: &[u64]| {
            let jobs = jobs.iter().copied().collect();
            Directories::from([(directory.path().to_owned(), jobs)])
        };
        let directories = of_jobs(&[3, 4]);
        let jobs = BTreeSet::from([3, 4]);
        let written = Symbols { known, ..Symbols::default() };
        written.write(directory.path(), jobs).unwrap();
        let needed = BTreeMap::from([(module.clone(), BTreeSet::from([9]))]);
        let symbols = Symbols::of(&needed, &directories);
        assert_eq!((symbols.at(&module, 9), symbols.unread.len()), (&[frame][..], 0));
        assert_eq!(Symbols::of(&needed, &of_jobs(&[4])).unused, [""; 0]);
        let unused = |directories: &Directories| {
            let symbols = Symbols::of(&needed, directories);
            assert_eq!(symbols.unread.len(), 1);
            symbols.unused.concat()
        };
        assert!(unused(&of_jobs(&[5])).contains("because it is of another run"));
        let path = directory.path().join(FILE);
        let whole = std::fs::read_to_string(&path).unwrap();
        for (text, why) in [
            ("", "it is damaged"),
            (&whole[..whole.len() / 2], "it is damaged"),
            ("\u{1}[]", "it is damaged"),
            (&whole.replace("\"version\":1", "\"version\":2"), "another version of tcam"),
        ] {
            std::fs::write(&path, text).unwrap();
            let unused = unused(&directories);
            assert!(unused.contains(why) && unused.lines().count() == 1, "{text}: {unused}");
        }
        std::fs::write(&path, [255, 254]).unwrap();
        assert!(unused(&directories).contains("it cannot be read (not text"));
        Symbols::remove(directory.path()).unwrap();
        assert_eq!(unused(&directories), "");
    }
}
