// SPDX-License-Identifier: BSD-2-Clause
//! The arithmetic of atomic operations. Integers wrap, and a complex number is a pair of
//! floating-point numbers.

use super::{
    kinds::{Datatype, Element, LONGEST, Op},
    long_double::LongDouble,
};

/// A number of one of the datatypes.
trait Value: Copy + PartialEq {
    const ONE: Self;
    const ZERO: Self;

    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;

    /// Returns true if `self` is less than `other`; false for numbers without an order.
    fn is_less(self, other: Self) -> bool;

    /// Returns the result of a bitwise operation. Only integers have such operations; other numbers
    /// stay unchanged.
    fn bits(self, _op: Op, _operand: Self, _compare: Self) -> Self {
        self
    }

    fn from_bool(value: bool) -> Self {
        if value { Self::ONE } else { Self::ZERO }
    }

    fn is_true(self) -> bool {
        self != Self::ZERO
    }
}

/// Computes the new value of an element.
pub(super) fn next(
    datatype: Datatype,
    op: Op,
    old: &Element,
    operand: &Element,
    compare: &Element,
) -> Element {
    use Datatype::{
        Double, DoubleComplex, Float, FloatComplex, Int8, Int16, Int32, Int64, Int128,
        LongDouble as Long, LongDoubleComplex, Uint8, Uint16, Uint32, Uint64, Uint128,
    };
    let apply = match datatype {
        Int8 => apply::<i8>,
        Uint8 => apply::<u8>,
        Int16 => apply::<i16>,
        Uint16 => apply::<u16>,
        Int32 => apply::<i32>,
        Uint32 => apply::<u32>,
        Int64 => apply::<i64>,
        Uint64 => apply::<u64>,
        Int128 => apply::<i128>,
        Uint128 => apply::<u128>,
        Float => apply::<f32>,
        Double => apply::<f64>,
        Long => apply::<LongDouble>,
        FloatComplex => apply::<Complex<f32>>,
        DoubleComplex => apply::<Complex<f64>>,
        LongDoubleComplex => apply::<Complex<LongDouble>>,
    };
    apply(op, old, operand, compare)
}

fn apply<T: Value>(op: Op, old: &Element, operand: &Element, compare: &Element) -> Element {
    let (was, with, to) = (T::read(old), T::read(operand), T::read(compare));
    let swap = |yes: bool| if yes { with } else { was };
    let new = match op {
        Op::Min => swap(with.is_less(was)),
        Op::Max => swap(was.is_less(with)),
        Op::Sum => was.add(with),
        Op::Prod => was.mul(with),
        Op::Lor => T::from_bool(was.is_true() | with.is_true()),
        Op::Land => T::from_bool(was.is_true() & with.is_true()),
        Op::Lxor => T::from_bool(was.is_true() ^ with.is_true()),
        Op::Bor | Op::Band | Op::Bxor | Op::Mswap => was.bits(op, with, to),
        // Read and Write do not convert the number: it keeps its padding and its NaN payload.
        Op::Read => return *old,
        Op::Write => return *operand,
        Op::Cswap => swap(to == was),
        Op::CswapNe => swap(to != was),
        Op::CswapLe => swap(to.is_less(was) || to == was),
        Op::CswapLt => swap(to.is_less(was)),
        Op::CswapGe => swap(was.is_less(to) || to == was),
        Op::CswapGt => swap(was.is_less(to)),
    };
    let mut element = [0; LONGEST];
    new.write(&mut element);
    element
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Value for $integer {
            const ONE: Self = 1;
            const ZERO: Self = 0;

            fn read(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(std::array::from_fn(|at| bytes[at]))
            }

            fn write(self, bytes: &mut [u8]) {
                bytes[..size_of::<Self>()].copy_from_slice(&self.to_ne_bytes());
            }

            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn is_less(self, other: Self) -> bool {
                self < other
            }

            fn bits(self, op: Op, operand: Self, compare: Self) -> Self {
                match op {
                    Op::Bor => self | operand,
                    Op::Band => self & operand,
                    Op::Bxor => self ^ operand,
                    _ => operand & compare | self & !compare,
                }
            }
        }
    )*};
}

integers!(i8, u8, i16, u16, i32, u32, i64, u64, i128, u128);

macro_rules! floats {
    ($($float:ty),*) => {$(
        impl Value for $float {
            const ONE: Self = 1.0;
            const ZERO: Self = 0.0;

            fn read(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(std::array::from_fn(|at| bytes[at]))
            }

            fn write(self, bytes: &mut [u8]) {
                bytes[..size_of::<Self>()].copy_from_slice(&self.to_ne_bytes());
            }

            fn add(self, other: Self) -> Self {
                self + other
            }

            fn mul(self, other: Self) -> Self {
                self * other
            }

            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }

        impl Real for $float {
            fn sub(self, other: Self) -> Self {
                self - other
            }
        }
    )*};
}

floats!(f32, f64);

impl Value for LongDouble {
    const ONE: Self = Self::ONE;
    const ZERO: Self = Self::ZERO;

    fn read(bytes: &[u8]) -> Self {
        Self::from_bytes(std::array::from_fn(|at| bytes[at]))
    }

    fn write(self, bytes: &mut [u8]) {
        bytes[..size_of::<Self>()].copy_from_slice(&self.to_bytes());
    }

    fn add(self, other: Self) -> Self {
        self.plus(other)
    }

    fn mul(self, other: Self) -> Self {
        self.times(other)
    }

    fn is_less(self, other: Self) -> bool {
        self.is_less_than(other)
    }
}

impl Real for LongDouble {
    fn sub(self, other: Self) -> Self {
        self.minus(other)
    }
}

/// A part of a complex number.
trait Real: Value {
    fn sub(self, other: Self) -> Self;
}

/// `float _Complex` and its longer forms.
#[derive(Clone, Copy, PartialEq)]
struct Complex<T> {
    re: T,
    im: T,
}

impl<T: Real> Value for Complex<T> {
    const ONE: Self = Self { re: T::ONE, im: T::ZERO };
    const ZERO: Self = Self { re: T::ZERO, im: T::ZERO };

    fn read(bytes: &[u8]) -> Self {
        Self { re: T::read(bytes), im: T::read(&bytes[size_of::<T>()..]) }
    }

    fn write(self, bytes: &mut [u8]) {
        self.re.write(bytes);
        self.im.write(&mut bytes[size_of::<T>()..]);
    }

    fn add(self, other: Self) -> Self {
        Self { re: self.re.add(other.re), im: self.im.add(other.im) }
    }

    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re.mul(other.re).sub(self.im.mul(other.im)),
            im: self.re.mul(other.im).add(self.im.mul(other.re)),
        }
    }

    fn is_less(self, _other: Self) -> bool {
        false
    }
}
