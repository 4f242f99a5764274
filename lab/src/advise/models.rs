// SPDX-License-Identifier: BSD-2-Clause
//! What was learned, as it is kept: costs of each engine, and the classifiers of each question.

use std::sync::LazyLock;

use matching::HostEngine;
use serde::{Deserialize, Serialize};

use super::classifier::{Classifiers, Platt};
use super::contender::{Contender, Names};
use super::cost::{CostModel, Work};
use super::features::{self, Features, SEEN};
use crate::error::Error;

/// Name of the file.
pub(crate) const MODELS: &str = "models.json";
/// What the repository has.
const STORED: &str = include_str!("../../advisor/models.json");

/// Whether an engine takes 5 % less time than another one on the same storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) engine: HostEngine,
    pub(crate) against: HostEngine,
}

impl Question {
    /// The least share of the time that is worth a change, as in the paper.
    pub(crate) const WORTH: f64 = 0.05;

    /// Each engine against the list and against the default.
    pub(crate) fn all() -> Vec<Self> {
        let mut engines: Vec<_> = Contender::all().iter().map(|of| of.engine).collect();
        engines.dedup();
        let against = [HostEngine::List, HostEngine::default()];
        let pairs = against
            .into_iter()
            .flat_map(|against| engines.iter().map(move |&engine| Self { engine, against }));
        pairs.filter(|question| question.engine != question.against).collect()
    }
}

/// What one engine costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CostOf {
    #[serde(flatten)]
    pub(crate) of: Names,
    pub(crate) ns: CostModel,
}

/// Who answers a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answerer {
    pub(crate) engine: String,
    pub(crate) against: String,
    pub(crate) classifiers: Classifiers,
    /// A probability of the score of each.
    pub(crate) platt: [Platt; 3],
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    /// The probability of each classifier that the answer is yes.
    pub(crate) each: [f64; 3],
}

impl Answer {
    /// The mean.
    pub(crate) fn probability(&self) -> f64 {
        self.each.iter().sum::<f64>() / self.each.len() as f64
    }

    /// Whether all say the same.
    pub(crate) fn is_unanimous(&self) -> bool {
        let yes = self.each.iter().filter(|p| **p > 0.5).count();
        yes == 0 || yes == self.each.len()
    }
}

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Models {
    /// Streams that were learned from.
    pub(crate) streams: usize,
    /// Nanoseconds that the yardstick took where they were measured.
    pub(crate) yardstick_ns: f64,
    pub(crate) costs: Vec<CostOf>,
    /// 80 % of the ratios of two predicted times are not further off than by this factor, on streams
    /// of kinds that were left out.
    pub(crate) ratio_error: f64,
    pub(crate) answerers: Vec<Answerer>,
    /// Least and most of each number that was seen.
    pub(crate) ranges: Vec<[f64; 2]>,
}

static MODELS_STORED: LazyLock<Result<Models, String>> = LazyLock::new(|| {
    let models: Models = serde_json::from_str(STORED).map_err(|error| error.to_string())?;
    match models.costs.iter().all(|cost| cost.ns.fits()) && models.ranges.len() == SEEN {
        true => Ok(models),
        false => Err("they are of another version".to_owned()),
    }
});

impl Models {
    /// Those of the repository.
    pub(crate) fn stored() -> Result<&'static Self, Error> {
        MODELS_STORED.as_ref().map_err(|why| Error::Models(why.clone()))
    }

    pub(crate) fn to_json(&self) -> Result<String, Error> {
        let mut text = serde_json::to_string_pretty(self).map_err(Error::Json)?;
        text.push('\n');
        Ok(text)
    }

    /// Nanoseconds of some work, if the engine was there to learn from.
    pub(crate) fn predict(&self, of: Contender, work: &Work) -> Option<f64> {
        let names = of.names();
        let cost = self.costs.iter().find(|cost| cost.of == names)?;
        Some(cost.ns.predict(work))
    }

    /// The answer to a question on what is seen, if it was asked before.
    pub(crate) fn answer(&self, question: Question, seen: &[f64; SEEN]) -> Option<Answer> {
        let Question { engine, against } = question;
        let mut answerers = self.answerers.iter();
        let found =
            answerers.find(|of| of.engine == engine.name() && of.against == against.name())?;
        Some(found.answer(seen))
    }

    /// Names of what is outside of what was learned from.
    pub(crate) fn outside(&self, features: &Features) -> Vec<&'static str> {
        // A little beyond the end is no other world.
        let outside = |value: f64, [least, most]: [f64; 2]| {
            let margin = 0.02 * (most - least) + 1e-6;
            value < least - margin || value > most + margin
        };
        let numbers = features.0.iter().zip(&self.ranges).enumerate();
        numbers
            .filter(|(_, (value, range))| outside(**value, **range))
            .map(|(at, _)| features::name(at))
            .collect()
    }
}

impl Answerer {
    /// What the classifiers say.
    pub(crate) fn answer(&self, seen: &[f64; SEEN]) -> Answer {
        let scores = self.classifiers.scores(seen);
        let mut each = [0.0; 3];
        for ((p, platt), score) in each.iter_mut().zip(&self.platt).zip(scores) {
            *p = platt.probability(score);
        }
        Answer { each }
    }
}
