// SPDX-License-Identifier: BSD-2-Clause
//! Computes the facts of `tcam answer` from traces: the entries that a program needs, the devices
//! that hold all its elements, and the modelled cost of overflow. `--json` prints these structs.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use matching::timing::ModelledTime;
use nic::models::{self, NicModel};
use nic::trace::Header;
use serde::Serialize;

use crate::capacity::demand::{self, Demand};
use crate::capacity::list_entries;
use crate::capacity::{Judged, Knob, Need, PeakNeed, Sizes, curve, late, need};
use crate::error::Error;
use crate::experiment::fill::TimeWindow;
use crate::experiment::{by, fill};
use crate::results::Summary;
use crate::results::summary::NO_LIBFABRIC;
use crate::settings::Settings;
use crate::stats::Range;
use crate::text::total;
use crate::traces::{Counted, Found, Trace, counted, files, play};

/// Assumed time of the way from a NIC to the host, in nanoseconds. The way back takes the same
/// time.
pub(crate) const WAY_NS: u64 = 500;

/// Entries that a rank, or a NIC, needs. In each run every field has the value of the rank or NIC
/// where that value is largest. Each range is over the runs.
#[derive(Debug, Serialize)]
pub(crate) struct Needed {
    /// Name of the rank or NIC with the largest `peak_total`, in the run where that is largest.
    pub(crate) name: String,
    pub(crate) prq: Range<u64>,
    pub(crate) umq: Range<u64>,
    /// Largest length of the UMQ if every message arrived as late as possible, see [`late`].
    pub(crate) umq_at_least: Range<u64>,
    /// Receives and unexpected messages of the MPI itself.
    pub(crate) internal: Range<u64>,
    /// Largest sum of PRQ, UMQ and internal elements at one moment.
    pub(crate) peak_total: Range<u64>,
}

/// Results of a device in all runs.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceResult {
    #[serde(skip)]
    pub(crate) model: NicModel,
    /// The judgement of the run with the most spills.
    #[serde(flatten)]
    pub(crate) judged: Judged,
    /// What has the entries: `NIC` for a pool that all its ranks share, or `rank` for tables.
    pub(crate) unit: &'static str,
    /// Entries of its pool, or of the tables of a rank: PRQ and UMQ.
    pub(crate) entries: Vec<u64>,
    /// Entries with which nothing would spill for lack of space, as in `entries`. A pool that the
    /// device divides among engines must be larger than the need of the NIC, because a rank uses
    /// the part of one engine.
    pub(crate) needs: Vec<Range<u64>>,
    /// Number of runs without a spill.
    pub(crate) suffices_in: usize,
    /// Number of runs without a spill for lack of space. An element may also go to the host to stay
    /// behind one that the device refused.
    pub(crate) fits_in: usize,
    /// Modelled time of the host with the costs of `cpu-list`, in per cent of the run, on the rank
    /// where it is highest.
    pub(crate) cpu_list_percent: Range<f64>,
    /// Like `cpu_list_percent`, plus the time of the way from the NIC to the host and back
    /// ([`WAY_NS`]) for each message that a table passes to the host.
    pub(crate) with_way_percent: Range<f64>,
}

/// Results of a NIC whose ranks share all its entries, in all runs.
#[derive(Debug, Serialize)]
pub(crate) struct AtSize {
    pub(crate) entries: u64,
    /// Share of the elements that got an entry when they were added to their queue, in per cent.
    pub(crate) immediate_percent: Range<f64>,
    /// Modelled costs of overflow in per cent of the run, as in [`DeviceResult`].
    pub(crate) cpu_list_percent: Range<f64>,
    pub(crate) with_way_percent: Range<f64>,
}

/// The facts of the answer.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) program: String,
    pub(crate) command: String,
    pub(crate) mpi: String,
    /// Number of ranks that have a trace.
    pub(crate) ranks: u32,
    /// Number of ranks of the job.
    pub(crate) ranks_of: u32,
    pub(crate) hosts: usize,
    /// Number of processors of a host; `None` if it is unknown or the messages were generated.
    pub(crate) processors: Option<usize>,
    /// True if a host had more ranks than processors, or if `processors` is below the mean number
    /// of ranks on a host, rounded down. False if the messages were generated.
    pub(crate) crowded: bool,
    /// True if the messages were generated, and no program ran.
    pub(crate) generated: bool,
    /// Highest exit status of the runs; `None` if it was not recorded.
    pub(crate) exit_status: Option<u8>,
    pub(crate) runs: usize,
    pub(crate) messages: Range<u64>,
    pub(crate) seconds: Range<f64>,
    /// Number of ranks on a node (`--ppn`), if it was given.
    pub(crate) ranks_a_nic: Option<NonZeroU32>,
    /// Number of nodes that the ranks were placed on; `None` if they were not placed.
    pub(crate) nodes: Option<usize>,
    pub(crate) rank: Needed,
    pub(crate) nic: Needed,
    /// Sentences on the ranks, tags and sources of the elements when PRQ and UMQ were longest, in
    /// the run whose NIC needs most.
    pub(crate) fills: Vec<String>,
    pub(crate) devices: Vec<DeviceResult>,
    /// Results of NICs of other sizes; empty unless a picture is drawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sizes: Vec<AtSize>,
    /// A sentence on why the need of a NIC is a range, if it is not one number in each run.
    pub(crate) order: Option<String>,
    /// A sentence on missing ranks or a failed program; `None` if neither is the case.
    pub(crate) lack: Option<String>,
    /// Number of runs in which messages arrived when their receivers polled.
    pub(crate) polled: usize,
    /// Number of messages in all runs that waited for room at their receivers.
    pub(crate) waited: u64,
    /// A note that ranks have several endpoints, if they do.
    pub(crate) shares: Option<String>,
    /// Text on the program in Cassini's match mode *hardware*, if the list entries do not hold all
    /// elements.
    pub(crate) in_hardware_mode: Option<String>,
}

impl Facts {
    /// Computes the facts from at least one run of one program, for these devices. If `is_drawn` is
    /// true, also replays the runs on NICs of other sizes. Fails if a run has no traces of tagged
    /// messages.
    pub(crate) fn of<'a>(
        runs: &[&Found],
        models: impl IntoIterator<Item = &'a NicModel>,
        is_drawn: bool,
    ) -> Result<Self, Error> {
        let first = runs[0];
        if runs.iter().any(|run| run.iter().all(|trace| trace.header.context != "tagged")) {
            return Err(Error::NothingTagged);
        }
        let models: Vec<_> = models.into_iter().collect();
        let (mut needs, mut lates, mut played) = (Vec::new(), Vec::new(), Vec::new());
        for run in runs {
            let (need, late) = play::with_bar(run, 2, |bar| {
                let need = Need::of(run, &Settings::default(), Knob::Pool, bar)?;
                Ok((need, late::of(run, bar)?))
            })?;
            needs.push(need);
            lates.push(late);
        }
        let most = (0..runs.len()).rev().max_by_key(|&run| needs[run].nic().peak_total.most);
        let number = most.expect("there is a run");
        let largest = runs[number];
        let fills = play::with_bar(largest, 1, |bar| {
            Ok(by::readings(&fill::of(largest, TimeWindow::ALL, bar)?))
        })?;
        let in_run = match runs.len() {
            1 => String::new(),
            all => format!("In run {} of {all}, ", number + 1),
        };
        let fills = fills.into_iter().map(|fill| format!("{in_run}{fill}")).collect();
        let nic = Needed::of(&needs, |need| &need.nics, lates.iter().map(|late| late.nic));
        let sizes = if is_drawn { sizes_below(nic.peak_total.most) } else { Vec::new() };
        let of_sizes = sizes.iter().map(|&entries| of_size(entries));
        let settings = models.iter().map(|model| of_model(model)).chain(of_sizes);
        let settings: Vec<_> = settings.map(|settings| with_costs(&settings)).collect();
        for run in runs {
            let play = |bar: &_| DeviceReplay::of_each(run, &settings, bar);
            played.push(play::with_bar(run, settings.len(), play)?);
        }
        let sizes = sizes.iter().enumerate().map(|(at, &entries)| {
            let of_runs = || played.iter().map(|run| &run[models.len() + at]);
            AtSize {
                entries: entries as u64,
                immediate_percent: Range::of(of_runs().map(|run| run.sum.immediate())),
                cpu_list_percent: Range::of(of_runs().map(|run| run.cost)),
                with_way_percent: Range::of(of_runs().map(|run| run.with_way)),
            }
        });
        let sizes = sizes.collect();
        let rank = Needed::of(&needs, |need| &need.ranks, lates.iter().map(|late| late.rank));
        let mut devices: Vec<DeviceResult> = Vec::new();
        for (at, &model) in models.iter().enumerate() {
            let params = files::params(first, &settings[at])?;
            let pool = params.iter().any(|params| Knob::of(params) == Knob::Pool);
            let entries: Vec<u64> = match pool {
                true => vec![params[0].pool_entries.into()],
                false => vec![params[0].prq_entries as u64, params[0].umq_entries as u64],
            };
            let of_run = |(run, of): (&&Found, &Vec<DeviceReplay>)| {
                needs_of(model, run, &of[at].sum, &entries, pool)
            };
            let of_runs =
                runs.iter().zip(&played).map(of_run).collect::<Result<Vec<_>, Error>>()?;
            let replays = || played.iter().map(|run| &run[at]);
            let judged: Vec<_> =
                replays().map(|run| Judged::of(model.name, &run.sum, pool)).collect();
            let spills = |of: &&Judged| of.by_design + of.overflowed;
            let worst = judged.iter().max_by_key(spills).expect("there is a run").clone();
            let is_enough = |needs: &[Range<u64>]| {
                needs.iter().zip(&entries).all(|(need, of)| need.most <= *of)
            };
            devices.push(DeviceResult {
                model: *model,
                judged: worst,
                unit: if pool { "NIC" } else { "rank" },
                needs: (0..entries.len())
                    .map(|table| Range::over(of_runs.iter().map(|needs| needs[table])))
                    .collect(),
                suffices_in: judged.iter().filter(|of| of.suffices).count(),
                fits_in: (judged.iter().zip(&of_runs))
                    .filter(|(of, needs)| of.overflowed == 0 || !pool && is_enough(needs))
                    .count(),
                entries,
                cpu_list_percent: Range::of(replays().map(|run| run.cost)),
                with_way_percent: Range::of(replays().map(|run| run.with_way)),
            });
        }
        let aborts = |of: &DeviceResult| of.model.spilling_mode().is_some() && !of.judged.suffices;
        let in_hardware_mode = match devices.iter().any(aborts) {
            true => Some(hardware_mode(runs)?),
            false => None,
        };
        let plain = || played.iter().map(|run| &run[0]);
        let Header { program, origin, libfabric, .. } = &first[0].header;
        let hosts: BTreeSet<_> = first.iter().map(|trace| &trace.header.host).collect();
        let ranks = runs.iter().map(|run| run.ranks());
        let ranks = ranks.max_by_key(|of| (of.code(false), of.has_failed())).unwrap_or_default();
        let launch = runs.iter().filter_map(|run| run.run.as_ref()).max_by_key(|of| of.exit_status);
        let recorded = origin.cores.map(|cores| cores as usize);
        // If the launcher ran on a host without ranks, its number of processors does not count.
        let of_launcher = launch.filter(|launch| hosts.contains(&launch.host));
        let processors = of_launcher.map(|launch| launch.processors).or(recorded);
        let generated = libfabric == NO_LIBFABRIC;
        let a_host = ranks.present() as usize / hosts.len().max(1);
        Ok(Self {
            title: curve::title(first),
            program: program.rsplit('/').next().unwrap_or(program).to_owned(),
            command: origin.command.clone(),
            mpi: origin.mpi.clone(),
            ranks: ranks.present(),
            ranks_of: origin.ranks.filter(|_| generated).unwrap_or(ranks.job_size()),
            hosts: hosts.len(),
            processors: processors.filter(|_| !generated),
            crowded: !generated
                && (plain().any(|run| run.sum.oversubscribed.is_some())
                    || processors.is_some_and(|processors| processors < a_host)),
            generated,
            exit_status: launch.map(|launch| launch.exit_status),
            runs: runs.len(),
            messages: Range::of(plain().map(|run| run.sum.tagged.arrivals)),
            seconds: Range::of(plain().map(|run| run.seconds)),
            ranks_a_nic: None,
            nodes: first.placed_on(),
            rank,
            nic,
            fills,
            devices,
            sizes,
            order: need::range_note(&needs),
            lack: ranks.lack("trace"),
            polled: runs.iter().filter(|run| run.iter().any(Trace::is_polled)).count(),
            waited: runs.iter().fold(0, |sum, run| total([sum, run.waited])),
            shares: plain().find_map(|run| run.sum.endpoints_note()),
            in_hardware_mode,
        })
    }
}

impl Needed {
    fn of(
        needs: &[Need],
        units: impl Fn(&Need) -> &[PeakNeed],
        umq_at_least: impl Iterator<Item = u64> + Clone,
    ) -> Self {
        let most = |count: fn(&PeakNeed) -> Range<u64>| {
            Range::over(needs.iter().map(|need| need::largest(units(need), count)))
        };
        let worst =
            needs.iter().map(|need| &units(need)[0]).max_by_key(|unit| unit.peak_total.most);
        Self {
            name: worst.map_or_else(String::new, PeakNeed::name),
            prq: most(|of| of.each.prq),
            umq: most(|of| of.each.umq),
            umq_at_least: Range::of(umq_at_least),
            internal: most(|of| of.each.internal),
            peak_total: most(|of| of.peak_total),
        }
    }
}

/// Returns text on the runs in Cassini's match mode *hardware*, with the default settings of the
/// provider.
fn hardware_mode(runs: &[&Found]) -> Result<String, Error> {
    let demands = runs.iter().map(|run| demand::of(run, list_entries::PROVIDER));
    let demands = demands.collect::<Result<Vec<_>, Error>>()?;
    let aborts: Vec<_> = demands.iter().filter_map(Demand::abort_text).collect();
    Ok(match aborts.first() {
        Some(abort) => format!("aborts in {} of {} runs: {abort}", aborts.len(), runs.len()),
        None => "goes on: ranks move their unexpected messages to the host".to_owned(),
    })
}

/// Returns the entries that a device needs in a run: of its pool, or of the tables of a rank, which
/// have `entries`. `sum` has the counts of the device in this run.
fn needs_of(
    model: &NicModel,
    run: &Found,
    sum: &Summary,
    entries: &[u64],
    pool: bool,
) -> Result<Vec<Range<u64>>, Error> {
    let marks = [&sum.tagged.prq, &sum.tagged.umq].map(|queue| queue.table_high_water);
    // A table that was never full is as good as a larger one.
    if !pool && marks.iter().zip(entries).all(|(mark, &of)| of == 0 || *mark < of) {
        return Ok(marks.map(Range::from).into());
    }
    let knob = if pool { Knob::Pool } else { Knob::Tables };
    let need = play::with_bar(run, 1, |bar| Need::of(run, &of_model(model), knob, bar))?;
    Ok(match knob {
        Knob::Pool => vec![need.pool],
        Knob::Tables => need.tables.map(Range::from).into(),
    })
}

/// Returns the settings of a device. They keep no part of the recorded configuration.
fn of_model(model: &NicModel) -> Settings {
    let mut settings = Settings::default().with([("device", &"generic")]);
    model.sets.iter().for_each(|(name, value)| settings.set(name, value));
    settings
}

/// Returns the settings of a NIC whose ranks share a pool of `entries` entries.
fn of_size(entries: usize) -> Settings {
    let ideal = models::named("ideal").expect("it is one of the models");
    of_model(ideal).with([("pool", &"node"), ("pool_entries", &entries)])
}

/// Returns NIC sizes above 0, up to the first power of two that is not below the need.
fn sizes_below(need: u64) -> Vec<usize> {
    let most = need.next_power_of_two();
    let sizes = Sizes::around(need).0.into_iter();
    sizes.filter(|&size| size > 0 && size as u64 <= most).collect()
}

/// Returns the settings with the costs of a list on the host, and of the way from the NIC to the
/// host and back.
fn with_costs(settings: &Settings) -> Settings {
    // The costs `cpu-list` were measured with the engine `list`.
    settings.with([
        ("timing", &"cpu-list"),
        ("host_engine", &"list"),
        ("up_ns", &WAY_NS),
        ("down_ns", &WAY_NS),
    ])
}

/// The results of the replay of a run on a device.
struct DeviceReplay {
    sum: Summary,
    /// Modelled time of the host, without the way to it, on the rank where it is highest, in per
    /// cent of the run.
    cost: f64,
    /// Modelled time of the host and of the way on the rank where it is highest, likewise.
    with_way: f64,
    /// Time from the beginning of the run to the last record of any trace.
    seconds: f64,
}

impl DeviceReplay {
    fn of_each(
        run: &Found,
        settings: &[Settings],
        bar: &indicatif::ProgressBar,
    ) -> Result<Vec<Self>, Error> {
        let counted = play::all_to_each(run, settings, bar)?;
        counted
            .iter()
            .zip(settings)
            .map(|(counted, settings)| Self::of(run, counted, settings))
            .collect()
    }

    fn of(run: &Found, counted: &[Counted], settings: &Settings) -> Result<Self, Error> {
        let reports = counted::reports(counted, settings)?;
        let sum = Summary::of_traces(&reports, &run.ranks()).ok_or(Error::NothingTagged)?;
        let end = |of: &Counted| of.trace.since_ns() as f64 * 1e-9 + of.seconds;
        let seconds = counted.iter().map(end).fold(0.0, f64::max);
        let cost = |ps: fn(&ModelledTime) -> u64| {
            let mut ranks: BTreeMap<_, f64> = BTreeMap::new();
            for of in counted.iter().filter(|of| of.trace.header.context == "tagged") {
                let Header { host, pid, .. } = &of.trace.header;
                let queues = [&of.counters.prq, &of.counters.umq].map(|of| ps(&of.modelled));
                // A rank may have several endpoints.
                *ranks.entry((host, pid)).or_default() +=
                    queues.into_iter().map(|ps| ps as f64 * 1e-12).sum::<f64>();
            }
            let most = ranks.into_values().fold(0.0, f64::max);
            if seconds > 0.0 { 100.0 * most / seconds } else { 0.0 }
        };
        let without_way = |time: &ModelledTime| time.overflow_ps().saturating_sub(time.way_ps);
        let (cost, with_way) = (cost(without_way), cost(ModelledTime::overflow_ps));
        Ok(Self { sum, cost, with_way, seconds })
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
