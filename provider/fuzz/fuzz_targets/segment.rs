// SPDX-License-Identifier: BSD-2-Clause
//! A peer on this host writes arbitrary bytes: slots and payloads, its own segment, and the segment
//! of the endpoint. The endpoint must not crash or access other memory than it offered. While its
//! own segment is intact, it must still receive the messages of a healthy peer.
//!
//! With cargo-fuzz: `cd provider && cargo +nightly fuzz run segment`.
//! Without: `SANITIZER=address tests/nightly/fuzz.sh provider segment SECONDS`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| tcam_fi::testing::survive(data));
