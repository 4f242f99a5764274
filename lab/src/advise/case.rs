// SPDX-License-Identifier: BSD-2-Clause
//! A program with some tables, and the advice for it.

use super::advice::Advice;
use super::contender::Contender;
use super::models::Models;
use super::program::{self, Run};
use super::stream::Yardstick;
use crate::error::Error;
use crate::settings::Settings;
use crate::traces::files::Found;

/// A program with some tables.
pub(crate) struct Case {
    pub(crate) entries: [u64; 2],
    pub(crate) current: Contender,
    pub(crate) runs: Vec<Run>,
    pub(crate) advice: Option<Advice>,
}

impl Case {
    pub(crate) fn of(
        found: &[Found],
        settings: &Settings,
        yardstick: Option<&Yardstick>,
        models: &Models,
    ) -> Result<Self, Error> {
        let mut runs = Vec::with_capacity(found.len());
        for found in found {
            let mut run = Run::of(found, settings)?;
            if let Some(yardstick) = yardstick {
                run.measure(found, settings, yardstick)?;
            }
            runs.push(run);
        }
        let params = found[0][0].params(settings)?;
        let entries = ["prq_entries", "umq_entries"].map(|name| params.number(name) as u64);
        let current = program::current(&found[0], settings)?;
        let advice = Advice::of(&runs, current, models);
        Ok(Self { entries, current, runs, advice })
    }

    /// Longest PRQ and UMQ of all runs.
    pub(crate) fn marks(&self) -> [u64; 2] {
        [0, 1].map(|queue| self.runs.iter().map(|run| run.need.longest()[queue]).max().unwrap_or(0))
    }

    /// A size of both tables that holds what was seen and as much more as it varied.
    pub(crate) fn recommended(&self) -> u64 {
        let of_queue = |queue: usize| {
            let marks = || self.runs.iter().map(|run| run.need.longest()[queue]);
            let (least, most) = (marks().min().unwrap_or(0), marks().max().unwrap_or(0));
            most + (most - least)
        };
        of_queue(0).max(of_queue(1)).max(1).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use matching::{HostEngine, Queue};

    use super::super::words;
    use super::*;
    use crate::commands::workload::tests::write_pattern;
    use crate::traces::files;
    use crate::traces::take::Take;
    use crate::workload::pattern::Pattern;

    fn case(pattern: Pattern, ranks: u32, settings: &[(&str, &str)]) -> Case {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("traces");
        write_pattern(pattern, ranks, 4, &out);
        let found = [files::find(&[out], Take::default()).unwrap()];
        let mut all = Settings::default();
        settings.iter().for_each(|(name, value)| all.set(name, value));
        Case::of(&found, &all, None, Models::stored().unwrap()).unwrap()
    }

    const NO_TABLES: [(&str, &str); 2] = [("prq_entries", "0"), ("umq_entries", "0")];

    #[test]
    fn no_engine_matters_where_nothing_leaves_the_tables() {
        let case = case(Pattern::Shuffle, 2, &[]);
        assert!(case.advice.is_none());
        assert_eq!((case.marks(), case.recommended()), ([1024, 0], 1024));
        let sentence = words::sentence(&case.runs, None);
        assert_eq!(sentence, "any engine: nothing leaves the tables");
    }

    #[test]
    fn a_long_list_is_left_for_a_faster_engine() {
        let list = [("host_engine", "list"), ("queue", "linked")];
        let case = case(Pattern::Shuffle, 2, &[NO_TABLES, list].concat());
        let advice = case.advice.unwrap();
        assert_eq!(case.current, Contender { engine: HostEngine::List, queue: Queue::Linked });
        assert!(!advice.keeps() && advice.saves[0] > 0.5, "{advice:?}");
        assert!(advice.confidence > 0.5, "{advice:?}");
        let sentence = words::sentence(&case.runs, Some(&advice));
        assert!(
            sentence.contains(": no wildcard in 1 run, 95th percentile of a list "),
            "{sentence}"
        );
        assert!(sentence.contains(" % less matching time than list, linked"), "{sentence}");
    }

    #[test]
    fn hash_is_not_for_programs_with_wildcards() {
        let list = [("host_engine", "list"), ("queue", "linked")];
        for ranks in [64, 512] {
            let case = case(Pattern::Manager, ranks, &[NO_TABLES, list].concat());
            let advice = case.advice.unwrap();
            assert_ne!(advice.advised.engine, HostEngine::Hash);
            let told = words::doubts(&case.runs, &advice).join("\n");
            assert_eq!(told.contains("hash is predicted to be faster"), advice.forbidden.is_some());
            let wildcards = words::wildcards(&case.runs);
            assert_eq!(wildcards, "100.0 % of the receives in 1 run have a wildcard");
        }
    }
}
