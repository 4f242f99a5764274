// SPDX-License-Identifier: BSD-2-Clause
//! What `tcam advise --json` tells.

use matching::Profile;
use serde::Serialize;

use super::case::Case;
use super::contender::{Contender, Names};
use super::models::{Models, Question};
use super::program::Run;
use super::words;
use crate::capacity::curve;
use crate::capacity::need::Need;
use crate::results::ranks::Completeness;
use crate::text::numbers::count;
use crate::traces::files::Found;

/// See the module.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    title: String,
    runs: Vec<Completeness>,
    receives: u64,
    wildcards: u64,
    prq_high_water: u64,
    umq_high_water: u64,
    /// What each run needs, by rank and by NIC.
    needs: Vec<Need>,
    recommended_entries: u64,
    cases: Vec<ToldCase>,
    not_judged: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
struct ToldCase {
    prq_entries: u64,
    umq_entries: u64,
    spilled_percent: f64,
    advice: String,
    now: Names,
    /// None where nothing left the tables.
    advised: Option<Names>,
    saves_percent: Option<[f64; 2]>,
    confidence: Option<f64>,
    notes: Vec<String>,
    engines: Vec<Vec<ToldEngine>>,
    answers: Vec<Vec<ToldAnswer>>,
}

/// An engine in a run.
#[derive(Debug, Serialize)]
struct ToldEngine {
    #[serde(flatten)]
    of: Names,
    predicted_ns: Option<f64>,
    measured_ns: Option<f64>,
    prq_found: ToldProfile,
    prq_not_found: ToldProfile,
    umq_found: ToldProfile,
    umq_not_found: ToldProfile,
}

#[derive(Debug, Serialize)]
struct ToldProfile {
    attempts: u64,
    mean: Option<f64>,
    deviation: Option<f64>,
    variance: Option<f64>,
    quartiles: Option<[u64; 3]>,
}

impl From<&Profile> for ToldProfile {
    fn from(of: &Profile) -> Self {
        Self {
            attempts: of.count,
            mean: of.mean(),
            deviation: of.deviation(),
            variance: of.variance(),
            quartiles: of.quartiles(),
        }
    }
}

/// Whether an engine saves 5 % over another one, in a run.
#[derive(Debug, Serialize)]
struct ToldAnswer {
    engine: &'static str,
    against: &'static str,
    queue: &'static str,
    probability: f64,
    unanimous: bool,
    /// As measured.
    was: Option<bool>,
}

/// The program, and how many runs of it.
pub(crate) fn title(found: &[Found]) -> String {
    let title = curve::title(&found[0]);
    match found.len() {
        1 => title,
        runs => format!("{title}, {}", count(runs as u64, "run")),
    }
}

impl Told {
    pub(crate) fn of(found: &[Found], cases: &[Case], models: &Models) -> Self {
        let first = &cases[0];
        let census = || first.runs.iter().map(|run| &run.census);
        let [prq_high_water, umq_high_water] = first.marks();
        Self {
            title: title(found),
            runs: found.iter().map(|found| found.ranks().completeness()).collect(),
            receives: census().map(|census| census.receives).sum(),
            wildcards: census().map(|census| census.wildcards).sum(),
            prq_high_water,
            umq_high_water,
            needs: first.runs.iter().map(|run| run.need.clone()).collect(),
            recommended_entries: first.recommended(),
            cases: cases.iter().map(|case| ToldCase::of(case, models)).collect(),
            not_judged: Contender::left_out()
                .into_iter()
                .map(|(engine, _)| engine.name())
                .collect(),
        }
    }
}

impl ToldCase {
    fn of(case: &Case, models: &Models) -> Self {
        let Case { entries, current, runs, advice } = case;
        let spilled = runs.iter().map(|run| 100.0 * run.spilled).fold(0.0, f64::max);
        let advice = advice.as_ref();
        Self {
            prq_entries: entries[0],
            umq_entries: entries[1],
            spilled_percent: spilled,
            advice: words::sentence(runs, advice),
            now: current.names(),
            advised: advice.map(|advice| advice.advised.names()),
            saves_percent: advice.map(|advice| advice.saves.map(|share| 100.0 * share)),
            confidence: advice.map(|advice| advice.confidence),
            notes: advice.map_or_else(Vec::new, |advice| words::doubts(runs, advice)),
            engines: runs.iter().map(|run| engines(run, models)).collect(),
            answers: runs.iter().map(|run| answers(run, models)).collect(),
        }
    }
}

fn engines(run: &Run, models: &Models) -> Vec<ToldEngine> {
    let told = run.counts.iter().map(|counts| {
        let [[prq_found, prq_not_found], [umq_found, umq_not_found]] =
            counts.traversals.each_ref().map(|queue| queue.each_ref().map(ToldProfile::from));
        ToldEngine {
            of: counts.of.names(),
            predicted_ns: run.predicted(counts.of, models),
            measured_ns: counts.measured_ns,
            prq_found,
            prq_not_found,
            umq_found,
            umq_not_found,
        }
    });
    told.collect()
}

fn answers(run: &Run, models: &Models) -> Vec<ToldAnswer> {
    if !run.uses_host() {
        return Vec::new();
    }
    let mut told = Vec::new();
    for question in Question::all() {
        for &queue in matching::Queue::ALL {
            let other = Contender { engine: question.against, queue };
            let Some(answer) = run.answer(question, other, models) else { continue };
            let ns = |engine| run.counts(other.with(engine))?.measured_ns;
            let both = ns(question.engine).zip(ns(question.against));
            told.push(ToldAnswer {
                engine: question.engine.name(),
                against: question.against.name(),
                queue: queue.name(),
                probability: answer.probability(),
                unanimous: answer.is_unanimous(),
                was: both.map(|(own, other)| own <= (1.0 - Question::WORTH) * other),
            });
        }
    }
    told
}
