// SPDX-License-Identifier: BSD-2-Clause
//! Datatypes, operations and forms of `fi_atomic(3)`, and their supported combinations.

use crate::sys;

/// Size of the longest element in bytes.
pub(super) const LONGEST: usize = 32;

/// Room for an element of any type. The element is in the first bytes.
pub(super) type Element = [u8; LONGEST];

macro_rules! names {
    ($(#[$doc:meta])* $name:ident: $($(#[$item_doc:meta])* $item:ident = $raw:ident),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", stringify!($raw), "`")] $item,)*
        }

        impl $name {
            /// All values, in the order of the headers.
            pub const ALL: &[Self] = &[$(Self::$item),*];

            /// Converts the number that C and the wire use; `None` for unknown numbers.
            #[must_use]
            pub fn from_raw(raw: u32) -> Option<Self> {
                match raw {
                    $(sys::$raw => Some(Self::$item),)*
                    _ => None,
                }
            }

            /// Returns the number that C uses.
            #[must_use]
            pub fn raw(self) -> u32 {
                match self {
                    $(Self::$item => sys::$raw,)*
                }
            }
        }
    };
}

names! {
    /// Types of elements (`enum fi_datatype`).
    Datatype:
    Int8 = FI_INT8, Uint8 = FI_UINT8, Int16 = FI_INT16, Uint16 = FI_UINT16,
    Int32 = FI_INT32, Uint32 = FI_UINT32, Int64 = FI_INT64, Uint64 = FI_UINT64,
    Float = FI_FLOAT, Double = FI_DOUBLE,
    FloatComplex = FI_FLOAT_COMPLEX, DoubleComplex = FI_DOUBLE_COMPLEX,
    LongDouble = FI_LONG_DOUBLE, LongDoubleComplex = FI_LONG_DOUBLE_COMPLEX,
    Int128 = FI_INT128, Uint128 = FI_UINT128,
}

names! {
    /// Operations on an element (`enum fi_op`).
    Op:
    Min = FI_MIN, Max = FI_MAX, Sum = FI_SUM, Prod = FI_PROD,
    Lor = FI_LOR, Land = FI_LAND, Bor = FI_BOR, Band = FI_BAND, Lxor = FI_LXOR, Bxor = FI_BXOR,
    Read = FI_ATOMIC_READ, Write = FI_ATOMIC_WRITE,
    Cswap = FI_CSWAP, CswapNe = FI_CSWAP_NE, CswapLe = FI_CSWAP_LE, CswapLt = FI_CSWAP_LT,
    CswapGe = FI_CSWAP_GE, CswapGt = FI_CSWAP_GT, Mswap = FI_MSWAP,
}

/// The three kinds of atomic calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `fi_atomic`: changes the target.
    Base,
    /// `fi_fetch_atomic`: also returns the old elements.
    Fetch,
    /// `fi_compare_atomic`: changes the elements for which a comparison holds, and returns the old
    /// elements.
    Compare,
}

impl Datatype {
    /// Returns the size of an element in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double | Self::FloatComplex => 8,
            Self::DoubleComplex | Self::LongDouble | Self::Int128 | Self::Uint128 => 16,
            Self::LongDoubleComplex => 32,
        }
    }

    fn is_complex(self) -> bool {
        matches!(self, Self::FloatComplex | Self::DoubleComplex | Self::LongDoubleComplex)
    }

    fn is_long_double(self) -> bool {
        matches!(self, Self::LongDouble | Self::LongDoubleComplex)
    }

    fn is_integer(self) -> bool {
        !self.is_complex() && !matches!(self, Self::Float | Self::Double | Self::LongDouble)
    }
}

/// Returns true if calls of this form support `op` on elements of this type. Complex numbers have
/// no order, and floating-point numbers no bitwise operations (`fi_atomic(3)`).
#[must_use]
pub fn supports(form: Form, datatype: Datatype, op: Op) -> bool {
    use Op::{
        Band, Bor, Bxor, Cswap, CswapGe, CswapGt, CswapLe, CswapLt, CswapNe, Max, Min, Mswap, Read,
    };
    let swaps = matches!(op, Cswap | CswapNe | CswapLe | CswapLt | CswapGe | CswapGt | Mswap);
    let fits_form = match form {
        Form::Base => !swaps && op != Read,
        Form::Fetch => !swaps,
        Form::Compare => swaps,
    };
    let bits = matches!(op, Bor | Band | Bxor | Mswap);
    let order = matches!(op, Min | Max | CswapLe | CswapLt | CswapGe | CswapGt);
    fits_form
        && (!bits || datatype.is_integer())
        && (!order || !datatype.is_complex())
        && (!datatype.is_long_double() || cfg!(target_arch = "x86_64"))
}
