// SPDX-License-Identifier: BSD-2-Clause
//! The runs of a sweep in its directory.

use std::fs;
use std::path::{Path, PathBuf};

use super::{reports, run_record};
use crate::error::Error;
use crate::file;

/// Name of the file with the program's output, in the directory of a run.
pub(crate) const LOG: &str = "output.log";

/// Returns the name of the directory of a run.
pub(crate) fn name_of(prq: usize, umq: usize, repeat: u32) -> String {
    format!("prq{prq}-umq{umq}-{repeat}")
}

/// Returns true for the name of the directory of a run.
fn is_run(name: &str) -> bool {
    let numbers = || {
        let (prq, rest) = name.strip_prefix("prq")?.split_once("-umq")?;
        let (umq, repeat) = rest.split_once('-')?;
        Some((prq.parse().ok()?, umq.parse().ok()?, repeat.parse().ok()?))
    };
    numbers().is_some_and(|(prq, umq, repeat)| name_of(prq, umq, repeat) == name)
}

/// Returns the directories of the runs of a sweep, by name.
pub(crate) fn runs_in(out: &Path) -> Result<Vec<PathBuf>, Error> {
    let place = out.join("runs");
    let mut runs = Vec::new();
    for entry in fs::read_dir(&place).map_err(Error::io(&place))? {
        let entry = entry.map_err(Error::io(&place))?;
        if is_run(&entry.file_name().to_string_lossy()) {
            runs.push(entry.path());
        }
    }
    runs.sort();
    Ok(runs)
}

/// Removes the curve of an earlier sweep and its runs that this one does not repeat.
pub(crate) fn clear(out: &Path, pairs: &[(usize, usize)], repeats: u32) -> Result<(), Error> {
    for name in ["curve.svg", "curve.png"] {
        file::remove(&out.join(name))?;
    }
    let ours: Vec<_> = (1..=repeats)
        .flat_map(|repeat| pairs.iter().map(move |&(prq, umq)| name_of(prq, umq, repeat)))
        .collect();
    for path in runs_in(out)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if ours.iter().any(|run| *run == name) {
            continue;
        }
        for report in reports::old(&path)? {
            file::remove(&report)?;
        }
        file::remove(&path.join(LOG))?;
        file::remove(&path.join(run_record::NAME))?;
        // The directory stays if it contains other files.
        let _ = fs::remove_dir(&path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::reports::tests::sample;
    use crate::results::run_record::RunRecord;

    #[test]
    fn clearing_a_sweep_keeps_foreign_files() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path();
        let put = |name: &str| {
            let path = out.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, sample(0, 4, 2).to_json().unwrap()).unwrap();
        };
        let gone = ["curve.svg", "curve.png", "runs/prq1-umq1-1/0.json", "runs/prq8-umq8-2/0.json"];
        let stay = [
            "notes.svg",
            "runs/prq8-umq8-1/0.json",
            "runs/prq08-umq8-1/0.json",
            "runs/mine/0.json",
            "runs/prq2-umq2-1/notes",
        ];
        gone.iter().chain(&stay).for_each(|name| put(name));
        put("runs/prq1-umq1-1/output.log");
        RunRecord::new(Vec::new(), 0, 1, 1).write(&out.join("runs/prq1-umq1-1")).unwrap();
        clear(out, &[(8, 8)], 1).unwrap();
        for name in gone {
            assert!(!out.join(name).exists(), "{name}");
        }
        for name in stay {
            assert!(out.join(name).exists(), "{name}");
        }
        assert!(!out.join("runs/prq1-umq1-1").exists());
    }
}
