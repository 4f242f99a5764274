// SPDX-License-Identifier: BSD-2-Clause
//! Any bytes may be what a peer writes: slots of the ring, payloads, its own segment, and
//! the segment of the endpoint itself. Nothing crashes, nothing outside is touched, and
//! messages of a peer in good health still arrive.
//!
//! With cargo-fuzz: `cd provider && cargo +nightly fuzz run segment`.
//! Without: `SANITIZER=address tests/nightly/fuzz.sh provider segment SECONDS`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tcam_fi::fuzzing::survive(data));
