// SPDX-License-Identifier: BSD-2-Clause
//! The places in a program from which it called MPI, as a trace names them.
//!
//! The entries of the table are texts. Each precedes the first operation that needs it:
//! ```text
//! module 5f0e1a... /opt/app/bin/solver        build id or -, path
//! site MPI_Irecv 0+1a2b 1+33                  function, module and offset of each caller
//! ```
//! Modules are numbered from 0 and sites from 1, in the order of their entries.

use super::code::{MOST_SITES, Sink, put_text};

/// A file that was loaded into the process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Module {
    /// Build id in hexadecimal digits; empty if the file has no id.
    pub build_id: String,
    /// Path.
    pub path: String,
}

/// A place to which a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller {
    /// Number of the module.
    pub module: u32,
    /// Offset in the file of the module, in bytes.
    pub offset: u64,
}

/// A place from which the program called MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The function of MPI, such as `MPI_Irecv`.
    pub function: String,
    /// Where the call returns to, and then where the callers return to.
    pub callers: Vec<Caller>,
}

/// The modules and sites of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// The modules by number.
    pub modules: Vec<Module>,
    /// The sites; the first has number 1.
    pub sites: Vec<Site>,
}

impl Sites {
    /// Adds the entry of a text. Returns `None` if the text is no entry.
    pub(super) fn add(&mut self, text: &str) -> Option<()> {
        match text.split_once(' ')? {
            ("module", rest) => {
                let (build_id, path) = rest.split_once(' ')?;
                let build_id = if build_id == "-" { "" } else { build_id };
                self.modules.push(Module { build_id: build_id.to_owned(), path: path.to_owned() });
            }
            ("site", rest) if self.sites.len() < MOST_SITES as usize => {
                let mut words = rest.split(' ');
                let function = words.next()?.to_owned();
                let caller = |word: &str| {
                    let (module, offset) = word.split_once('+')?;
                    let module = module.parse().ok()?;
                    self.modules.get(module as usize)?;
                    Some(Caller { module, offset: u64::from_str_radix(offset, 16).ok()? })
                };
                let callers = words.map(caller).collect::<Option<Vec<_>>>()?;
                self.sites.push(Site { function, callers });
            }
            _ => return None,
        }
        Some(())
    }
}

/// Writes the entry of a module.
///
/// # Errors
/// There is no room.
pub fn put_module<S: Sink>(
    sink: &mut S,
    Module { build_id, path }: &Module,
) -> Result<(), S::Error> {
    let build_id = if build_id.is_empty() { "-" } else { build_id };
    put_text(sink, &format!("module {build_id} {path}"))
}

/// Writes the entry of a site.
///
/// # Errors
/// There is no room.
pub fn put_site<S: Sink>(sink: &mut S, Site { function, callers }: &Site) -> Result<(), S::Error> {
    let callers = callers.iter().map(|Caller { module, offset }| format!(" {module}+{offset:x}"));
    put_text(sink, &format!("site {function}{}", callers.collect::<String>()))
}
