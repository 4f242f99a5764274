// SPDX-License-Identifier: BSD-2-Clause
//! Defines structs of counters. A counter is named once, and every sum, table and file has it.

/// A counter of `T`.
#[derive(Debug)]
pub struct NamedCounter<T> {
    /// Its name in reports, JSON and CSV.
    pub name: &'static str,
    /// Its name for readers.
    pub text: &'static str,
    /// Returns its value.
    pub get: fn(&T) -> u64,
    /// Returns a reference to it.
    pub place: fn(&mut T) -> &mut u64,
}

/// Defines a struct with counters, and further fields after `..`. Of several queues, a counter with
/// `sum` is their sum, and one with `most` is the largest. The list `COUNTERS` and the function
/// `merge_counters` have all counters.
#[macro_export]
macro_rules! counter_struct {
    (
        $(#[$meta:meta])*
        pub struct $type:ident $(<$of_queue:ident = $queue:ty>)? {
            $($(#[$doc:meta])* $how:ident $field:ident $text:literal,)*
            $(.. $($(#[$other_doc:meta])* pub $other:ident: $of:ty,)*)?
        }
    ) => {
        $(#[$meta])*
        pub struct $type $(<$of_queue = $queue>)? {
            $($(#[$doc])* pub $field: u64,)*
            $($($(#[$other_doc])* pub $other: $of,)*)?
        }

        impl $(<$of_queue: 'static>)? $type $(<$of_queue>)? {
            /// The counters, in the order of the fields.
            pub const COUNTERS: &'static [$crate::NamedCounter<Self>] = &[$($crate::NamedCounter {
                name: stringify!($field),
                text: $text,
                get: |of| of.$field,
                place: |of| &mut of.$field,
            }),*];

            /// Adds the counters of another one. A sum cannot overflow, because counts that are
            /// read from a file may have any value.
            pub fn merge_counters(&mut self, other: &Self) {
                $($crate::counter_struct!($how self.$field, other.$field);)*
            }
        }
    };
    (sum $one:expr, $other:expr) => { $one = $one.saturating_add($other) };
    (most $one:expr, $other:expr) => { $one = $one.max($other) };
}
