// SPDX-License-Identifier: BSD-2-Clause
//! Flag bits of libfabric as `u64`, by the names of `fabric.h` without `FI_`.
//!
//! They are written here, because bindgen gives each macro the smallest integer type that holds its
//! value, and skips macros that libfabric 2.x marks as deprecated. A test compares some values with
//! those of the headers.

/// Defines capabilities, operation flags and completion flags by the numbers of their bits.
macro_rules! bits {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        $($(#[$doc])* #[doc = concat!("`FI_", stringify!($name), "`")]
        pub const $name: u64 = 1 << $bit;)*
    };
}

bits! {
    MSG = 1;
    RMA = 2;
    TAGGED = 3;
    ATOMIC = 4;
    COLLECTIVE = 6;
    READ = 8;
    WRITE = 9;
    RECV = 10;
    SEND = 11;
    REMOTE_READ = 12;
    REMOTE_WRITE = 13;
    MULTI_RECV = 16;
    REMOTE_CQ_DATA = 17;
    MORE = 18;
    PEEK = 19;
    TRIGGER = 20;
    FENCE = 21;
    COMPLETION = 24;
    INJECT = 25;
    INJECT_COMPLETE = 26;
    TRANSMIT_COMPLETE = 27;
    DELIVERY_COMPLETE = 28;
    AFFINITY = 29;
    MATCH_COMPLETE = 31;
    /// Flag of `fi_query_atomic` that asks about `fi_fetch_atomic`.
    FETCH_ATOMIC = 58;
    /// Flag of `fi_query_atomic` that asks about `fi_compare_atomic`.
    COMPARE_ATOMIC = 59;
    RMA_EVENT = 56;
    AV_USER_ID = 41;
    /// libfabric 2.x.
    TAGGED_DIRECTED_RECV = 45;
    /// libfabric 2.x.
    TAGGED_MULTI_RECV = 46;
    HMEM = 47;
    /// libfabric 2.x.
    EXACT_DIRECTED_RECV = 48;
    LOCAL_COMM = 51;
    REMOTE_COMM = 52;
    SHARED_AV = 53;
    PROV_ATTR_ONLY = 54;
    NUMERICHOST = 55;
    SOURCE = 57;
    NAMED_RX_CTX = 58;
    DIRECTED_RECV = 59;
    CLAIM = 59;
    DISCARD = 58;
    /// In `fi_ep_bind`.
    SELECTIVE_COMPLETION = 59;
    /// In `fi_av_insert`.
    SYNC_ERR = 58;
    /// In `fi_av_open`.
    SYMMETRIC = 59;
    /// Mode bit.
    CONTEXT = 59;
    /// Mode bit.
    CONTEXT2 = 52;
    /// Set when libfabric itself calls `fi_getinfo`, to find a provider below a utility provider.
    OFI_CORE_PROV_ONLY = 59;
    /// Message order: send after send.
    ORDER_SAS = 8;
    /// Message order: atomic read after atomic read. Similar bits follow.
    ORDER_ATOMIC_RAR = 36;
    ORDER_ATOMIC_RAW = 37;
    ORDER_ATOMIC_WAR = 38;
    ORDER_ATOMIC_WAW = 39;
    ORDER_RMA_RAR = 32;
    ORDER_RMA_RAW = 33;
    ORDER_RMA_WAR = 34;
    ORDER_RMA_WAW = 35;
}

/// `FI_EVENT`, the same bit as `FI_COMPLETION`.
pub const EVENT: u64 = COMPLETION;
/// `FI_TRANSMIT`, the same bit as `FI_SEND`.
pub const TRANSMIT: u64 = SEND;
/// All orders of reads, writes and sends: `FI_ORDER_RAR` to `FI_ORDER_SAS`.
pub const ORDER_STRICT: u64 = 0x1ff;
/// `FI_ADDR_UNSPEC` and `FI_ADDR_NOTAVAIL`.
pub const ADDR_UNSPEC: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use crate::sys;

    #[test]
    fn bits_are_those_of_the_headers() {
        for (ours, theirs) in [
            (super::MSG, u64::from(sys::FI_MSG)),
            (super::TAGGED, u64::from(sys::FI_TAGGED)),
            (super::MULTI_RECV, u64::from(sys::FI_MULTI_RECV)),
            (super::REMOTE_CQ_DATA, u64::from(sys::FI_REMOTE_CQ_DATA)),
            (super::PEEK, u64::from(sys::FI_PEEK)),
            (super::COMPLETION, u64::from(sys::FI_COMPLETION)),
            (super::INJECT, u64::from(sys::FI_INJECT)),
            (super::DELIVERY_COMPLETE, u64::from(sys::FI_DELIVERY_COMPLETE)),
            (super::MATCH_COMPLETE, u64::from(sys::FI_MATCH_COMPLETE)),
            (super::LOCAL_COMM, sys::FI_LOCAL_COMM),
            (super::AV_USER_ID, sys::FI_AV_USER_ID),
            (super::SHARED_AV, sys::FI_SHARED_AV),
            (super::SOURCE, sys::FI_SOURCE),
            (super::NAMED_RX_CTX, sys::FI_NAMED_RX_CTX),
            (super::DIRECTED_RECV, sys::FI_DIRECTED_RECV),
            (super::CLAIM, sys::FI_CLAIM),
            (super::DISCARD, sys::FI_DISCARD),
            (super::SELECTIVE_COMPLETION, sys::FI_SELECTIVE_COMPLETION),
            (super::SYNC_ERR, sys::FI_SYNC_ERR),
            (super::ORDER_SAS, u64::from(sys::FI_ORDER_SAS)),
            (super::ORDER_STRICT, u64::from(sys::FI_ORDER_STRICT)),
            (super::ORDER_RMA_RAR, sys::FI_ORDER_RMA_RAR),
            (super::ORDER_ATOMIC_WAW, sys::FI_ORDER_ATOMIC_WAW),
            (super::FETCH_ATOMIC, sys::FI_FETCH_ATOMIC),
            (super::COMPARE_ATOMIC, sys::FI_COMPARE_ATOMIC),
            (super::RMA_EVENT, sys::FI_RMA_EVENT),
        ] {
            assert_eq!(ours, theirs);
        }
    }
}
