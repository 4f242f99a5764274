// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show --live`: shows the counters of running programs, as rates, in the terminal.
//!
//! ```text
//! read the counters in /dev/shm, wait, read them again
//! rate = growth of a counter / time between the endpoint's two updates
//! ```

mod view;

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use rustix::termios::tcgetwinsize;

use crate::error::Error;
use crate::launch::{Id, Job, RunningEndpoint, endpoints};
use crate::options::number;
use crate::text::output;

/// Width of the table, in characters, if the output is no terminal.
const COLUMNS: usize = 120;
/// Number of lines of the view that show no endpoint, and the line below the view.
const OTHER_LINES: usize = 5;

/// Counters of running programs.
#[derive(Debug, Args)]
pub(crate) struct Live {
    /// Shows the counters of running programs until Ctrl-C, with a line for each endpoint of this
    /// user on this host: receives posted, messages, unexpected messages (unexp/s), matches in the
    /// table and on the host, and spills, all per second; then the elements in the table + on the
    /// host now (PRQ, UMQ), and the largest number since the start (mark). The counters are those
    /// of tagged messages, or of untagged messages if no tagged ones came. They are updated every
    /// 50 ms while a process waits for messages; the rates of a process that calls no MPI are
    /// shown as -. A narrow terminal shows fewer columns.
    #[arg(long)]
    pub(super) live: bool,

    /// With --live, seconds between two tables.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, requires = "live", allow_negative_numbers = true,
        value_parser = number(0.05..=3600.0, "a number from 0.05 to 3600 is expected"))]
    interval: f64,

    /// With --live, exits after N tables.
    #[arg(long, value_name = "N", requires = "live", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// With --live, shows only endpoints of one job: one `tcam run`, one run of a sweep, or all
    /// ranks that write their reports to one FI_TCAM_REPORT. If several jobs run, they are listed
    /// by four hexadecimal digits; 0000 stands for processes that write no reports.
    #[arg(long, value_name = "JOB", requires = "live", allow_hyphen_values = true)]
    job: Option<Job>,

    /// With --live, prints one table after one interval, and exits; with 1 if no program runs.
    #[arg(long, requires = "live", conflicts_with = "count")]
    once: bool,
}

/// Shows tables until Ctrl-C, up to `--count`, or until standard output fails. Returns 1 if
/// `--once` found no program, otherwise 0.
pub(super) fn watch(arguments: &Live) -> Result<u8, Error> {
    let count = if arguments.once { Some(1) } else { arguments.count };
    let all = || -> Result<Vec<RunningEndpoint>, Error> {
        let mut all = endpoints::all()?;
        all.retain(|of| arguments.job.is_none_or(|job| of.job() == Some(job)));
        Ok(all)
    };
    let none = match arguments.job {
        None => "No program of this user runs over tcam on this host".to_owned(),
        Some(job) => format!("No endpoint of job {job} of this user runs on this host"),
    };
    let mut before = all()?;
    let mut waits = false;
    let mut tables = 0;
    while count.is_none_or(|count| tables < count) {
        if before.is_empty() {
            if arguments.once {
                println!("{none}.");
                return Ok(1);
            }
            if !std::mem::replace(&mut waits, true) {
                println!("{none}; waiting.");
            }
        }
        std::thread::sleep(Duration::from_secs_f64(arguments.interval));
        let now = all()?;
        if !now.is_empty() {
            waits = false;
            tables += 1;
            show(&before, &now);
            if output::failed().is_some() {
                return Ok(0);
            }
        }
        before = now;
    }
    Ok(0)
}

fn show(before: &[RunningEndpoint], now: &[RunningEndpoint]) {
    let before: HashMap<Id, &RunningEndpoint> = before.iter().map(|of| (of.id(), of)).collect();
    let out = io::stdout();
    let size = if out.is_terminal() { tcgetwinsize(&out).ok() } else { None };
    // Some terminals report a size of 0.
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let columns = size.map_or(COLUMNS, |size| usize::from(size.ws_col));
    let lines =
        size.map_or(usize::MAX, |size| usize::from(size.ws_row).saturating_sub(OTHER_LINES).max(1));
    let text = view::table(&before, now, columns, lines);
    if out.is_terminal() {
        output::out_alone(format_args!("{text}"));
    } else {
        print!("{text}");
    }
}
