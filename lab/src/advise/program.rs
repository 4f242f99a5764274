// SPDX-License-Identifier: BSD-2-Clause
//! A recorded program, as each engine counts it: what the advice is made of.

use indicatif::ProgressBar;
use matching::{HostEngine, Profile, Queue};
use nic::report::ContextCounters;

use super::contender::{Contender, Names};
use super::cost::Work;
use super::features::Features;
use super::models::Models;
use super::stream::{Census, Measured, Stream, Yardstick, measure};
use crate::capacity::need::{Knob, Need};
use crate::error::Error;
use crate::settings::Settings;
use crate::traces::files::Found;
use crate::traces::play;
use crate::traces::trace::Trace;

/// What one engine counted in all traces of a run.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) of: Contender,
    pub(crate) work: Work,
    /// Traversals of the PRQ and of the UMQ, found and not.
    pub(crate) traversals: [[Profile; 2]; 2],
    /// What it took, where that is measured.
    pub(crate) measured_ns: Option<f64>,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) counts: Vec<Counts>,
    pub(crate) features: Features,
    pub(crate) census: Census,
    /// What a list would traverse to find something.
    pub(crate) cells: Profile,
    pub(crate) need: Need,
    /// Share of the elements that did not fit the tables.
    pub(crate) spilled: f64,
    pub(crate) operations: u64,
    /// What the yardstick took, where times are measured.
    pub(crate) yardstick_ns: Option<f64>,
}

/// The engine and storage that traces were recorded with, or that are set; in the place of an
/// engine that is not judged, the usual one.
pub(crate) fn current(found: &Found, settings: &Settings) -> Result<Contender, Error> {
    let params = found[0].params(settings)?;
    let names = Names {
        engine: params.text("host_engine").to_owned(),
        queue: params.text("queue").to_owned(),
    };
    let named = Contender::named(&names)
        .unwrap_or(Contender { engine: HostEngine::default(), queue: Queue::default() });
    if Contender::left_out().iter().any(|(engine, _)| *engine == named.engine) {
        eprintln!("{} is not judged: {} stands in its place", named.engine, HostEngine::default());
        return Ok(named.with(HostEngine::default()));
    }
    Ok(named)
}

fn census(trace: &Trace, settings: &Settings) -> Result<Census, Error> {
    let params = trace.params(settings)?;
    // The replay told why it ends early, if it does.
    let ops = trace.reader()?.map_while(Result::ok).map(|(_, op)| op);
    let census = Census::of(ops, trace.layout(&params)?, &params, trace.take.max_queue)?;
    Ok(if trace.header.context == "tagged" { census } else { census.of_the_mpi() })
}

impl Run {
    /// Plays the traces to every contender.
    pub(crate) fn of(found: &Found, settings: &Settings) -> Result<Self, Error> {
        let list = Contender { engine: HostEngine::List, queue: Queue::Linked };
        let contenders = Contender::all();
        let each: Vec<_> = contenders.iter().map(|of| of.set(settings)).collect();
        let bar = play::bar(found, each.len());
        let counted = play::all_to_each(found, &each, &bar);
        bar.finish_and_clear();
        let counted = counted?;
        let need = Need::of(found, settings, Knob::Pool, &ProgressBar::hidden())?;
        let censuses = found.iter().map(|trace| census(trace, settings));
        let censuses = censuses.collect::<Result<Vec<_>, _>>()?;
        let mut counts = Vec::with_capacity(contenders.len());
        let mut of_list = ContextCounters::default();
        for (&of, counted) in contenders.iter().zip(counted) {
            let (mut work, mut sum) = (Work::default(), ContextCounters::default());
            for (counted, census) in counted.iter().zip(&censuses) {
                work.add(&Work::of(&counted.counters, census));
                sum.merge(&counted.counters);
            }
            let profiles = [&sum.prq, &sum.umq].map(|queue| {
                [&queue.traversals.found, &queue.traversals.not_found].map(Clone::clone)
            });
            counts.push(Counts { of, work, traversals: profiles, measured_ns: None });
            if of == list {
                of_list = sum;
            }
        }
        let mut census = Census::default();
        censuses.iter().for_each(|of| census.merge(of));
        let (prq, umq) = (&of_list.prq, &of_list.umq);
        let mut cells = prq.traversals.found.clone();
        cells.merge(&umq.traversals.found);
        let inserts = prq.inserts + umq.inserts;
        Ok(Self {
            counts,
            features: Features::of(&of_list, &census),
            census,
            cells,
            need,
            spilled: (prq.spills + umq.spills) as f64 / inserts.max(1) as f64,
            operations: of_list.posts + of_list.arrivals + of_list.peeks,
            yardstick_ns: None,
        })
    }

    /// Measures what each contender takes.
    pub(crate) fn measure(
        &mut self,
        found: &Found,
        settings: &Settings,
        yardstick: &Yardstick,
    ) -> Result<(), Error> {
        let streams: Vec<_> =
            found.iter().map(|trace| Stream::of(trace, settings)).collect::<Result<_, _>>()?;
        let contenders: Vec<_> = self.counts.iter().map(|counts| counts.of).collect();
        let Measured { times, yardstick_ns } = measure(&streams, &contenders, yardstick)?;
        for (counts, time) in self.counts.iter_mut().zip(times) {
            counts.measured_ns = Some(time * yardstick_ns);
        }
        self.yardstick_ns = Some(yardstick_ns);
        Ok(())
    }

    pub(crate) fn counts(&self, of: Contender) -> Option<&Counts> {
        self.counts.iter().find(|counts| counts.of == of)
    }

    /// How much slower this machine is than that of the models, where times are measured.
    pub(crate) fn slowness(&self, models: &Models) -> f64 {
        self.yardstick_ns.map_or(1.0, |ns| ns / models.yardstick_ns)
    }

    /// What a contender is predicted to take, on this machine if times are measured.
    pub(crate) fn predicted(&self, of: Contender, models: &Models) -> Option<f64> {
        let ns = models.predict(of, &self.counts(of)?.work)?;
        Some(ns * self.slowness(models))
    }

    /// Whether anything came to the host, where engines are.
    pub(crate) fn uses_host(&self) -> bool {
        self.counts.iter().any(|counts| counts.work.host_inserts() > 0.0)
    }
}

impl Contender {
    /// These settings with this engine and storage.
    fn set(self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        settings.set("host_engine", &self.engine.name());
        settings.set("queue", &self.queue.name());
        settings
    }
}
