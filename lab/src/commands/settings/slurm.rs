// SPDX-License-Identifier: BSD-2-Clause
//! The list entries that Slurm gives to a step, by reading of Slurm 284c3b9 (`setup_nic.c:270-295`)
//! and of shs-cxi-driver 9ce667e (`cass_svc.c:296-311`, `cass_rgroup.c:115-124`).
//!
//! ```text
//! each step makes a service on each NIC, whose limits hold for each engine:
//!   most     = min(max_les, 16384)
//!   reserved = min(res_les, or def_les * depth, or def_les * processors of the step; most)
//!   a step may use min(most, reserved + what no service has reserved)
//! a NIC has 16 pools of list entries; one is shared by the services that reserve none
//! ```

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::capacity::list_entries::ENTRIES;
use crate::error::Error;
use crate::text::{count, whole};

/// Pools for services that reserve list entries.
const POOLS: u64 = 15;

/// The options for Slurm.
#[derive(Clone, Debug, Args)]
pub(super) struct OfSlurm {
    /// Slurm's configuration (slurm.conf), or a job script with `--network=`: def_les, res_les,
    /// max_les and depth of FILE decide how many list entries a job may use.
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,

    /// Processors of the job on a node. Default: those of the nodes in the FILE of --site.
    #[arg(long, value_name = "N", requires = "site")]
    cpus: Option<NonZeroU32>,

    /// Steps of Slurm that run on a node at the same time, all with these limits.
    #[arg(long, value_name = "N", requires = "site", default_value = "1")]
    steps: NonZeroU32,
}

/// Numbers of list entries of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Limits {
    /// The file that has the limits.
    file: String,
    /// Processors of a step on a node, or the depth that stands for them; `None` if they do not
    /// count.
    cpus: Option<u64>,
    steps: u64,
    /// Entries that each step reserves.
    pub(super) reserved: u64,
    /// Entries that a step may use if no other one needs them.
    most: u64,
    /// Entries that no step has reserved.
    shared: u64,
    /// The file names other files, which are not read.
    includes: bool,
}

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Site {
    def_les: Option<u64>,
    res_les: Option<u64>,
    max_les: Option<u64>,
    depth: Option<u64>,
    /// Numbers of processors of nodes.
    cpus: BTreeSet<u64>,
    /// It names other files, which are not read.
    includes: bool,
}

/// Returns the parameters for a switch in a line: those of `SwitchParameters=` in slurm.conf, where
/// capital letters do not matter, and of `--network` of sbatch and srun.
fn of_switch(line: &str) -> Vec<(&str, &str)> {
    let (mut words, mut all) = (line.split_whitespace(), Vec::new());
    while let Some(word) = words.next() {
        let list = match word.split_once('=') {
            Some((name, list)) if name.eq_ignore_ascii_case("SwitchParameters") => Some(list),
            Some(("--network", list)) => Some(list),
            None if word == "--network" => words.next(),
            _ => None,
        };
        let parameters = list.unwrap_or("").trim_matches(['"', '\'']).split(',');
        all.extend(parameters.filter_map(|parameter| parameter.split_once('=')));
    }
    all
}

/// Returns the lines of a text without comments, each with its number. Options of `sbatch` are not
/// comments. Lines that a backslash joins are one line.
fn lines(text: &str) -> Vec<(usize, String)> {
    let (mut lines, mut goes_on) = (Vec::<(usize, String)>::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        let is_of_sbatch = line.trim_start().starts_with("#SBATCH");
        let line = if is_of_sbatch { line } else { line.split('#').next().unwrap_or("") };
        let part = line.strip_suffix('\\');
        let text = part.unwrap_or(line);
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, last)) => last.push_str(text.trim_start()),
            None => lines.push((number, text.to_owned())),
        }
        goes_on = part.is_some();
    }
    // Slurm accepts blanks around an equals sign in its configuration.
    for (_, line) in lines.iter_mut().filter(|(_, line)| !line.contains("--network")) {
        *line = line.split('=').map(str::trim).collect::<Vec<_>>().join("=");
    }
    lines
}

impl Site {
    /// Reads a file. The last value of a limit counts.
    fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        let (mut site, mut default_cpus) = (Self::default(), None);
        for (number, line) in lines(&text) {
            let parse = |name: &str, value: &str| {
                value.parse::<u64>().map_err(|_| {
                    let place = format!("{}: line {number}", path.display());
                    message!("{place}: {name}={value}: a whole number is expected")
                })
            };
            for (name, value) in of_switch(&line) {
                let limit = match name.to_ascii_lowercase().as_str() {
                    "def_les" => &mut site.def_les,
                    "res_les" => &mut site.res_les,
                    "max_les" => &mut site.max_les,
                    "depth" => &mut site.depth,
                    _ => continue,
                };
                *limit = Some(parse(name, value)?);
            }
            let of = |name: &str| {
                let mut words = line.split_whitespace().filter_map(|word| word.split_once('='));
                words.find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            };
            site.includes |= line
                .split_whitespace()
                .next()
                .is_some_and(|first| first.eq_ignore_ascii_case("Include"));
            let Some(node) = of("NodeName") else { continue };
            // The sockets of all boards, or those of each board.
            let sockets: &[_] =
                if of("Sockets").is_some() { &["Sockets"] } else { &["Boards", "SocketsPerBoard"] };
            let mut product = None;
            for name in sockets.iter().chain(&["CoresPerSocket", "ThreadsPerCore"]) {
                if let Some(value) = of(name) {
                    product = Some(parse(name, value)?.saturating_mul(product.unwrap_or(1)));
                }
            }
            let cpus = of("CPUs").map(|value| parse("CPUs", value)).transpose()?.or(product);
            if node.eq_ignore_ascii_case("DEFAULT") {
                default_cpus = cpus.or(default_cpus);
                continue;
            }
            site.cpus.extend(cpus.or(default_cpus));
        }
        Ok(site)
    }

    /// Returns the limits of one of `steps` steps with this number of processors.
    fn limits(&self, file: String, cpus: Option<u64>, steps: u64) -> Limits {
        // The defaults of Slurm (slurm.conf).
        let (def_les, max_les) = (self.def_les.unwrap_or(16), self.max_les.unwrap_or(ENTRIES));
        let most = max_les.min(ENTRIES);
        // Slurm takes 0 for a limit, or a depth, that is not set.
        let is_set = |number: &u64| *number > 0;
        let res_les = self.res_les.filter(is_set);
        let cpus = self.depth.filter(is_set).or(cpus).filter(|_| res_les.is_none());
        let of_cpus = def_les.saturating_mul(cpus.unwrap_or(1));
        let reserved = res_les.unwrap_or(of_cpus).min(most);
        let shared = ENTRIES.saturating_sub(steps.saturating_mul(reserved));
        Limits { file, cpus, steps, reserved, most, shared, includes: self.includes }
    }
}

impl OfSlurm {
    /// Fails if a file is given, for a NIC whose list entries Slurm does not limit.
    pub(super) fn refuse(&self) -> Result<Option<Limits>, Error> {
        match &self.site {
            None => Ok(None),
            Some(_) => fail!("--site: Slurm has limits for --nic cxi only; leave it out"),
        }
    }

    /// Returns the limits of a step, or `None` without a file.
    pub(super) fn limits(&self) -> Result<Option<Limits>, Error> {
        let Some(path) = &self.site else { return Ok(None) };
        let site = Site::read(path)?;
        let known: Vec<_> = site.cpus.iter().copied().collect();
        let cpus = match (self.cpus, known.as_slice()) {
            (Some(cpus), _) => Some(cpus.get().into()),
            (None, [cpus]) => Some(*cpus),
            (None, _) if site.res_les.max(site.depth) > Some(0) => None,
            (None, []) => fail!(
                "--site {}: no NodeName with CPUs: give the processors of a step on a node with --cpus",
                path.display()
            ),
            (None, [least, .., most]) => fail!(
                "--site {}: nodes with {least} to {most} processors: choose with --cpus",
                path.display()
            ),
        };
        Ok(Some(site.limits(path.display().to_string(), cpus, self.steps.get().into())))
    }
}

impl Limits {
    /// Returns the entries of an engine that a step has for itself if the others use all that they
    /// may.
    pub(super) fn available(&self) -> u64 {
        self.most.min(self.reserved + self.shared)
    }

    /// Returns sentences on the limits, for a job that needs `buffers` entries of an engine reserved.
    pub(super) fn notes(&self, buffers: Option<u64>) -> Vec<String> {
        let Self { file, cpus, steps, reserved, most, shared, includes } = self;
        let of_cpus =
            cpus.map_or_else(String::new, |cpus| format!(" for its {}", count(cpus, "processor")));
        let mut notes = vec![format!(
            "Slurm ({file}): a step reserves {} list entries on each engine{of_cpus}, and may use {}",
            whole(*reserved),
            whole(*most)
        )];
        if *steps > 1 {
            let all = steps.saturating_mul(*reserved);
            notes.push(match ENTRIES.checked_div(*reserved) {
                Some(fit) if fit < *steps => format!(
                    "Slurm: {} would reserve {} of {} entries of an engine: step {} fails",
                    count(*steps, "step"),
                    whole(all),
                    whole(ENTRIES),
                    whole(fit + 1)
                ),
                _ => format!(
                    "Slurm: {} reserve {} of {} entries of an engine, and {} are left to share",
                    count(*steps, "step"),
                    whole(all),
                    whole(ENTRIES),
                    whole(*shared)
                ),
            });
        }
        if *steps > POOLS && *reserved > 0 {
            notes.push(format!(
                "Slurm: step {} of a node that reserves list entries fails, because a NIC has {POOLS} pools \
                 for them",
                POOLS + 1
            ));
        }
        if let Some(buffers) = buffers {
            let advice = match (buffers <= *reserved, buffers <= *most, cpus) {
                (true, ..) => String::new(),
                (_, false, _) => format!(": max_les must be {} or more", whole(buffers)),
                (.., Some(cpus)) => {
                    format!(": def_les must be {} or more", buffers.div_ceil(*cpus))
                }
                (.., None) => format!(": res_les must be {} or more", whole(buffers)),
            };
            notes.push(format!(
                "Slurm: the buffers of mode hybrid need {} reserved entries on each engine, and {} are \
                 reserved{advice}",
                whole(buffers),
                whole(*reserved)
            ));
        }
        if *includes {
            notes.push(format!("The files that {file} includes are not read"));
        }
        notes.push("Entries that system services reserve are not in this file".to_owned());
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Site, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("slurm.conf");
        std::fs::write(&path, text).unwrap();
        Site::read(&path).map_err(|error| error.to_string().replace(path.to_str().unwrap(), "F"))
    }

    #[test]
    fn limits_and_processors_are_read() {
        let text = "SwitchType=switch/hpe_slingshot # def_les=1\n\
                    switchparameters=vnis=1-9,\\\n  def_LES=32,max_les=8192\n\
                    NodeName=DEFAULT CPUs=4\ninclude other.conf\n\
                    NodeName=n[1-9] Sockets=2 CoresPerSocket=32 ThreadsPerCore=2\n\
                    NodeName=m CPUs=64 Sockets=2\n";
        let (def_les, max_les) = (Some(32), Some(8192));
        let cpus = [64, 128].into();
        assert_eq!(
            read(text),
            Ok(Site { def_les, max_les, cpus, includes: true, ..Site::default() })
        );
        let nodes = "NodeName = a CPUs = 8\nNodeName=DEFAULT Boards=2 SocketsPerBoard=3 \\\n CoresPerSocket=5\n\
                     NodeName=b\nNodeName=c Boards=2 Sockets=4 CoresPerSocket=5\n";
        assert_eq!(read(nodes).unwrap().cpus, [8, 20, 30].into());
        let script =
            "#SBATCH --network=res_les=4096,def_tles=3\nsrun --network='def_les=8' ./app\n";
        let script = read(script).unwrap();
        assert_eq!([script.res_les, script.def_les, script.max_les], [Some(4096), Some(8), None]);
        assert_eq!(read("\n"), Ok(Site::default()));
        let error = read("\nSwitchParameters=def_les=16k,max_les=2").unwrap_err();
        assert_eq!(error, "F: line 2: def_les=16k: a whole number is expected");
        assert!(read("NodeName=a \\\n CPUs=x").unwrap_err().starts_with("F: line 1: CPUs=x"));
    }

    fn limits(site: &Site, cpus: u64, steps: u64) -> Limits {
        site.limits("F".to_owned(), Some(cpus), steps)
    }

    #[test]
    fn a_step_has_what_it_reserves_and_what_nobody_does() {
        let of = |site: &Site, cpus, steps| {
            let limits = limits(site, cpus, steps);
            [limits.reserved, limits.shared, limits.available()]
        };
        let plain = Site::default();
        assert_eq!(of(&plain, 128, 1), [2_048, 14_336, 16_384]);
        assert_eq!(of(&plain, 128, 8), [2_048, 0, 2_048]);
        assert_eq!(of(&plain, 2_000, 1), [16_384, 0, 16_384]);
        let few = Site { max_les: Some(1_000), ..Site::default() };
        assert_eq!(of(&few, 128, 2), [1_000, 14_384, 1_000]);
        let fixed = Site { res_les: Some(100), def_les: Some(9), ..Site::default() };
        assert_eq!(of(&fixed, 128, 100), [100, 6_384, 6_484]);
        assert_eq!(of(&Site { res_les: Some(0), ..fixed }, 10, 1)[0], 90);
        let deep = Site { depth: Some(4), ..Site::default() };
        assert_eq!(
            [of(&deep, 128, 1)[0], of(&Site { depth: Some(0), ..deep }, 128, 1)[0]],
            [64, 2_048]
        );
    }

    #[test]
    fn notes_say_what_is_missing() {
        let plain = Site::default();
        let notes = |limits: Limits, buffers| limits.notes(buffers).join("; ");
        let enough = notes(limits(&plain, 128, 8), Some(288));
        assert!(
            enough.contains("reserves 2,048 list entries on each engine for its 128 processors"),
            "{enough}"
        );
        assert!(
            enough
                .contains("8 steps reserve 16,384 of 16,384 entries of an engine, and 0 are left"),
            "{enough}"
        );
        assert!(
            enough.contains("need 288 reserved entries on each engine, and 2,048 are reserved;"),
            "{enough}"
        );
        assert!(!enough.contains("pools") && !enough.contains("fails"), "{enough}");
        let many = notes(limits(&plain, 128, 16), None);
        assert!(many.contains("step 9 fails") && many.contains("step 16 of a node"), "{many}");
        let few = notes(limits(&plain, 10, 1), Some(288));
        assert!(few.contains("160 are reserved: def_les must be 29 or more"), "{few}");
        let fixed = Site { res_les: Some(100), ..Site::default() };
        assert!(notes(limits(&fixed, 10, 1), Some(288)).contains("res_les must be 288 or more"));
        let most = Site { max_les: Some(100), ..Site::default() };
        assert!(notes(limits(&most, 10, 1), Some(288)).contains("max_les must be 288 or more"));
        let none = Site { def_les: Some(0), ..Site::default() };
        let none = notes(limits(&none, 10, 20), None);
        assert!(none.contains("20 steps reserve 0 of 16,384") && !none.contains("fails"), "{none}");
    }
}
