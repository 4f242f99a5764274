// SPDX-License-Identifier: BSD-2-Clause
//! Polling of channels and thresholds between them: what *Efficient Polling of Multiple Channels in
//! MPI* measures, through an MPI over two hosts, by `tests/apps/polling.c`.
//!
//! ```text
//! as often as there are seeds:
//!     for each policy of FI_TCAM_POLL in turn:   an empty poll by the peers met (Figure 1),
//!                                                latency near and far (2), discovery (4)
//!     for each channel in turn:                  latency and bandwidth (5), overlap (6)
//!
//! gain = 1 - time / time with `every` in the same round
//! ```
//!
//! Polls spin (`FI_TCAM_IDLE=spin`): who polls is root and the rank that it talks to, all others
//! sleep in the program, and what is timed is to find messages, not to wake up.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::case::Cases;
use super::through_mpi::Job;
use crate::error::Error;
use crate::launch::signals::Signals;
use crate::settings::Settings;
use crate::text::progress;

/// Name of the program, as its lines have it.
const PROGRAM: &str = "polling";

/// Looks into shared memory for one at the network (Figure 2).
const RATIOS: [u32; 8] = [1, 5, 10, 20, 50, 100, 200, 1000];
/// The history of messages (Figure 4).
pub(super) const HISTORIES: [u32; 9] = [2, 4, 8, 10, 12, 20, 50, 100, 200];
/// Messages of a burst; the paper has the last two.
pub(super) const BURSTS: [u32; 3] = [10, 100, 200];
/// Bytes of Figure 2.
pub(super) const BYTES: [u32; 2] = [4, 2048];
/// Peers met over the network (Figure 1).
pub(super) const PEERS: [u32; 6] = [0, 1, 2, 4, 8, 16];
/// Bytes of Figure 5.
pub(super) const SIZES: [u32; 12] =
    [4, 64, 512, 1024, 2048, 4096, 8192, 16_384, 65_536, 131_072, 262_144, 1_048_576];
/// Bytes of Figure 6, each with microseconds of computation.
pub(super) const OVERLAPS: [(u32, [u32; 5]); 2] =
    [(4, [1, 5, 10, 50, 100]), (131_072, [10, 50, 100, 500, 1000])];

/// Settings that leave a channel alone to be taken.
type Forced = &'static [(&'static str, &'static str)];

/// The channels of Figures 5 and 6: what forces them, and where the other rank is.
pub(super) const CHANNELS: [(&str, Forced, &str); 3] = [
    ("shared buffers", &[("kernel_copy", "off"), ("eager_size", "16384")], "near"),
    ("kernel copy", &[("eager_size", "0")], "near"),
    ("network", &[], "far"),
];

/// A run of the program, in every round.
struct Run {
    /// The policy or the channel.
    what: String,
    settings: Settings,
    words: Vec<String>,
}

/// Where a number belongs: figure, case, policy or channel.
type Key = [String; 3];

/// Numbers by round, in the order in which they first came.
#[derive(Default)]
struct Rounds(Vec<(Key, Vec<(u32, f64)>)>);

impl Rounds {
    fn put(&mut self, key: Key, round: u32, value: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push((round, value)),
            None => self.0.push((key, vec![(round, value)])),
        }
    }

    fn get(&self, [figure, case, what]: [&str; 3], round: u32) -> Option<f64> {
        let of = |key: &Key| key[0] == figure && key[1] == case && key[2] == what;
        let (_, values) = self.0.iter().find(|(key, _)| of(key))?;
        values.iter().find(|(of, _)| *of == round).map(|&(_, value)| value)
    }
}

/// A program with its launcher, checked: it has to have ranks on two hosts.
pub(super) fn job<'a>(
    words: &'a [OsString],
    provider: Option<&Path>,
    signals: &mut Signals,
) -> Result<Job<'a>, Error> {
    let job = Job::new(words, provider, PROGRAM, &[], signals)?;
    let job = job.ok_or(Error::NeedsHosts { near: 0, far: 0 })?;
    let place = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
    let text = job.output(signals, &settings(&[]), &[], place.path(), false)?;
    let [near, far] = [job.value(&text, "near")? as u32, job.value(&text, "far")? as u32];
    if near == 0 || far == 0 {
        return Err(Error::NeedsHosts { near, far });
    }
    Ok(job)
}

fn settings(more: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default();
    settings.set("idle", &"spin");
    for (name, value) in more {
        settings.set(name, value);
    }
    settings
}

/// A mode of the program with its numbers.
fn mode(name: &str, numbers: &[u32]) -> Vec<String> {
    [name.to_owned()].into_iter().chain(numbers.iter().map(u32::to_string)).collect()
}

/// All runs of a round.
fn runs() -> Vec<Run> {
    let (costs, latency) = (mode("cost", &PEERS), mode("latency", &BYTES));
    let bursts = mode("discovery", &BURSTS);
    // Ranks that look for orders find those that come over the network.
    let looks = |ratio: u32| mode("looks", &[ratio.max(50) + 1]);
    let policy = |what: String, ratio: u32, modes: &[&[String]]| Run {
        settings: settings(&[("poll", &what)]),
        words: [looks(ratio)]
            .into_iter()
            .chain(modes.iter().map(|words| words.to_vec()))
            .flatten()
            .collect(),
        what,
    };
    let mut all = vec![policy("every".to_owned(), 0, &[&costs, &latency, &bursts])];
    for ratio in RATIOS {
        let costs: &[String] = if ratio == 50 { &costs } else { &[] };
        all.push(policy(format!("static:{ratio}"), ratio, &[costs, &latency]));
    }
    for history in HISTORIES {
        let what = format!("dynamic:{history}");
        let more: &[&[String]] = if history == 10 { &[&costs, &latency] } else { &[] };
        all.push(policy(what, history, &[more, &[&bursts]].concat()));
    }
    all.push(policy("auto".to_owned(), 0, &[&costs, &latency, &bursts]));
    for (what, forced, place) in CHANNELS {
        let mut words = [looks(0), vec![place.to_owned()]].concat();
        words.extend(mode("latency", &SIZES));
        words.extend(mode("bandwidth", &SIZES));
        for (bytes, times) in OVERLAPS {
            words.extend(mode("overlap", &[&[bytes], &times[..]].concat()));
        }
        all.push(Run { what: what.to_owned(), settings: settings(forced), words });
    }
    all
}

/// Measures every policy and channel, in as many rounds.
pub(super) fn measure(job: &Job<'_>, rounds: u32, signals: &mut Signals) -> Result<Cases, Error> {
    let place = tempfile::tempdir().map_err(Error::io(std::env::temp_dir()))?;
    let runs = runs();
    let mut numbers = Rounds::default();
    for round in 0..rounds {
        // Each begins another one, as a machine is not the same all the time.
        let first = round as usize * runs.len() / rounds as usize;
        for run in runs[first..].iter().chain(&runs[..first]) {
            progress::step(&format!("{} through MPI, {} of {rounds}", run.what, round + 1));
            let words: Vec<_> = run.words.iter().map(String::as_str).collect();
            let text = job.output(signals, &run.settings, &words, place.path(), false)?;
            // That the program is the one that is needed.
            job.value(&text, "far")?;
            read(&text, &run.what, round, &mut numbers);
        }
    }
    Ok(cases(&numbers, rounds))
}

/// What a run printed.
fn read(text: &str, what: &str, round: u32, numbers: &mut Rounds) {
    let is_channel = CHANNELS.iter().any(|(name, ..)| *name == what);
    for line in text.lines().filter_map(|line| line.strip_prefix("polling mode=")) {
        let mut words = line.split_whitespace();
        let mode = words.next().unwrap_or_default();
        let fields: HashMap<_, _> = words.filter_map(|word| word.split_once('=')).collect();
        let text = |name: &str| fields.get(name).copied().unwrap_or_default();
        let number = |name: &str| text(name).parse::<f64>().unwrap_or(f64::NAN);
        let (bytes, near) = (text("bytes"), text("where"));
        let (figure, case, value) = match mode {
            "cost" => ("1", format!("{} peers", text("peers")), number("us")),
            "latency" if is_channel => ("5", format!("latency, {bytes} B"), number("us")),
            "latency" => ("2", format!("{bytes} B, {near}"), number("us")),
            "discovery" => ("4", format!("burst {}, {near}", text("burst")), number("us")),
            "bandwidth" => ("5", format!("bandwidth, {bytes} B"), number("mb_per_s")),
            "overlap" => (
                "6",
                format!("{bytes} B, {} us", text("asked")),
                number("compute_us") / number("us"),
            ),
            _ => continue,
        };
        numbers.put([figure.to_owned(), case, what.to_owned()], round, value);
    }
    for burst in BURSTS {
        let of = |place: &str| numbers.get(["4", &format!("burst {burst}, {place}"), what], round);
        if let (Some(near), Some(far)) = (of("near"), of("far")) {
            let case = format!("burst {burst}, both");
            numbers.put(["4".to_owned(), case, what.to_owned()], round, near.midpoint(far));
        }
    }
}

/// The gain that the paper's text has.
fn paper(case: &str, policy: &str) -> Option<f64> {
    match (case, policy) {
        ("4 B, near", "static:50") => Some(0.12),
        ("2048 B, near", "static:50") => Some(0.09),
        ("4 B, near", "static:1000") => Some(0.37),
        ("burst 200, both", "dynamic:8" | "dynamic:10") => Some(0.45),
        _ => None,
    }
}

/// Medians with ranges, and gains over `every` in the same round.
fn cases(numbers: &Rounds, rounds: u32) -> Cases {
    let mut cases = Cases::default();
    for ([figure, case, what], values) in &numbers.0 {
        let metric = match figure.as_str() {
            "5" if case.starts_with("bandwidth") => "MB/s",
            "6" => "ratio",
            _ => "us",
        };
        let at = |metric| [figure.as_str(), case.as_str(), what.as_str(), metric];
        cases.put(at(metric), None, values.iter().map(|&(_, value)| value).collect());
        if matches!(figure.as_str(), "2" | "4") && what != "every" {
            let gain = |round| {
                let of = |what| numbers.get([figure, case, what], round);
                Some(1.0 - of(what)? / of("every")?)
            };
            cases.put(at("gain"), paper(case, what), (0..rounds).filter_map(gain).collect());
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_program_are_read() {
        let mut numbers = Rounds::default();
        for (round, [every, dynamic]) in [[8.0, 4.0], [6.0, 6.0], [4.0, 3.0]].iter().enumerate() {
            for (what, near) in [("every", every), ("dynamic:10", dynamic)] {
                let text = format!(
                    "noise\npolling mode=cost peers=2 us=0.5\n\
                     polling mode=latency where=near bytes=4 us={near}\n\
                     polling mode=discovery where=near burst=200 us={near}\n\
                     polling mode=discovery where=far burst=200 us=12\n\
                     polling: ok ranks=3 near=1 far=1\n"
                );
                read(&text, what, round as u32, &mut numbers);
            }
        }
        read(
            "polling mode=overlap where=far bytes=4 asked=10 compute_us=10 us=12.5\n",
            "network",
            0,
            &mut numbers,
        );
        let cases = cases(&numbers, 3);
        let get = |at| cases.get(at).map(|case| (case.ours, case.lowest, case.highest));
        assert_eq!(get(["1", "2 peers", "every", "us"]), Some((0.5, 0.5, 0.5)));
        assert_eq!(get(["2", "4 B, near", "dynamic:10", "us"]), Some((4.0, 3.0, 6.0)));
        assert_eq!(get(["2", "4 B, near", "dynamic:10", "gain"]), Some((0.25, 0.0, 0.5)));
        assert_eq!(get(["4", "burst 200, both", "every", "us"]), Some((9.0, 8.0, 10.0)));
        assert_eq!(get(["6", "4 B, 10 us", "network", "ratio"]), Some((0.8, 0.8, 0.8)));
        let of = cases.get(["4", "burst 200, both", "dynamic:10", "gain"]);
        assert_eq!(of.and_then(|case| case.paper), Some(0.45));
    }

    #[test]
    fn every_policy_is_one_that_the_provider_takes() {
        for run in runs() {
            let policy = run.settings.get("poll");
            assert!(policy.is_none_or(|text| text.parse::<nic::polling::Polling>().is_ok()));
            assert!(run.words.iter().all(|word| !word.is_empty()));
        }
    }
}
