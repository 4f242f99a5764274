// SPDX-License-Identifier: BSD-2-Clause
//! `tcam scale`: the need of a program at a number of ranks that was not recorded.

mod facts;
mod law;
mod page;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use self::facts::Facts;
use crate::error::Error;
use crate::results::json::{Json, Kind};
use crate::results::origin;
use crate::settings;
use crate::traces::node::Placed;
use crate::traces::repeats::{self, Recording};
use crate::traces::take::Take;

/// Predicts the entries that a program needs at another number of ranks.
///
/// Takes recordings of one program at three or more numbers of ranks, and compares constant,
/// logarithmic, square root and linear growth with their needs. Prints the range of the laws that the
/// recordings cannot tell apart, or says that it is too wide.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam scale run-8 run-16 run-32 --to 10000
  tcam scale run-8-* run-16-* run-32-* --to 4096 --ppn 8 --json scale.json")]
pub(crate) struct Scale {
    /// Directories of recordings. Those with the same number of ranks are repeats.
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,

    /// Ranks to predict the need for.
    #[arg(
        long,
        value_name = "RANKS",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    to: u32,

    #[command(flatten)]
    placed: Placed,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    take: Take,
}

/// Prints the page. Returns 0, or 3 if ranks are missing.
pub(crate) fn scale(arguments: &Scale) -> Result<u8, Error> {
    arguments.json.check()?;
    settings::note_unused();
    let sizes = sizes(arguments)?;
    let facts = Facts::of(&sizes, arguments.to)?;
    if !arguments.json.takes_output() {
        page::lines(&facts).iter().for_each(|line| println!("{line}"));
    }
    arguments.json.write(Kind::Scale, &facts)?;
    let recordings = sizes.values().flatten();
    let codes = recordings.map(|of| of.found.ranks().code(arguments.take.partial));
    Ok(codes.max().unwrap_or(0))
}

/// Returns the recordings by number of ranks, each with its ranks on nodes.
fn sizes(arguments: &Scale) -> Result<BTreeMap<u32, Vec<Recording>>, Error> {
    let mut sizes: BTreeMap<_, Vec<Recording>> = BTreeMap::new();
    let mut first: Option<(String, PathBuf)> = None;
    for group in repeats::groups(&arguments.directories, arguments.take)? {
        let program = program(&group[0]);
        let name = name(&group[0], arguments);
        match &first {
            Some((known, first)) if *known != program => {
                return Err(Error::OtherProgram { first: first.clone(), second: name });
            }
            Some(_) => {}
            None => first = Some((program, name.clone())),
        }
        let ranks = ranks(&group[0]);
        if let Some(other) = sizes.get(&ranks) {
            let first = self::name(&other[0], arguments);
            return Err(Error::SameSize { first, second: name, ranks });
        }
        let placed = group.into_iter().map(|of| of.placed(&arguments.placed));
        sizes.insert(ranks, placed.collect::<Result<_, _>>()?);
    }
    if sizes.len() < 3 {
        let each: Vec<_> = sizes.keys().map(u32::to_string).collect();
        return Err(Error::FewSizes { sizes: each.join(" and ") });
    }
    match sizes.keys().last() {
        Some(&largest) if arguments.to < largest => {
            Err(Error::SmallerThanRecorded { to: arguments.to, largest })
        }
        _ => Ok(sizes),
    }
}

/// Returns the number of ranks that ran, which may be more than were recorded.
fn ranks(recording: &Recording) -> u32 {
    let found = &recording.found;
    let ran = found.iter().filter_map(|trace| trace.header.origin.ranks).max();
    ran.unwrap_or_else(|| found.ranks().of())
}

fn name(recording: &Recording, arguments: &Scale) -> PathBuf {
    recording.name.clone().unwrap_or_else(|| arguments.directories[0].clone())
}

/// Returns what recordings of all sizes have in common: the program, without arguments, and the MPI.
fn program(recording: &Recording) -> String {
    let header = &recording.found[0].header;
    let name = origin::name_of(&header.program, &header.origin.command);
    // A generated recording has the number of ranks there.
    let name = name.split(" --ranks ").next().unwrap_or_default();
    match header.origin.mpi.as_str() {
        "" => name.to_owned(),
        mpi => format!("{name}, {mpi}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Task};
    use crate::commands::workload::tests::write_pattern;
    use crate::workload::pattern::Pattern;

    fn arguments(names: &[PathBuf], to: u32) -> Scale {
        let names = names.iter().map(|name| name.display().to_string());
        let words = ["tcam", "scale", "--to"].map(str::to_owned).into_iter();
        let cli = Cli::parse_from(words.chain([to.to_string()]).chain(names));
        let Task::Scale(scale) = cli.task else { panic!("not scale") };
        scale
    }

    #[test]
    fn the_need_of_the_held_back_size_is_in_the_range() {
        let directory = tempfile::tempdir().unwrap();
        let record = |pattern, ranks| {
            let name = directory.path().join(format!("{pattern:?}-{ranks}"));
            write_pattern(pattern, ranks, 4, &name);
            name
        };
        for (pattern, sizes, constant) in
            [(Pattern::Gather, [4, 8, 16, 32], false), (Pattern::Halo, [64, 128, 256, 512], true)]
        {
            let names = sizes.map(|ranks| record(pattern, ranks));
            let facts =
                |names, to| Facts::of(&super::sizes(&arguments(names, to)).unwrap(), to).unwrap();
            let fitted = facts(&names[..3], sizes[3]);
            let all = facts(&names, sizes[3]);
            for (fitted, all) in fitted.needs.iter().zip(&all.needs) {
                let [low, high] = fitted.growth.predicts.expect("a law fits");
                let held_back = all.needs[3];
                let range = low..=high;
                assert!(range.contains(&held_back.most), "{held_back:?}: {fitted:?}");
            }
            assert_eq!(fitted.needs[0].growth.constant, constant, "{:?}", fitted.needs[0]);
            let page = page::lines(&fitted);
            assert!(page.len() <= 40, "{page:#?}");
            assert!(page.iter().all(|line| line.chars().count() <= 80), "{page:#?}");
        }
    }

    #[test]
    fn recordings_that_do_not_belong_together_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let record = |pattern, ranks, steps| {
            let name = directory.path().join(format!("{pattern:?}-{ranks}-{steps}"));
            write_pattern(pattern, ranks, steps, &name);
            name
        };
        let gather = [4, 8, 16].map(|ranks| record(Pattern::Gather, ranks, 1));
        let other = record(Pattern::Halo, 32, 1);
        let why =
            |names: &[PathBuf], to| super::sizes(&arguments(names, to)).unwrap_err().to_string();
        assert!(why(&gather[..2], 64).contains("at least three numbers of ranks"));
        assert!(why(&gather[..2], 64).contains("4 and 8"));
        assert!(why(&gather, 15).contains("16 ranks; give that number or a larger one"));
        let with_other = [&gather[..], &[other]].concat();
        assert!(why(&with_other, 64).contains("different programs"));
    }
}
