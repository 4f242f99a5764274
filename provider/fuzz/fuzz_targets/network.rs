// SPDX-License-Identifier: BSD-2-Clause
//! A peer sends arbitrary bytes over the network. The endpoint must not crash or access other
//! memory than it offered, and must still receive the messages of a healthy peer.
//!
//! With cargo-fuzz: `cd provider && cargo +nightly fuzz run network`.
//! Without: `SANITIZER=address tests/nightly/fuzz.sh provider network SECONDS`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tcam_fi::testing::survive_far(data));
