// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep --trace`: the capacity curve of traces.

use super::arguments::Sweep;
use super::show::show;
use crate::capacity::curve::{is_charged, is_plain, need_of, replays, sums_of, swept, title};
use crate::capacity::rows::{self, Runs};
use crate::capacity::sizes::{self, Sizes, UmqSizes};
use crate::capacity::smallest;
use crate::error::Error;
use crate::launch::launcher::Mpi;
use crate::results::fresh;
use crate::results::json::Kind;
use crate::results::lock::Lock;
use crate::settings::{self, Settings};
use crate::traces::files::{self, Found};
use crate::traces::take::Take;
use crate::traces::{play, repeats};

/// Draws the curve and says how small the table may be. Returns 0.
pub(crate) fn sweep(arguments: &Sweep) -> Result<u8, Error> {
    settings::note_unused();
    let common = &arguments.common;
    for (option, given) in
        [("--provider", common.provider.is_some()), ("--mpi", Mpi::chosen(common.mpi).is_some())]
    {
        if given {
            return Err(Error::NothingIsRun { option });
        }
    }
    let mut settings = Settings::for_replay("--set", &common.set)?;
    settings.refuse_sizes()?;
    settings.give("timing", "--timing", arguments.timing.as_ref())?;
    let take = Take {
        cut_off: arguments.cut_off,
        max_queue: arguments.max_queue,
        partial: common.partial,
        ppn: arguments.ppn,
    };
    let runs = repeats::find(&arguments.trace, take)?;
    if runs.iter().flat_map(|found| found.iter()).all(|trace| trace.header.context != "tagged") {
        return Err(Error::NothingTagged);
    }
    let mut params = Vec::new();
    for found in &runs {
        params.extend(files::params(found, &settings)?);
        if let Some(mixed) = files::mixed(found) {
            eprintln!("{mixed}");
        }
    }
    if play::holds_back(&params) {
        play::note_flow_control("overflow=flow-control");
    }
    let _lock = Lock::of(&fresh::make(&arguments.out)?)?;
    arguments.json.check()?;
    // A list of sizes of the UMQ goes with the usual ones alone.
    let listed = matches!(&arguments.umq, Some(UmqSizes::List(Sizes(sizes))) if sizes.len() > 1);
    let pairs = |need: u64| {
        let prq = match &arguments.prq {
            Some(prq) => prq.clone(),
            None if listed => Sizes::usual(),
            None => Sizes::around(need),
        };
        sizes::pairs(&prq, arguments.umq.as_ref(), &params[0])
    };
    // What is wrong with sizes that were given is said before anything is played.
    pairs(0)?;
    // First of all; what was cut off may only be seen as it is played.
    let lacks = || {
        runs.iter().find_map(|found| {
            let lack = found.ranks().lack("trace")?;
            let directory = found[0].path.parent().filter(|_| runs.len() > 1);
            Some(
                directory
                    .map_or_else(|| lack.clone(), |name| format!("{}: {lack}", name.display())),
            )
        })
    };
    let lack = lacks();
    match arguments.json.takes_output() {
        true => lack.iter().for_each(|lack| eprintln!("{lack}")),
        false => lack.iter().for_each(|lack| println!("{lack}")),
    }
    let charged = params.iter().any(is_charged);
    let mut smallest = Vec::new();
    let (sizes, played) = if charged || !params.iter().all(is_plain) {
        let mut need = 0;
        if arguments.prq.is_none() && !listed {
            for found in &runs {
                let counted = play::all(found, &settings)?;
                need = need.max(need_of(counted.iter().map(|of| &of.counters)));
            }
        }
        let sizes = pairs(need)?;
        let play = |found| replays(&sizes, found, &settings, charged);
        let played = runs.iter().map(play).collect::<Result<Vec<_>, _>>()?;
        (sizes, played)
    } else {
        let mut passed = Vec::new();
        for found in &runs {
            let bar = play::bar(found, 1);
            passed.push(play::curves(found, &settings, &bar)?);
            bar.finish_and_clear();
        }
        let all = || passed.iter().flatten();
        smallest = smallest::smallest(all(), runs.len());
        if !arguments.json.takes_output() {
            println!("{}", smallest::table(&smallest));
        }
        let sizes = pairs(need_of(all().map(|of| &of.counted.counters)))?;
        let sums = runs.iter().zip(&passed);
        let sums = sums.map(|(found, passed)| sums_of(&sizes, passed, &settings, &found.ranks()));
        let played = sums.collect::<Result<Vec<_>, _>>()?;
        (sizes, played)
    };
    let (points, mut rows) = swept(&sizes, &played);
    rows.iter_mut().for_each(|row| row.set_nodes(arguments.ppn));
    rows::write(&arguments.out, &rows)?;
    let title = match runs.len() {
        1 => title(&runs[0]),
        repeats => format!("{}, {repeats} recordings", title(&runs[0])),
    };
    let later = lacks().filter(|later| lack.as_ref() != Some(later));
    show(arguments, &title, &points, later.as_deref(), &[])?;
    let ranks: Vec<_> = runs.iter().map(Found::ranks).collect();
    // What is told of completeness is of the recording that lacks most.
    let least = ranks.iter().max_by_key(|ranks| ranks.code(false)).expect("there are recordings");
    let told = Runs::of_traces(&title, &rows, &points, least.completeness(), smallest);
    arguments.json.write(Kind::Sweep, told)?;
    Ok(ranks.iter().map(|ranks| ranks.code(common.partial)).max().unwrap_or(0))
}
