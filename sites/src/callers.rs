// SPDX-License-Identifier: BSD-2-Clause
//! Lists of callers, for programs whose calls of MPI are wrapped (`tcam run --sites N`).
//!
//! The unwinder of the system walks the stack, because it knows modules that are loaded later, and
//! needs no frame pointers. A walk takes a microsecond. So each thread keeps its last walks, with the
//! places on the stack that held the return addresses. If a call has the same return address and
//! stack pointer as a walk, and the places still hold the same addresses, the callers are the same.
#![allow(unsafe_code, reason = "the unwinder is called")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::next::is_of_mpi;
use crate::word::word;

/// Number of callers of a place; 0 before the first call. The trampolines read it.
pub(crate) static MODE: AtomicU32 = AtomicU32::new(0);
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

/// A return address, and the place on the stack that held it.
#[derive(Clone, Copy)]
struct Return {
    address: u64,
    place: usize,
}

/// A walk that a thread keeps.
#[derive(Default)]
struct Kept {
    /// The first return is that of the call of MPI.
    returns: Vec<Return>,
    /// Number of the list.
    number: u64,
}

/// Number of walks that a thread keeps; a power of two.
const WALKS: usize = 64;

thread_local! {
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// Returns the word of a thread that calls the name `slot` and returns to `caller`, an address that
/// is at `place` on the stack, if it is there. Keeps the word if a library of MPI calls.
pub(crate) extern "C" fn changed(slot: u32, caller: usize, place: usize) -> u64 {
    let mut most = MODE.load(Ordering::Relaxed);
    if most == 0 {
        let given = std::env::var("FI_TCAM_TRACE_SITES").ok();
        most = given.and_then(|text| text.parse().ok()).unwrap_or(1).clamp(1, MOST);
        MODE.store(most, Ordering::Relaxed);
    }
    if is_of_mpi(caller) {
        return word();
    }
    let name = u64::from(slot) << 48;
    if most == 1 {
        return name | caller as u64;
    }
    let number = KEPT.try_with(|kept| match kept.try_borrow_mut() {
        Ok(mut kept) => kept_number(&mut kept, caller, place, most as usize),
        Err(_) => number_of(&walk(caller, most as usize)),
    });
    // A thread that ends has no walks any more.
    name | IS_LIST | number.unwrap_or_else(|_| number_of(&walk(caller, most as usize)))
}

/// Returns the number of the list of callers, from a walk that the thread keeps or a new one.
fn kept_number(all: &mut Vec<Kept>, caller: usize, place: usize, most: usize) -> u64 {
    all.resize_with(WALKS, Kept::default);
    let kept = &mut all[(caller ^ caller >> 7 ^ place >> 4) % WALKS];
    let is_call = |first: &Return| first.address == caller as u64 && first.place == place;
    if HAS_PLACES && kept.returns.first().is_some_and(is_call) {
        // SAFETY: the first place is on the stack of this call. If a place holds the address of the
        // walk, the function that it returns to has a frame there, and the next place is in that
        // frame. The places are read in this order.
        let is_same = |of: &Return| unsafe { *(of.place as *const u64) } == of.address;
        if kept.returns.iter().all(is_same) {
            return kept.number;
        }
    }
    let returns = walk(caller, most);
    *kept = Kept { number: number_of(&returns), returns };
    kept.number
}

/// Whether a call puts its return address on the stack, right above the stack pointer.
const HAS_PLACES: bool = cfg!(target_arch = "x86_64");

/// Returns the number of a list of callers.
fn number_of(returns: &[Return]) -> u64 {
    let list: Vec<u64> = returns.iter().map(|of| of.address).collect();
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
    found: Vec<Return>,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        to: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

fn walk(caller: usize, most: usize) -> Vec<Return> {
    const GO_ON: c_int = 0;
    const END: c_int = 4;
    unsafe extern "C" fn each(context: *mut c_void, to: *mut c_void) -> c_int {
        // SAFETY: the unwinder passes its context and the pointer to the walk below.
        let (address, stack, walk) = unsafe {
            (_Unwind_GetIP(context) as u64, _Unwind_GetCFA(context), &mut *to.cast::<Walk>())
        };
        if address == 0 {
            return END;
        }
        // The first frames are those of this library.
        if !walk.found.is_empty() || address == walk.caller {
            walk.found.push(Return { address, place: stack.wrapping_sub(size_of::<u64>()) });
        }
        if walk.found.len() == walk.most { END } else { GO_ON }
    }
    let mut walk = Walk { caller: caller as u64, most, found: Vec::with_capacity(most) };
    // SAFETY: the function has the type that the unwinder calls, and the walk lives longer.
    unsafe {
        _Unwind_Backtrace(each, (&raw mut walk).cast());
    }
    match walk.found.is_empty() {
        true => vec![Return { address: caller as u64, place: 0 }],
        false => walk.found,
    }
}
