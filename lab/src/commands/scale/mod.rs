// SPDX-License-Identifier: BSD-2-Clause
//! `tcam scale`: predicts the table entries that a program needs at a number of ranks that was not
//! recorded.

mod forecast;
mod law;
mod page;

use std::path::PathBuf;

use clap::Args;

use self::forecast::{Forecast, RecordingsBySize};
use crate::error::Error;
use crate::results::{Json, Kind};
use crate::settings;
use crate::traces::{Placed, Take};

/// Predicts the entries that a program needs at another number of ranks.
///
/// Takes recordings of one program at three or more numbers of ranks, and compares their needs with
/// constant, logarithmic, square root and linear growth: a + b f(n) with b not negative. The band
/// of a size is the range of its runs, widened on either side by the width of the range, by 2
/// entries or by 2 percent, whichever is most. A law fits if one of its curves passes through the
/// bands of all sizes. The prediction is the range of all curves of all laws that fit; above 100 it
/// is rounded outwards to two digits.
///
/// A need that stays within the bands and does not rise at each size is constant. Its prediction is
/// the range of the runs, for UMQ and all together 2 entries wider on either side. A size with one
/// run varies as much as the repeats of other sizes do; without any repeats PRQ varies by 2
/// percent, UMQ and all together by 25 percent. If all together varies from run to run, its
/// prediction is the range from the largest of its parts to their sum. Sizes whose ranks are all on
/// one node are left out.
///
/// There is no answer if no law fits, or if the high end of the range is more than twice the low
/// end. The command then prints the range and, if one size below --to would separate the laws,
/// that size. If all ranks ran on one host, a NIC gets no answer without --ppn.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam scale run-8 run-16 run-32 --to 1000
  tcam scale run-8-* run-16-* run-32-* --to 4096 --ppn 8 --json scale.json")]
pub(crate) struct Scale {
    /// Directories of recordings, each of one size. Those with the same number of ranks and the
    /// same command line are repeats.
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,

    /// Predicts the needs at this number of ranks, which must not be smaller than a recorded one.
    #[arg(long, value_name = "RANKS", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..))]
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
    let Scale { directories, to, placed, json, take } = arguments;
    let sizes = RecordingsBySize::find(directories, *take, placed, *to)?;
    let forecast = Forecast::of(&sizes, *to)?;
    if !json.takes_output() {
        page::lines(&forecast).iter().for_each(|line| println!("{line}"));
    }
    json.write(Kind::Scale, &forecast)?;
    let codes = sizes.recordings().map(|of| of.found.ranks().code(take.partial));
    Ok(codes.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::workload::tests::write_pattern;
    use crate::workload::pattern::Pattern;

    fn find(names: &[PathBuf], to: u32) -> Result<RecordingsBySize, Error> {
        RecordingsBySize::find(names, Take::default(), &Placed::default(), to)
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
            let facts = |names, to| Forecast::of(&find(names, to).unwrap(), to).unwrap();
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
        let why = |names: &[PathBuf], to| find(names, to).unwrap_err().to_string();
        assert!(why(&gather[..2], 64).contains("at least three different numbers of ranks"));
        assert!(why(&gather[..2], 64).contains("these have 4, 8"));
        assert!(why(&gather, 15).contains("16 ranks; give that number or a larger one"));
        let with_other = [&gather[..], &[other]].concat();
        assert!(why(&with_other, 64).contains("different programs"));
    }
}
