// SPDX-License-Identifier: BSD-2-Clause
//! `long double` of x86-64: 80 bits in 16 bytes. Rust has no such type, so the code uses x87
//! instructions. Other architectures do not support it (see [`super::supports`]).
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_mut, unused_variables, reason = "other architectures compute nothing")
)]

/// An extended-precision number in its memory layout.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
pub(super) struct LongDouble([u8; 16]);

/// Sign, exponent and explicit leading bit of 1.0.
const ONE: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f, 0, 0, 0, 0, 0, 0];

macro_rules! arithmetic {
    ($($name:ident = $instruction:literal, $doc:literal;)*) => {$(
        #[doc = $doc]
        pub(super) fn $name(self, other: Self) -> Self {
            let mut result = Self::ZERO;
            // SAFETY: reads 10 bytes of each operand and writes 10 of the result; the
            // x87 stack is empty before and after.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                std::arch::asm!(
                    "fld tbyte ptr [{left}]",
                    "fld tbyte ptr [{right}]",
                    $instruction,
                    "fstp tbyte ptr [{result}]",
                    left = in(reg) &raw const self.0,
                    right = in(reg) &raw const other.0,
                    result = in(reg) &raw mut result.0,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }
    )*};
}

impl LongDouble {
    pub(super) const ONE: Self = Self(ONE);
    pub(super) const ZERO: Self = Self([0; 16]);

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(super) fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    arithmetic! {
        plus = "faddp st(1), st", "The sum.";
        minus = "fsubp st(1), st", "The difference.";
        times = "fmulp st(1), st", "The product.";
    }

    /// Returns true if `self` is less than `other`; false if one is NaN.
    pub(super) fn is_less_than(self, other: Self) -> bool {
        self.compare(other).0
    }

    /// Returns whether `self` is less than `other`, and whether they are equal.
    fn compare(self, other: Self) -> (bool, bool) {
        // SAFETY: reads 10 bytes of each operand; the x87 stack is empty before and after.
        // It compares `other` with `self`: "above" means that self is less. NaN sets the flags
        // for below, equal and parity.
        #[cfg(target_arch = "x86_64")]
        let (below, equal) = unsafe {
            let (below, equal, unordered): (u8, u8, u8);
            std::arch::asm!(
                "fld tbyte ptr [{left}]",
                "fld tbyte ptr [{right}]",
                "fucomip st, st(1)",
                "fstp st(0)",
                "seta {below}",
                "sete {equal}",
                "setp {unordered}",
                left = in(reg) &raw const self.0,
                right = in(reg) &raw const other.0,
                below = out(reg_byte) below,
                equal = out(reg_byte) equal,
                unordered = out(reg_byte) unordered,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
            (below, equal & !unordered)
        };
        #[cfg(not(target_arch = "x86_64"))]
        let (below, equal) = (0_u8, 0_u8);
        (below != 0, equal != 0)
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other).1
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "the x87 is not interpreted")]
    fn arithmetic_and_order() {
        let two = LongDouble::ONE.plus(LongDouble::ONE);
        let three = two.plus(LongDouble::ONE);
        assert!(two.times(three) == three.plus(three));
        assert!(three.minus(two) == LongDouble::ONE);
        assert!(two.is_less_than(three) && !three.is_less_than(two) && !two.is_less_than(two));
        let not_a_number = LongDouble([0xff; 16]);
        assert!(not_a_number != not_a_number && !not_a_number.is_less_than(two));
    }
}
