// SPDX-License-Identifier: BSD-2-Clause
//! A fuzz target that interprets the input as a sequence of operations. `Table` and `Cam` must give
//! the results of a naive list.
//!
//! With cargo-fuzz: `cd ternary_cam && cargo +nightly fuzz run operations`. Without cargo-fuzz,
//! `tests/nightly/fuzz.sh ternary_cam operations SECONDS` builds and runs the same program.
//! `TCAM_SOAK_SECONDS=3600 cargo test -p tcam-ternary-cam long_sequences` runs random operations
//! and needs neither nightly nor libFuzzer.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;
use ternary_cam::Kernel;

fuzz_target!(|data: &[u8]| {
    common::run(data, Kernel::best());
    common::run(data, Kernel::Scalar);
});
