// SPDX-License-Identifier: BSD-2-Clause
//! Compares the figures of `tcam answer`, `tcam replay --with` and `tcam sweep` with a brute force in
//! Python, which reads only the operations of `tcam show --format csv`.

use std::process::Command;

#[test]
fn figures_agree_with_a_brute_force() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/gate/figures.py");
    let mut python = Command::new("python3");
    python.args([script, "--tcam", env!("CARGO_BIN_EXE_tcam")]);
    python.args(["--place", concat!(env!("CARGO_TARGET_TMPDIR"), "/figures")]);
    let done = python.output().expect("python3 is needed");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat())
    );
}
