// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep --trace`: draws the capacity curve from traces.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;

use indicatif::ProgressBar;
use nic::config;
use nic::params::Params;
use nic::plain::plain;

use super::arguments::Sweep;
use super::show::show;
use crate::capacity::curve::{
    engine_note, is_charged, is_plain, names_engine, points_of, replays, scheduling_note, sums_of,
    title,
};
use crate::capacity::{Knob, Need, Runs, Sizes, Swept, UmqSizes, late, rows, sizes, smallest};
use crate::error::Error;
use crate::launch::Mpi;
use crate::options::LARGEST;
use crate::results::{DirectoryLock, Kind, output_directory};
use crate::settings::{self, Settings};
use crate::text::whole;
use crate::traces::{Found, Take, files, play, repeats};

/// Draws the curve and prints how small the table may be. If the recordings are of several programs
/// or numbers of ranks, draws a curve for each. Returns 0, or 3 if results are incomplete.
pub(crate) fn sweep(arguments: &Sweep) -> Result<u8, Error> {
    settings::note_unused();
    let common = &arguments.common;
    for (option, given) in
        [("--provider", common.provider.is_some()), ("--mpi", Mpi::chosen(common.mpi).is_some())]
    {
        if given {
            fail!("{option}: --trace replays what was recorded and runs nothing; leave it out");
        }
    }
    let mut settings = Settings::for_replay("--set", &common.set)?;
    settings.refuse_sizes()?;
    settings.give("timing", "--timing", arguments.timing.as_ref())?;
    let take = Take {
        cut_off: arguments.cut_off,
        max_queue: arguments.max_queue,
        partial: common.partial,
    };
    let groups = repeats::groups(&arguments.trace, take, &arguments.placed)?;
    let _lock = DirectoryLock::acquire(&output_directory::make(&arguments.out)?)?;
    arguments.json.check()?;
    let (mut results, mut code) = (Vec::new(), 0);
    let are_several = groups.len() > 1;
    for (at, group) in groups.into_iter().enumerate() {
        let name = repeats::name_of(&group).filter(|_| are_several);
        let out = match &name {
            None => arguments.out.clone(),
            Some(name) => {
                output_directory::make(&arguments.out.join(format!("{}-{name}", at + 1)))?
            }
        };
        if let Some(name) = name.filter(|_| !arguments.json.takes_output()) {
            println!("{}{}:", if at > 0 { "\n" } else { "" }, plain(&name));
        }
        let runs: Vec<_> = group.into_iter().map(|of| of.found).collect();
        let (runs, of) = one(arguments, &settings, &runs, &out)?;
        results.push(runs);
        code = code.max(of);
    }
    arguments.json.write_each(Kind::Sweep, &results)?;
    Ok(code)
}

/// Draws the curve of the repeats of one run. Returns its JSON and the exit code.
fn one(
    arguments: &Sweep,
    settings: &Settings,
    runs: &[Found],
    out: &Path,
) -> Result<(Runs, u8), Error> {
    if runs.iter().flat_map(|found| found.iter()).all(|trace| trace.header.context != "tagged") {
        return Err(Error::NothingTagged);
    }
    let mut params = Vec::new();
    for found in runs {
        params.extend(files::params(found, settings)?);
        files::note_mixed(found);
        files::note_waits(found);
        files::note_polled(found);
    }
    if play::holds_back(&params) {
        play::note_flow_control("overflow=flow-control");
    }
    // If only --umq has a list of sizes, it is paired with the usual sizes of the PRQ.
    let listed = matches!(&arguments.umq, Some(UmqSizes::List(Sizes(sizes))) if sizes.len() > 1);
    let given = arguments.prq.is_some() || arguments.umq.is_some();
    let knob = if given { Knob::Tables } else { Knob::of(&params[0]) };
    if arguments.pool.is_some() && knob == Knob::Tables {
        fail!("--pool: the device has no pool; --set pool=node gives it one");
    }
    let pairs = |need: u64| {
        let (prq, umq) = match (knob, &arguments.pool, &arguments.prq) {
            (Knob::Tables, _, Some(prq)) => (prq.clone(), arguments.umq.as_ref()),
            (Knob::Tables, ..) if listed => (Sizes::usual(), arguments.umq.as_ref()),
            (Knob::Tables, ..) => (Sizes::around(need), arguments.umq.as_ref()),
            (Knob::Pool, Some(Sizes(sizes)), _) if sizes.contains(&0) => {
                fail!("--pool: a pool has 1 to 65536 entries");
            }
            (Knob::Pool, Some(sizes), _) => (sizes.clone(), Some(&UmqSizes::Same)),
            (Knob::Pool, None, _) => {
                let mut sizes = Sizes::around(need);
                sizes.0.retain(|size| *size >= least_pool(&params[0], runs));
                (sizes, Some(&UmqSizes::Same))
            }
        };
        sizes::pairs(&prq, umq, &params[0])
    };
    // Wrong sizes fail before a replay.
    pairs(0)?;
    // The note on missing ranks is printed first. Only the replay finds that a trace was cut off,
    // so the note is computed again after the replay.
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
    arguments.json.tell(&lack);
    let charged = params.iter().any(is_charged);
    let need = |found: &Found| play::with_bar(found, 1, |bar| Need::of(found, settings, knob, bar));
    let needs = runs.iter().map(need).collect::<Result<Vec<_>, _>>()?;
    let need = needs.iter().map(|need| need.size(knob).unwrap_or(need.nic().peak_total.most));
    let sizes = pairs(need.max().unwrap_or(0))?;
    let (mut smallest, mut played) = (Vec::new(), Vec::new());
    let passes = !charged && knob == Knob::Tables && params.iter().all(is_plain);
    if passes {
        let pass =
            |found: &Found| play::with_bar(found, 1, |bar| play::curves(found, settings, bar));
        let passed = runs.iter().map(pass).collect::<Result<Vec<_>, _>>()?;
        smallest = smallest::smallest(passed.iter().flatten(), runs.len());
        if !arguments.json.takes_output() {
            println!("{}", smallest::table(&smallest));
        }
        for (found, passed) in runs.iter().zip(&passed) {
            played.push(sums_of(&sizes, passed, settings, &found.ranks())?);
        }
    }
    if !passes || names_engine(settings) {
        let play = |found| replays(&sizes, found, settings, charged, knob);
        played = runs.iter().map(play).collect::<Result<Vec<_>, _>>()?;
    }
    let (points, mut rows) = points_of(&sizes, &played, knob);
    let pool_entries = (Knob::of(&params[0]) == Knob::Pool && knob == Knob::Tables)
        .then(|| params[0].pool_entries.into());
    let scheduling_note =
        scheduling_note(&played).map(|note| with_unavoidable(runs, note)).transpose()?;
    let engine_note = charged.then(|| engine_note(params.iter()));
    let is_lower_bound = lacks().is_some();
    let swept =
        Swept { points, knob, needs, pool_entries, scheduling_note, engine_note, is_lower_bound };
    rows.iter_mut()
        .for_each(|row| row.set(rows::RANKS_A_NODE, arguments.placed.ppn.map(NonZeroU32::get)));
    rows::write(out, &rows)?;
    let title = match runs.len() {
        1 => title(&runs[0]),
        repeats => format!("{}, {repeats} recordings", title(&runs[0])),
    };
    let later = lacks().filter(|later| lack.as_ref() != Some(later));
    show(arguments, out, &title, &swept, later.as_deref(), &[])?;
    let ranks: Vec<_> = runs.iter().map(Found::ranks).collect();
    // The completeness in JSON is that of an incomplete recording, if there is one.
    let least = ranks.iter().max_by_key(|ranks| ranks.code(false)).expect("there are recordings");
    let result = Runs::new(title, rows, swept, least.completeness(), Vec::new(), smallest);
    Ok((result, ranks.iter().map(|ranks| ranks.code(arguments.common.partial)).max().unwrap_or(0)))
}

/// Returns `note`, the note on ranks that share processors, with the length of the UMQ that the
/// order of sends and receives causes under any scheduling. If this length is 0, returns only
/// `note`.
fn with_unavoidable(runs: &[Found], note: String) -> Result<String, Error> {
    let late = runs.iter().map(|run| Ok(late::of(run, &ProgressBar::hidden())?.rank));
    let late = late.collect::<Result<Vec<_>, Error>>()?;
    let (least, most) = (late.iter().min().unwrap_or(&0), late.iter().max().unwrap_or(&0));
    let range = match least == most {
        _ if *most == 0 => return Ok(note),
        true => whole(*most),
        false => format!("{} to {}", whole(*least), whole(*most)),
    };
    Ok(format!(
        "{note}. The order of sends and receives alone causes a UMQ of {range}, at any timing"
    ))
}

/// Returns the number of entries of the smallest pool with room for what all endpoints of a NIC
/// reserve.
fn least_pool(params: &Params, runs: &[Found]) -> usize {
    let mut nics: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (run, found) in runs.iter().enumerate() {
        for trace in found.iter() {
            nics.entry((run, trace.host())).or_default().insert(trace.endpoint());
        }
    }
    let endpoints = nics.values().map(BTreeSet::len).max().unwrap_or(0);
    let (engines, reserved) =
        (params.pool_engines as usize, config::share_of(params).reserved as usize);
    (engines * (endpoints.div_ceil(engines) * reserved).max(1)).min(LARGEST)
}
