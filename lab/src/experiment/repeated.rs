// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show` of several runs of one program: the need of each run, and its
//! spread.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nic::plain::plain;
use serde::Serialize;

use super::{Experiment, Inputs, Keep, QueueKind};
use crate::error::Error;
use crate::hint::quoted;
use crate::results::{Completeness, DirectoryLock, ReportHead, output_directory};
use crate::stats::Variation;
use crate::text::{Sheet, whole};
use crate::traces::Measured;
use crate::traces::repeats::{exceeded, overlap};

/// The JSON of several runs.
#[derive(Debug, Serialize)]
pub(crate) struct Repeated {
    pub(crate) title: String,
    runs: Vec<Run>,
    prq_needs: Variation,
    umq_needs: Variation,
    /// Upper bound of the probability that another run needs more. `None` if a run is incomplete.
    exceeded_with_probability_at_most: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Run {
    name: String,
    #[serde(flatten)]
    completeness: Completeness,
    messages: u64,
    prq_high_water: u64,
    prq_high_water_rank: u32,
    umq_high_water: u64,
    umq_high_water_rank: u32,
}

/// Returns true if all experiments are of one program with one number of ranks.
pub(crate) fn are_repeats(experiments: &[Experiment]) -> bool {
    experiments.iter().all(|of| measured(of) == measured(&experiments[0]))
}

fn measured(experiment: &Experiment) -> Measured<'_> {
    let head = &experiment.heads[0];
    Measured::of(&head.program, &head.origin)
}

/// Reads each directory as an experiment. Returns the experiments if they are of separate runs: two
/// have a rank in common, and no two have a process in common. Directories with reports and traces
/// of one run have processes in common. Returns `None` for one run, for a single name, and if a
/// name is not a directory.
pub(crate) fn apart(sources: &Inputs, keep: Keep) -> Result<Option<Vec<Experiment>>, Error> {
    let names = &sources.names;
    if names.len() < 2 || !names.iter().all(|name| name.is_dir()) {
        return Ok(None);
    }
    let read = |name: &PathBuf| Experiment::read(&Inputs::one(name, sources.take), keep);
    let experiments = names.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut processes = BTreeSet::new();
    let mut each = experiments.iter().map(|experiment| {
        // Processes of generated recordings may differ only in their program.
        let of = |head: &ReportHead| {
            (head.host.clone(), head.pid, head.address.clone(), head.program.clone())
        };
        experiment.heads.iter().map(of).collect::<BTreeSet<_>>()
    });
    let apart = each.all(|of| of.into_iter().all(|endpoint| processes.insert(endpoint)));
    let ranks = |of: &Experiment| of.heads.iter().filter_map(|head| head.rank).collect();
    let separate = apart && overlap(experiments.iter().map(ranks));
    Ok(separate.then_some(experiments))
}

/// Reads one experiment, or several of separate runs, and locks the directory `out`. Calls `write`
/// with each experiment and the directory for its files: `out`, or for several `out/1-NAME` and so
/// on. Returns the highest exit code of `write`.
pub(crate) fn write_each(
    sources: &Inputs,
    keep: Keep,
    out: &Path,
    write: impl Fn(&Experiment, &Path) -> Result<u8, Error>,
) -> Result<u8, Error> {
    let (experiments, several) = match apart(sources, keep)? {
        Some(experiments) => (experiments, true),
        None => (vec![Experiment::read(sources, keep)?], false),
    };
    let _lock = DirectoryLock::acquire(&output_directory::make(out)?)?;
    let mut code = 0;
    for (at, (name, experiment)) in sources.names.iter().zip(&experiments).enumerate() {
        let name = format!("{}-{}", at + 1, name.file_name().unwrap_or_default().display());
        let out = if several { output_directory::make(&out.join(name))? } else { out.to_owned() };
        code = code.max(write(experiment, &out)?);
    }
    Ok(code)
}

impl Repeated {
    pub(crate) fn of(sources: &Inputs, experiments: &[Experiment]) -> Self {
        let run = |(name, of): (&PathBuf, &Experiment)| {
            let [prq, umq] = QueueKind::BOTH.map(|queue| {
                let worst = of.worst(queue);
                (queue.of(&worst.tagged).high_water, worst.number)
            });
            Run {
                name: name.display().to_string(),
                completeness: of.sum.ranks.completeness(),
                messages: of.sum.tagged.arrivals,
                prq_high_water: prq.0,
                prq_high_water_rank: prq.1,
                umq_high_water: umq.0,
                umq_high_water_rank: umq.1,
            }
        };
        let runs: Vec<_> = sources.names.iter().zip(experiments).map(run).collect();
        let complete = runs.iter().all(|run| run.completeness.complete);
        let spread = |of: fn(&Run) -> u64| Variation::of(&runs.iter().map(of).collect::<Vec<_>>());
        Self {
            title: format!("{}, {} runs", experiments[0].title(), runs.len()),
            prq_needs: spread(|run| run.prq_high_water),
            umq_needs: spread(|run| run.umq_high_water),
            exceeded_with_probability_at_most: complete.then(|| 1.0 / (runs.len() + 1) as f64),
            runs,
        }
    }

    /// Returns a table with a line for each run.
    pub(crate) fn sheet(&self) -> Sheet {
        let header = ["run", "messages", "longest PRQ", "of rank", "longest UMQ", "of rank"];
        let mut sheet = Sheet::new(self.title.clone(), header);
        for run in &self.runs {
            sheet.row([
                plain(&run.name).into_owned(),
                whole(run.messages),
                whole(run.prq_high_water),
                run.prq_high_water_rank.to_string(),
                whole(run.umq_high_water),
                run.umq_high_water_rank.to_string(),
            ]);
        }
        sheet
    }

    /// Returns the spread of the needs, and what it means for another run.
    pub(crate) fn readings(&self) -> [String; 2] {
        let next = match self.exceeded_with_probability_at_most.is_some() {
            true => exceeded(self.runs.len()),
            false => {
                "some runs are incomplete, so nothing can be said about the need of another run"
                    .to_owned()
            }
        };
        [format!("PRQ {}, UMQ {}", self.prq_needs, self.umq_needs), next]
    }

    /// Prints the table and the readings.
    pub(crate) fn print(&self) {
        println!("{}", self.sheet().terminal());
        self.readings().iter().for_each(|line| println!("{line}"));
        let first = quoted(self.runs[0].name.as_ref());
        println!("`tcam show {first}` has the tables of that run");
    }
}
