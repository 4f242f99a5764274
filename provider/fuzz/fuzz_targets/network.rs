// SPDX-License-Identifier: BSD-2-Clause
//! Any bytes may be what a peer sends over the network. Nothing crashes, nothing outside is touched,
//! and messages of a peer in good health still arrive.
//!
//! With cargo-fuzz: `cd provider && cargo +nightly fuzz run network`.
//! Without: `SANITIZER=address tests/nightly/fuzz.sh provider network SECONDS`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tcam_fi::fuzzing::survive_far(data));
