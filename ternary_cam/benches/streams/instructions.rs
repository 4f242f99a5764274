// SPDX-License-Identifier: BSD-2-Clause
//! Counts instructions per pair (insert + match + remove) with callgrind. The count is the same on
//! a busy machine as on an idle one, so it shows regressions.

use std::process::Command;

use crate::stream;

/// The counted depths: one within the recent entries, one beyond it.
pub(crate) const DEPTHS: [usize; 2] = [4, 64];

/// Rounds of a counted run; building and dropping indexes is included.
const ROUNDS: usize = 64;

/// The argument with which this program runs itself under callgrind.
pub(crate) const CHILD: &str = "--rounds";

/// Returns the instructions per pair of the table for a stream, at each of [`DEPTHS`].
///
/// # Errors
/// A message if Valgrind is missing or failed.
pub(crate) fn count(name: &'static str) -> Result<[f64; DEPTHS.len()], String> {
    let mut counts = [0.0; DEPTHS.len()];
    for (count, depth) in counts.iter_mut().zip(DEPTHS) {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
            .arg("--toggle-collect=*Stream*round*")
            .arg(program)
            .args(["--only", name, "--depths", &depth.to_string(), CHILD, &ROUNDS.to_string()])
            .output()
            .map_err(|error| format!("valgrind: {error}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        let collected = text
            .lines()
            .find_map(|line| line.split_once("Collected : "))
            .and_then(|(_, count)| count.trim().parse::<f64>().ok())
            .ok_or_else(|| {
                format!("valgrind printed no count: {}", text.lines().last().unwrap_or(""))
            })?;
        *count = collected / (ROUNDS * stream::make(name, depth).pairs()) as f64;
    }
    Ok(counts)
}
