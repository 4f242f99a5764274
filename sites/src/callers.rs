// SPDX-License-Identifier: BSD-2-Clause
//! Lists of callers, for programs whose calls of MPI are wrapped (`tcam run --sites N`).
//!
//! The unwinder of the system walks the stack, because it knows modules that are loaded later, and
//! needs no frame pointers. A walk takes a microsecond.
#![allow(unsafe_code, reason = "the unwinder is called")]

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::names::{function_of, is_of_profiling};
use crate::next::{HAS_TOOLS, MODE, is_of_mpi, is_of_tool};
use crate::word::{set_word, word};

/// Largest number of callers.
const MOST: u32 = 16;
/// Set in a word that has the number of a list instead of an address.
const IS_LIST: u64 = 1 << 47;
/// The address, or the number of a list, in a word.
const PLACE: u64 = IS_LIST - 1;

/// The lists of callers, each with its number.
#[derive(Default)]
struct Lists {
    numbers: HashMap<Vec<u64>, u64>,
    lists: Vec<Vec<u64>>,
}

static LISTS: LazyLock<Mutex<Lists>> = LazyLock::new(Mutex::default);

/// Notes that the thread calls the name `slot` and returns to `caller`. Keeps the word if a library of
/// MPI calls, or a tool goes on with the function that the program called.
pub(crate) extern "C" fn changed(slot: u32, caller: usize) {
    let mode = MODE.load(Ordering::Relaxed);
    let mut most = mode & (HAS_TOOLS - 1);
    if most == 0 {
        let given = std::env::var("FI_TCAM_TRACE_SITES").ok();
        most = given.and_then(|text| text.parse().ok()).unwrap_or(1).clamp(1, MOST);
        MODE.fetch_or(most, Ordering::Relaxed);
    }
    let now = word();
    let (outer, slot_of_call) = ((now >> 48) as usize, slot as usize);
    let goes_on = function_of(outer) == function_of(slot_of_call)
        && is_of_profiling(slot_of_call)
        && !is_of_profiling(outer);
    if is_of_mpi(caller) || now != 0 && goes_on && is_of_tool(caller) {
        return;
    }
    let place = match most {
        1 => caller as u64,
        _ => IS_LIST | number_of(walk(caller, most as usize)),
    };
    set_word(u64::from(slot) << 48 | place);
}

/// Returns the number of a list of callers.
fn number_of(list: Vec<u64>) -> u64 {
    let Lists { numbers, lists } = &mut *LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    *numbers.entry(list).or_insert_with_key(|list| {
        lists.push(list.clone());
        lists.len() as u64 - 1
    })
}

/// Returns the addresses to which a call of MPI returns, the innermost first.
pub(crate) fn of(word: u64) -> Vec<u64> {
    if word & IS_LIST == 0 {
        return vec![word & PLACE];
    }
    let lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    lists.lists.get((word & PLACE) as usize).cloned().unwrap_or_default()
}

/// A walk from `caller` outwards.
struct Walk {
    caller: u64,
    most: usize,
    found: Vec<u64>,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        to: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

fn walk(caller: usize, most: usize) -> Vec<u64> {
    const GO_ON: c_int = 0;
    const END: c_int = 4;
    unsafe extern "C" fn each(context: *mut c_void, to: *mut c_void) -> c_int {
        // SAFETY: the unwinder passes its context and the pointer to the walk below.
        let (address, walk) = unsafe { (_Unwind_GetIP(context) as u64, &mut *to.cast::<Walk>()) };
        if address == 0 {
            return END;
        }
        // The first frames are those of this library.
        if !walk.found.is_empty() || address == walk.caller {
            walk.found.push(address);
        }
        if walk.found.len() == walk.most { END } else { GO_ON }
    }
    let mut walk = Walk { caller: caller as u64, most, found: Vec::with_capacity(most) };
    // SAFETY: the function has the type that the unwinder calls, and the walk lives longer.
    unsafe {
        _Unwind_Backtrace(each, (&raw mut walk).cast());
    }
    match walk.found.is_empty() {
        true => vec![caller as u64],
        false => walk.found,
    }
}
