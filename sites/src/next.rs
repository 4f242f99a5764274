// SPDX-License-Identifier: BSD-2-Clause
//! Finds the next definition of a name, at its first call, and the libraries of MPI.
#![allow(unsafe_code, reason = "the dynamic linker is called")]

use std::ffi::{CStr, c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::names::NAMES;

/// The next definition of each name; 0 before the first call.
pub(crate) static NEXT: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// Number of callers of a place in its low bits; 0 before the first call. [`HAS_TOOLS`] is set if a
/// tool lies between the program and MPI. The trampolines read it: with 1, they note a place
/// themselves.
pub(crate) static MODE: AtomicU32 = AtomicU32::new(0);
/// See [`MODE`].
pub(crate) const HAS_TOOLS: u32 = 1 << 8;
/// Address and length of the libraries of MPI. A length of 0 ends the list. The trampolines read it.
pub(crate) static LIBRARIES: [AddressRange; 8] = [const { AddressRange::none() }; 8];

/// Address and length of other libraries that define functions of MPI, such as tools.
static TOOLS: [AddressRange; 8] = [const { AddressRange::none() }; 8];

/// Addresses of a library. The layout is known to the trampolines.
#[repr(C)]
pub(crate) struct AddressRange {
    start: AtomicUsize,
    length: AtomicUsize,
}

impl AddressRange {
    const fn none() -> Self {
        Self { start: AtomicUsize::new(0), length: AtomicUsize::new(0) }
    }

    fn contains(&self, address: usize) -> bool {
        let from_start = address.wrapping_sub(self.start.load(Ordering::Relaxed));
        from_start < self.length.load(Ordering::Acquire)
    }
}

/// Returns whether an address is in a library of MPI.
pub(crate) fn is_of_mpi(address: usize) -> bool {
    LIBRARIES.iter().any(|library| library.contains(address))
}

/// Returns whether an address is in another library that defines functions of MPI.
pub(crate) fn is_of_tool(address: usize) -> bool {
    TOOLS.iter().any(|library| library.contains(address))
}

/// A loaded library or the program.
struct Module {
    /// Path; empty for the program.
    name: Vec<u8>,
    start: usize,
    end: usize,
}

impl Module {
    fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Returns true for a library with a name of those of MPIs: libmpi, libmpich, libmpifort,
    /// libmpi_usempif08 and so on. Bindings for C++ are no libraries of MPI here, because a program
    /// calls them by names that have no trampoline.
    fn is_named_mpi(&self) -> bool {
        let file = self.file();
        let is_cxx = file.windows(3).any(|part| part == b"cxx" || part == b"++.");
        let more: [&[u8]; 6] = [b".", b"ch", b"fort", b"f90", b"_", b"-"];
        let rest = file.strip_prefix(b"libmpi");
        rest.is_some_and(|rest| more.iter().any(|more| rest.starts_with(more))) && !is_cxx
    }

    /// Returns true for the libraries of `tcam run --sites`.
    fn is_ours(&self) -> bool {
        self.file().starts_with(b"libtcam")
    }

    /// Returns the file name.
    fn file(&self) -> &[u8] {
        self.name.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
    }

    /// Returns the definition of a name in this module or the libraries that it needs, or 0.
    fn definition(&self, name: &CStr) -> usize {
        let Ok(path) = std::ffi::CString::new(self.name.clone()) else { return 0 };
        // SAFETY: both are C strings. RTLD_NOLOAD loads nothing, and the reference that the handle
        // has keeps the library loaded, as its caller expects.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() { 0 } else { libc::dlsym(handle, name.as_ptr()).addr() }
        }
    }
}

/// Returns the loaded modules, in the order in which they were loaded.
fn modules() -> Vec<Module> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, to: *mut c_void) -> c_int {
        // SAFETY: dl_iterate_phdr passes the description of a module, and `to` is the vector below.
        let (info, to) = unsafe { (&*info, &mut *to.cast::<Vec<Module>>()) };
        // SAFETY: the name is null or a C string, and the headers are an array of this length.
        let (name, headers) = unsafe {
            let name = match info.dlpi_name.is_null() {
                true => Vec::new(),
                false => CStr::from_ptr(info.dlpi_name).to_bytes().to_vec(),
            };
            (name, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
        };
        let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let at = |address: u64| (info.dlpi_addr).wrapping_add(address) as usize;
        let start = loaded.clone().map(|header| at(header.p_vaddr)).min().unwrap_or(0);
        let end = loaded.map(|header| at(header.p_vaddr + header.p_memsz)).max().unwrap_or(0);
        to.push(Module { name, start, end });
        0
    }
    let mut all: Vec<Module> = Vec::new();
    // SAFETY: the function only reads what it gets, and adds to the vector.
    unsafe {
        libc::dl_iterate_phdr(Some(add), (&raw mut all).cast());
    }
    all
}

/// Adds a module to a list of libraries. If there is no room, a call from it becomes a place.
fn add_library(libraries: &[AddressRange], module: &Module) {
    static ADDING: Mutex<()> = Mutex::new(());
    let _adding = ADDING.lock();
    if libraries.iter().any(|library| library.contains(module.start)) {
        return;
    }
    let free = libraries.iter().find(|library| library.length.load(Ordering::Relaxed) == 0);
    if let Some(library) = free {
        library.start.store(module.start, Ordering::Relaxed);
        library.length.store(module.end - module.start, Ordering::Release);
    }
}

/// Finds and stores the next definition of a name that the code at `caller` calls. Ends the process
/// if no library defines it, as the dynamic linker would have done without this library.
pub(crate) extern "C" fn resolve(slot: u32, caller: usize) {
    let name = NAMES[slot as usize];
    let modules = modules();
    let is_ours = |address: usize| {
        let of = modules.iter().find(|module| module.contains(address));
        address == 0 || of.is_some_and(Module::is_ours)
    };
    // SAFETY: the name is a C string; looking it up calls nothing.
    let mut next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.addr();
    if is_ours(next) {
        // MPI was loaded by a library that keeps it to itself, as modules of Python do. The caller
        // comes first, because it knows its MPI.
        let of_caller = modules.iter().filter(|module| module.contains(caller));
        let definitions = of_caller.chain(&modules).map(|module| module.definition(name));
        next = definitions.into_iter().find(|&found| !is_ours(found)).unwrap_or(0);
    }
    if next == 0 {
        eprintln!(
            "tcam: the program calls {}, which its MPI does not have",
            name.to_string_lossy()
        );
        std::process::abort();
    }
    for module in &modules {
        if module.is_named_mpi() {
            add_library(&LIBRARIES, module);
        } else if module.contains(next) {
            add_library(&TOOLS, module);
            MODE.fetch_or(HAS_TOOLS, Ordering::Relaxed);
        }
    }
    NEXT[slot as usize].store(next, Ordering::Release);
}
