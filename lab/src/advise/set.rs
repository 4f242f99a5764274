// SPDX-License-Identifier: BSD-2-Clause
//! The training set: generated streams of every pattern, the work that each engine counts in them
//! and what it took, in two files of the repository.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use csv::StringRecord;
use matching::{HostEngine, Queue, TagLayout};

use super::contender::{Contender, Names};
use super::cost::{WORK, Work};
use super::features::{COMMON, Features};
use super::math::quantile;
use super::stream::{self, Measured, Stream, Yardstick};
use crate::error::Error;
use crate::file;
use crate::workload::flight::Flight;
use crate::workload::generate;
use crate::workload::pattern::Pattern;
use crate::workload::stream::Place;

/// Names of the files.
pub(crate) const SAMPLES: &str = "samples.csv";
pub(crate) const COSTS: &str = "costs.csv";
/// Operations of a stream at least, where its pattern has no longer steps.
const OPERATIONS: usize = 16_384;
/// Processes that measure: an odd number, so that one of them is in the middle.
const PROCESSES: usize = 5;
/// Entries of the smaller tables that a stream is also played to.
const ENTRIES: u32 = 32;

/// What an engine counted in a stream, and took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cost {
    pub(crate) of: Contender,
    pub(crate) ns: f64,
    pub(crate) work: Work,
}

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// What makes it again.
    pub(crate) name: String,
    /// Its pattern.
    pub(crate) kind: String,
    pub(crate) features: Features,
    pub(crate) costs: Vec<Cost>,
}

impl Sample {
    pub(crate) fn cost(&self, of: Contender) -> Option<&Cost> {
        self.costs.iter().find(|cost| cost.of == of)
    }
}

/// A stream before it is made.
struct Plan {
    pattern: Pattern,
    ranks: u32,
    flight: Flight,
    seed: u64,
    entries: u32,
}

/// Sizes of a pattern: ranks, or messages in flight and bytes of each.
fn sizes(pattern: Pattern) -> Vec<(u32, Flight)> {
    let usual = pattern.usual_flight();
    let of_ranks = |ranks: &[u32]| ranks.iter().map(|&ranks| (ranks, usual)).collect();
    let flights = |messages: &[u32], bytes: &[u64]| {
        let all = messages.iter().zip(bytes.iter().cycle());
        all.map(|(&messages, &bytes)| (2, Flight { messages, bytes })).collect()
    };
    match pattern {
        Pattern::Shuffle | Pattern::Burst | Pattern::Reverse => {
            flights(&[2, 8, 32, 128, 512, 2048], &[1, 8192, 256])
        }
        Pattern::Pingpong => {
            flights(&[0, 1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200], &[1, 64, 512, 8192, 1024])
        }
        Pattern::Fds | Pattern::Amg | Pattern::Nbody => of_ranks(&[8, 64, 256, 1024]),
        Pattern::Miniamr => of_ranks(&[16, 128, 512, 2048]),
        Pattern::Lammps | Pattern::Minimd | Pattern::Halo | Pattern::Radix | Pattern::Solver => {
            of_ranks(&[4, 8, 27, 64, 512])
        }
        _ => of_ranks(&[4, 16, 64, 512]),
    }
}

/// Two seeds of everything without tables, another one with small ones.
fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for &pattern in Pattern::value_variants() {
        for (ranks, flight) in sizes(pattern) {
            for (seed, entries) in [(1, 0), (2, 0), (3, ENTRIES)] {
                plans.push(Plan { pattern, ranks, flight, seed, entries });
            }
        }
    }
    plans
}

impl Plan {
    fn name(&self) -> String {
        let Self { pattern, ranks, flight, seed, entries } = self;
        let in_flight = match pattern.takes_messages() {
            true => format!(" --messages {} --bytes {}", flight.messages, flight.bytes),
            false => String::new(),
        };
        format!("{} --ranks {ranks}{in_flight} --seed {seed}; {entries} entries", pattern.name())
    }

    fn stream(&self) -> Result<Stream, Error> {
        let place = Place { rank: 0, ranks: self.ranks };
        let mut ops = Vec::new();
        for step in 0.. {
            let steps = step..step + 1;
            generate::generate(self.pattern, place, self.seed, steps, self.flight, |event| {
                ops.push(event.op);
            });
            // Of patterns that take turns there are always both.
            if ops.len() >= OPERATIONS && step % 2 == 1 {
                break;
            }
        }
        let entries = self.entries.to_string();
        let set = [("prq_entries", entries.as_str()), ("umq_entries", entries.as_str())];
        Ok(Stream::new(ops, TagLayout::Mpich, &generate::params(self.ranks, &set)?))
    }

    /// A sample, whose times are in yardsticks, and nanoseconds of one of these.
    fn measure(
        &self,
        contenders: &[Contender],
        yardstick: &Yardstick,
    ) -> Result<(Sample, f64), Error> {
        let streams = [self.stream()?];
        let Measured { times, yardstick_ns } = stream::measure(&streams, contenders, yardstick)?;
        let census = streams[0].census()?;
        let costs = contenders.iter().zip(times).map(|(&of, ns)| {
            let work = Work::of(&streams[0].count(of)?, &census);
            Ok(Cost { of, ns, work })
        });
        let list = Contender { engine: HostEngine::List, queue: Queue::Linked };
        let sample = Sample {
            name: self.name(),
            kind: self.pattern.name(),
            features: Features::of(&streams[0].count(list)?, &census),
            costs: costs.collect::<Result<_, Error>>()?,
        };
        Ok((sample, yardstick_ns))
    }
}

/// The set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Set {
    pub(crate) samples: Vec<Sample>,
    /// Nanoseconds that the yardstick takes on the machine where it was measured.
    pub(crate) yardstick_ns: f64,
}

/// Measures the whole set in several processes, one after the other: medians of what they found.
/// Where the kernel puts the pages of a process, and who else uses the caches at that time, makes
/// two of them differ by 5 % in the median and by 15 % in one stream of ten.
pub(crate) fn measure() -> Result<Set, Error> {
    let place = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
    let program = std::env::current_exe().map_err(Error::io(PathBuf::from("/proc/self/exe")))?;
    let mut sets = Vec::with_capacity(PROCESSES);
    for process in 1..=PROCESSES {
        eprintln!("process {process} of {PROCESSES}");
        let mut command = Command::new(&program);
        command.args(["advise", "--train", "--measure", "--in-one-process", "--out"]);
        let ending = command.arg(place.path()).status().map_err(Error::io(&program))?;
        if !ending.success() {
            return Err(Error::Io { path: program, error: io::Error::other(ending.to_string()) });
        }
        sets.push(read(place.path())?);
    }
    Ok(Set::median(&sets))
}

/// Measures the whole set here, one replay at a time.
pub(crate) fn measure_here() -> Result<Set, Error> {
    let (plans, contenders, yardstick) = (plans(), Contender::all(), Yardstick::new()?);
    let bar = generate::progress(plans.len() as u64);
    let measured = plans.iter().map(|plan| {
        bar.set_message(plan.name());
        let sample = plan.measure(&contenders, &yardstick);
        bar.inc(1);
        sample
    });
    let measured: Result<Vec<_>, Error> = measured.collect();
    bar.finish_and_clear();
    let (samples, yardsticks): (Vec<_>, Vec<_>) = measured?.into_iter().unzip();
    Ok(Set { samples, yardstick_ns: quantile(&yardsticks, 0.5).round() }.in_nanoseconds())
}

impl Set {
    fn in_nanoseconds(mut self) -> Self {
        for cost in self.samples.iter_mut().flat_map(|sample| &mut sample.costs) {
            cost.ns *= self.yardstick_ns;
        }
        self
    }

    /// Each time by the yardstick of its set, and of these the median. All have the same streams.
    fn median(sets: &[Self]) -> Self {
        let yardsticks: Vec<_> = sets.iter().map(|set| set.yardstick_ns).collect();
        let mut median = Self { yardstick_ns: quantile(&yardsticks, 0.5), ..sets[0].clone() };
        for (at, sample) in median.samples.iter_mut().enumerate() {
            for (which, cost) in sample.costs.iter_mut().enumerate() {
                let time = |set: &Self| set.samples[at].costs[which].ns / set.yardstick_ns;
                let times: Vec<_> = sets.iter().map(time).collect();
                cost.ns = quantile(&times, 0.5);
            }
        }
        median.in_nanoseconds()
    }
}

fn at(directory: &Path, name: &str) -> PathBuf {
    directory.join(name)
}

/// Writes the files.
pub(crate) fn write(directory: &Path, set: &Set) -> Result<(), Error> {
    let mut of_samples = csv::Writer::from_writer(Vec::new());
    let mut of_costs = csv::Writer::from_writer(Vec::new());
    let header = ["name", "kind", "yardstick_ns"].iter().chain(&COMMON);
    of_samples.write_record(header).map_err(Error::NoCsv)?;
    let header = ["name", "engine", "queue", "ns"].iter().chain(&WORK);
    of_costs.write_record(header).map_err(Error::NoCsv)?;
    for Sample { name, kind, features, costs } in &set.samples {
        let numbers = features.0.iter().map(ToString::to_string);
        let record =
            [name.clone(), kind.clone(), set.yardstick_ns.to_string()].into_iter().chain(numbers);
        of_samples.write_record(record).map_err(Error::NoCsv)?;
        for Cost { of, ns, work } in costs {
            let Names { engine, queue } = of.names();
            // Work is counted, but for a logarithm.
            let numbers = work.0.iter().map(|value| format!("{}", (value * 10.0).round() / 10.0));
            let record = [name.clone(), engine, queue, ns.round().to_string()];
            of_costs.write_record(record.into_iter().chain(numbers)).map_err(Error::NoCsv)?;
        }
    }
    for (name, csv) in [(SAMPLES, of_samples), (COSTS, of_costs)] {
        let bytes = csv.into_inner().map_err(|error| Error::NoCsv(error.into_error().into()))?;
        file::write(&at(directory, name), bytes)?;
    }
    Ok(())
}

/// Reads the files. Engines that are no more are left out.
pub(crate) fn read(directory: &Path) -> Result<Set, Error> {
    let text = |name| {
        let path = at(directory, name);
        host::regular::read_text(&path, file::LONGEST).map_err(Error::io(path))
    };
    let error = |name| {
        let path = at(directory, name);
        move |error| Error::Csv { path, error }
    };
    parse(&text(SAMPLES)?, &text(COSTS)?).map_err(error(SAMPLES))
}

/// Samples of the texts of both files.
pub(crate) fn parse(of_samples: &str, of_costs: &str) -> Result<Set, csv::Error> {
    let (mut samples, mut yardstick_ns) = (Vec::new(), 0.0);
    for record in csv::Reader::from_reader(of_samples.as_bytes()).into_records() {
        let ([name, kind], numbers) = divided(&record?)?;
        let (mut features, mut numbers) = (Features::default(), numbers.into_iter());
        yardstick_ns = numbers.next().unwrap_or(0.0);
        features.0.iter_mut().zip(numbers).for_each(|(feature, number)| *feature = number);
        samples.push(Sample { name, kind, features, costs: Vec::new() });
    }
    let mut last = 0;
    for record in csv::Reader::from_reader(of_costs.as_bytes()).into_records() {
        let ([name, engine, queue], numbers) = divided(&record?)?;
        let mut work = Work::default();
        let mut numbers = numbers.into_iter();
        let ns = numbers.next().unwrap_or(0.0);
        work.0.iter_mut().zip(numbers).for_each(|(work, number)| *work = number);
        let Some(of) = Contender::named(&Names { engine, queue }) else { continue };
        // They are in the order of the samples.
        last = (last..samples.len()).find(|at| samples[*at].name == name).unwrap_or(last);
        if let Some(sample) = samples.get_mut(last) {
            sample.costs.push(Cost { of, ns, work });
        }
    }
    Ok(Set { samples, yardstick_ns })
}

/// The words of a record and the numbers behind them.
fn divided<const N: usize>(record: &StringRecord) -> Result<([String; N], Vec<f64>), csv::Error> {
    let words: Vec<&str> = record.iter().take(N).collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default().to_owned();
    let numbers: StringRecord = record.iter().skip(N).collect();
    Ok((std::array::from_fn(word), numbers.deserialize(None)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let plan = Plan {
            pattern: Pattern::Cholesky,
            ranks: 4,
            flight: Pattern::Cholesky.usual_flight(),
            seed: 1,
            entries: 8,
        };
        let contenders = Contender::all();
        let (sample, yardstick_ns) =
            plan.measure(&contenders[..3], &Yardstick::new().unwrap()).unwrap();
        assert!(yardstick_ns > 0.0);
        let set = Set { samples: vec![sample], yardstick_ns: 1000.0 }.in_nanoseconds();
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &set).unwrap();
        let read = read(directory.path()).unwrap();
        let (sample, read_sample) = (&set.samples[0], &read.samples[0]);
        assert_eq!((read.yardstick_ns, read_sample.costs.len()), (1000.0, 3));
        assert_eq!((read_sample.features, &*read_sample.kind), (sample.features, "cholesky"));
        for (read, cost) in read_sample.costs.iter().zip(&sample.costs) {
            assert_eq!((read.of, read.ns), (cost.of, cost.ns.round()));
            assert!((read.work.0[10] - cost.work.0[10]).abs() < 0.1);
        }
    }

    #[test]
    fn a_process_that_was_slow_as_a_whole_or_once_changes_nothing() {
        let contenders = Contender::all();
        let set = |yardstick_ns: f64, times: [f64; 2]| {
            let cost = |(&of, ns): (&Contender, f64)| Cost {
                of,
                ns: ns * yardstick_ns,
                work: Work::default(),
            };
            let sample = Sample {
                name: String::new(),
                kind: String::new(),
                features: Features::default(),
                costs: contenders.iter().zip(times).map(cost).collect(),
            };
            Set { samples: vec![sample], yardstick_ns }
        };
        let sets = [set(100.0, [2.0, 3.0]), set(400.0, [2.0, 3.0]), set(200.0, [7.0, 1.0])];
        assert_eq!(Set::median(&sets), set(200.0, [2.0, 3.0]));
    }

    #[test]
    fn no_two_streams_are_the_same_and_every_pattern_is_there() {
        let mut names: Vec<_> = plans().iter().map(Plan::name).collect();
        let all = names.len();
        for pattern in Pattern::value_variants() {
            assert!(names.iter().any(|name| name.starts_with(&pattern.name())), "{pattern:?}");
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
