// SPDX-License-Identifier: BSD-2-Clause
//! Traces of other tools, which tcam does not read.

use std::fs;
use std::io::Read as _;
use std::path::Path;

/// First bytes of a GOAL trace in text form.
const GOAL: &[u8] = b"num_ranks ";

/// Largest number of files of a directory that are examined.
const LOOKED_AT: usize = 1000;

/// Returns advice for a file of another tool, or for a directory that contains one; empty for
/// others.
pub(crate) fn hint(path: &Path) -> String {
    let mut files = fs::read_dir(path).into_iter().flatten().flatten().take(LOOKED_AT);
    let tool = tool(path).or_else(|| files.find_map(|entry| tool(&entry.path())));
    tool.map_or_else(String::new, |tool| {
        format!(
            "; it is of {tool}, and tcam reads only its own traces: record the program with \
             `tcam record -- mpiexec ...`"
        )
    })
}

/// Returns the tool that wrote a file, by its name or its first bytes.
fn tool(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let ending = path.extension().unwrap_or_default().to_str()?;
    match ending {
        "goal" => Some("GOAL (LogGOPSim)"),
        "bin" | "meta" if name.starts_with("dumpi-") => Some("DUMPI (SST)"),
        "otf2" | "def" | "evt" => Some("OTF2 (Score-P)"),
        _ => {
            let mut head = [0; GOAL.len()];
            let read = host::regular::open(path).and_then(|mut file| file.read_exact(&mut head));
            (read.is_ok() && head == GOAL).then_some("GOAL (LogGOPSim)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_other_tools_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("x.txt"), "num_ranks 2\nrank 0 {").unwrap();
        for (name, tool) in [
            ("x.txt", "GOAL"),
            ("a.goal", "GOAL"),
            ("dumpi-2026.11.25.10.00.00-0000.bin", "DUMPI"),
            ("dumpi-2026.meta", "DUMPI"),
            ("traces.otf2", "OTF2"),
            ("traces/0.evt", "OTF2"),
        ] {
            let told = hint(&place(name));
            assert!(told.contains(tool) && told.contains("tcam record -- "), "{told}");
        }
        assert!(hint(directory.path()).contains("GOAL"));
        fs::write(place("x.txt"), "num_rank").unwrap();
        for name in ["", "x.txt", "y.trace", "data.bin", "none"] {
            assert_eq!(hint(&place(name)), "", "{name}");
        }
    }
}
