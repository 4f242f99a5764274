// SPDX-License-Identifier: BSD-2-Clause
//! `fi_atomic(3)` on memory of the application: the supported operations, and their execution.
//!
//! ```text
//! for each element of the target:
//!     again: old = load element
//!            new = op(old, operand, compare)        value::next
//!            compare-and-swap old by new, else again
//!     result = old
//! ```
//! Aligned elements of up to 8 bytes are changed with a compare-and-swap of the processor, so that
//! the application may use its own atomics on the same memory. Operations on elements that are
//! longer, misaligned or divided between two segments are atomic only with respect to each other.

mod kinds;
mod long_double;
mod value;

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::memory::Buffer;
pub use kinds::{Datatype, Form, Op, supports};
use kinds::{Element, LONGEST};

/// Executes `op` on every whole element of `target`. `operand` and `compare` contain as many
/// elements, or are empty if the operation does not use them. `result` receives the old elements
/// that fit.
pub fn execute(
    target: &Buffer,
    datatype: Datatype,
    op: Op,
    operand: &[u8],
    compare: &[u8],
    result: &mut [u8],
) {
    let size = datatype.size();
    for start in (0..target.len() / size * size).step_by(size) {
        let next = |old: &Element| {
            value::next(
                datatype,
                op,
                old,
                &element(operand, start, size),
                &element(compare, start, size),
            )
        };
        let old = change(&target.part(start, size), next);
        if let Some(room) = result.get_mut(start..start + size) {
            room.copy_from_slice(&old[..size]);
        }
    }
}

fn element(bytes: &[u8], start: usize, size: usize) -> Element {
    let mut element = [0; LONGEST];
    if let Some(bytes) = bytes.get(start..start + size) {
        element[..size].copy_from_slice(bytes);
    }
    element
}

/// Replaces an element and returns the old one.
fn change(place: &Buffer, next: impl Fn(&Element) -> Element) -> Element {
    /// Held while an element is changed without a compare-and-swap of the processor.
    static LONG: Mutex<()> = Mutex::new(());

    let addr = place.addr();
    let size = place.len();
    macro_rules! swap {
        ($atomic:ty, $bits:ty) => {{
            // SAFETY: the application vouches for the memory (see `memory`) and changes it only
            // with atomics meanwhile. The address is aligned.
            let atomic = unsafe { <$atomic>::from_ptr(addr as *mut $bits) };
            let mut old = atomic.load(Ordering::Acquire);
            loop {
                let mut element = [0; LONGEST];
                element[..size].copy_from_slice(&old.to_ne_bytes());
                let new = next(&element);
                let new = <$bits>::from_ne_bytes(std::array::from_fn(|at| new[at]));
                match atomic.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => break element,
                    Err(now) => old = now,
                }
            }
        }};
    }
    match size {
        _ if place.segments().len() != 1 || !addr.is_multiple_of(size.max(1)) => {}
        1 => return swap!(AtomicU8, u8),
        2 => return swap!(AtomicU16, u16),
        4 => return swap!(AtomicU32, u32),
        8 => return swap!(AtomicU64, u64),
        _ => {}
    }
    let _alone = LONG.lock();
    let mut old = [0; LONGEST];
    place.read_to(&mut old[..size]);
    let _ = place.fill(&next(&old)[..size]);
    old
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    fn run<T: Copy>(
        datatype: Datatype,
        op: Op,
        target: &mut [T],
        operand: &[T],
        compare: &[T],
    ) -> Vec<T> {
        fn bytes<T>(values: &[T]) -> &[u8] {
            // SAFETY: numbers without padding.
            unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
        }
        let mut result = target.to_vec();
        // SAFETY: as above; every bit pattern is a number.
        let room = unsafe {
            std::slice::from_raw_parts_mut(result.as_mut_ptr().cast(), size_of_val(target))
        };
        // SAFETY: the slice outlives the call.
        let buffer =
            unsafe { Buffer::contiguous(target.as_mut_ptr().cast(), size_of_val(target)).unwrap() };
        execute(&buffer, datatype, op, bytes(operand), bytes(compare), room);
        result
    }

    #[test]
    fn numbers_are_those_of_the_headers_and_nothing_else() {
        assert_eq!(Datatype::ALL.len(), 16);
        assert_eq!(Op::ALL.len(), 19);
        assert_eq!(Datatype::from_raw(sys::FI_UINT128), Some(Datatype::Uint128));
        assert_eq!(Op::from_raw(u32::MAX), None);
    }

    #[test]
    fn integers() {
        let mut target = [i32::MAX, -5, 7];
        let old = run(Datatype::Int32, Op::Sum, &mut target, &[1, 2, 3], &[]);
        assert_eq!((target, old), ([i32::MIN, -3, 10], vec![i32::MAX, -5, 7]));
        run(Datatype::Int32, Op::Min, &mut target, &[0, 0, 0], &[]);
        assert_eq!(target, [i32::MIN, -3, 0]);
        let mut target = [0b1100_u8];
        run(Datatype::Uint8, Op::Mswap, &mut target, &[0b0011], &[0b0110]);
        assert_eq!(target, [0b1010]);
        let mut target = [u128::MAX];
        run(Datatype::Uint128, Op::Sum, &mut target, &[2], &[]);
        assert_eq!(target, [1]);
        let mut target = [5_u16, 0];
        run(Datatype::Uint16, Op::Lxor, &mut target, &[0, 9], &[]);
        assert_eq!(target, [1, 1]);
    }

    #[test]
    fn comparisons_ask_whether_compare_stands_so_to_the_target() {
        for (op, swapped) in [
            (Op::Cswap, [false, true, false]),
            (Op::CswapNe, [true, false, true]),
            (Op::CswapLe, [true, true, false]),
            (Op::CswapLt, [true, false, false]),
            (Op::CswapGe, [false, true, true]),
            (Op::CswapGt, [false, false, true]),
        ] {
            let mut target = [5_i64; 3];
            run(Datatype::Int64, op, &mut target, &[9; 3], &[4, 5, 6]);
            assert_eq!(target.map(|value| value == 9), swapped, "{op:?}");
            let mut target = [5.0_f64; 3];
            run(Datatype::Double, op, &mut target, &[9.0; 3], &[4.0, 5.0, 6.0]);
            assert_eq!(target.map(|value| value > 8.0), swapped, "{op:?}");
        }
    }

    #[test]
    fn complex_numbers_multiply() {
        let mut target = [1.0_f32, 2.0];
        run(Datatype::FloatComplex, Op::Prod, &mut target, &[3.0, 4.0], &[]);
        assert_eq!(target, [-5.0, 10.0]);
    }

    #[test]
    fn misaligned_elements_change_too() {
        let mut bytes = [0_u8; 9];
        // SAFETY: the array outlives the call.
        let buffer = unsafe { Buffer::contiguous(bytes[1..].as_mut_ptr().cast(), 8).unwrap() };
        execute(&buffer, Datatype::Uint64, Op::Sum, &7_u64.to_ne_bytes(), &[], &mut []);
        assert_eq!(bytes[1..], 7_u64.to_ne_bytes());
    }

    #[test]
    fn additions_of_many_threads_all_count() {
        const EACH: u32 = if cfg!(miri) { 20 } else { 1000 };
        let target = [AtomicU32::new(0), AtomicU32::new(0)];
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    // SAFETY: atomics, which outlive the scope.
                    let buffer = unsafe { Buffer::contiguous(target.as_ptr().cast(), 8).unwrap() };
                    let one = 1_u32.to_ne_bytes();
                    for _ in 0..EACH {
                        execute(
                            &buffer,
                            Datatype::Uint32,
                            Op::Sum,
                            &[one, one].concat(),
                            &[],
                            &mut [],
                        );
                    }
                });
            }
        });
        assert!(target.iter().all(|count| count.load(Ordering::Relaxed) == 3 * EACH));
    }

    #[test]
    fn what_has_no_order_or_no_bits_is_not_supported() {
        assert!(supports(Form::Base, Datatype::Double, Op::Sum));
        assert!(!supports(Form::Base, Datatype::Double, Op::Bor));
        assert!(!supports(Form::Base, Datatype::Double, Op::Read));
        assert!(supports(Form::Fetch, Datatype::LongDouble, Op::Read));
        assert!(!supports(Form::Fetch, Datatype::FloatComplex, Op::Min));
        assert!(supports(Form::Compare, Datatype::Int8, Op::Mswap));
        assert!(!supports(Form::Compare, Datatype::Int8, Op::Sum));
    }
}
