// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show`: shows what reports and traces have, as text, a page, pictures or files.

mod against;
mod files;
mod live;
mod tables;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use self::against::Against;
use self::live::Live;
use self::tables::Tables;
use crate::error::Error;
use crate::experiment::Inputs;
use crate::results::Json;
use crate::traces::Placed;

/// Shows what reports and traces have: tables, pictures, a page, or files for other programs.
///
/// The tables show the counters of both queues that are not 0, the ranks, the worst first, the kinds
/// of traffic, search depths, and the reasons why elements were not in the table. A profile has the
/// mean, deviation, variance and quartiles of message sizes, and of the elements that searches on
/// the host traversed. Several runs of one command line have a line each. A report that is named
/// alone is shown as one rank.
///
/// With --by prints the number of elements in the longest PRQ and in the longest UMQ of all ranks,
/// at the moment when each was longest, and the number of all elements that entered the queues.
/// Communicators have numbers in the order of their first elements, with their ranks, if known, and
/// the id of the MPI; communicators without a rank in common may have the same id, and then count
/// as one. Peers are ranks if their traces are present. A phase ends with each collective operation
/// of MPI_COMM_WORLD that all ranks took part in; a warning is printed if the calls of an operation
/// cannot be distinguished.
///
/// --by thread prints the receives, messages, probes and cancels of each thread, the searches that
/// found an element, the entries that they compared (mean and largest number) and traversed on the
/// host. The thread that polls handles a message, or with automatic progress a thread of the
/// provider (device). Generated traces have no threads.
///
/// --format html writes one file for the screen and for print, with the pictures, the tables, the
/// configuration, and how to read them. The page begins with the answer, for the --ppn with which
/// `tcam answer` recorded the run unless another one is given; tables and pictures have all
/// messages. Reports without recordings have the need of a rank, and two bounds for that of a NIC.
///
/// --format plot writes pictures of the length of the longest queues over time (lengths), the
/// origin of their elements (fill), and the part of them in the table (occupancy). Others are
/// histograms of search depths (depths), reasons why elements were not in the table (blocks), and
/// maps of the entries compared and traversed on each rank (map, traversals). From traces there is
/// also the capacity curve (curve).
///
/// --format csv or parquet writes queues.csv, with a line for each rank and queue. kinds.csv has a
/// line for each kind of traffic as well. depths.csv has the buckets of histograms, lengths.csv the
/// samples of the lengths over time, and origin.csv the origin of the numbers. From traces
/// operations.csv has every operation with its recorded time since the run began (ns) and the depth
/// of its search. `number` counts receives as they were posted in their context, and messages as they arrived
/// there, from 0. A cancel has the number of the receive that it removed; a peek, claim, discard or
/// drop has that of the unexpected message that it found. `partner` is the message that a receive
/// matched, or the receive of a message. `traversed` is the number of elements that the host engine
/// passed. `source` and `destination` are the process's numbers of its peers, `source_rank` and
/// `destination_rank` their ranks. `thread` is the thread that did the operation, `device_thread`
/// marks a thread of the provider, and `cpu_ns` is the processor time that the thread had taken
/// (trace_sends=on). `bytes` is the length of a message, or of the buffer of a receive.
///
/// With --by, csv and parquet write by-WHAT.csv instead, with a line for each group.
///
/// From traces these formats also write the queue statistics that LogGOPSim's tools read. In
/// PREFIX-rq-hit.data, -rq-miss.data, -uq-hit.data and -uq-miss.data a rank has a line with
/// `depth,time` (ns) of each search. Searches of the PRQ (rq) or UMQ (uq) found something (hit) or
/// nothing (miss). -rq-max.data and -uq-max.data have the longest queue of each rank. With a shared
/// pool, depths are those of a separate table.
///
/// Pictures and files of several recordings are in directories DIR/1-NAME and so on.
#[derive(Debug, Args)]
#[command(mut_arg("names", |names| names.required(false).required_unless_present("live")))]
#[command(after_help = "Examples:
  tcam show reports
  tcam show reports/0.json
  tcam show --all --by tag tcam-trace
  tcam show --by peer --from 2.5 tcam-trace
  tcam show --against before --fail-above 10 after
  tcam show --format html --out page.html tcam-trace
  tcam show --format plot --out pictures tcam-trace
  tcam show --format parquet --out frames tcam-trace
  tcam show run-1 run-2 run-3
  tcam show --live")]
pub(crate) struct Show {
    #[command(flatten)]
    sources: Inputs,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    against: Against,

    /// Format of the output. Default: that of the ending of --out, .html or .json, otherwise text.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Output: a file for html and json, where - is standard output, and a directory for pictures,
    /// csv and parquet. Default: tcam-report.html, standard output for json, and tcam-FORMAT for a
    /// directory. Files of an earlier call that are not replaced stay there; a message names them.
    #[arg(long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    placed: Placed,

    /// With csv and parquet, prefix of the names of LogGOPSim's files, without a path.
    #[arg(long, value_name = "PREFIX", value_parser = name)]
    qstat: Option<String>,

    #[command(flatten)]
    live: Live,
}

/// Value of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// tables in the terminal
    Text,
    /// a page for the browser
    Html,
    /// files for a spreadsheet or pandas
    Csv,
    /// as csv: the same columns, typed, and much smaller for operations
    Parquet,
    /// the numbers of the tables
    Json,
    /// pictures as SVG and as PNG
    Plot,
    /// pictures as SVG
    Svg,
    /// pictures as PNG
    Png,
}

/// Checks that a prefix has no path; the files go to the directory of `--out`.
fn name(text: &str) -> Result<String, &'static str> {
    if text.contains('/') {
        return Err("a name without a path is expected; --out is where the files go");
    }
    Ok(text.to_owned())
}

/// Shows what the arguments ask for. Returns 0; or 3 if results are incomplete; or 1 if a number
/// grew by more than `--fail-above`, or if `--live --once` found no program.
pub(crate) fn show(arguments: &Show) -> Result<u8, Error> {
    let Show { sources, tables, against, out, json, placed, qstat, live, .. } = arguments;
    let format = arguments.format()?;
    if live.live {
        return live::watch(live);
    }
    let out = out.as_deref();
    let or = |default: &'static str| out.unwrap_or(Path::new(default));
    match format {
        Format::Text | Format::Json => {
            let json = if format == Format::Json { &Json::alone(or("-")) } else { json };
            match &against.against {
                Some(earlier) => against::show(earlier, sources, against.fail_above, json),
                None => tables::show(sources, tables, json),
            }
        }
        Format::Html => files::html(sources, placed, or("tcam-report.html")),
        Format::Csv | Format::Parquet => {
            let parquet = format == Format::Parquet;
            let out = or(if parquet { "tcam-parquet" } else { "tcam-csv" });
            if tables.by.is_some() {
                return files::groups(sources, tables, out, parquet);
            }
            files::numbers(sources, out, parquet, qstat.as_deref().unwrap_or("qstat"))
        }
        Format::Plot => files::pictures(sources, or("tcam-plot"), &["svg", "png"]),
        Format::Svg => files::pictures(sources, or("tcam-svg"), &["svg"]),
        Format::Png => files::pictures(sources, or("tcam-png"), &["png"]),
    }
}

impl Show {
    /// Returns the format. Fails if an option is given that this format does not have.
    fn format(&self) -> Result<Format, Error> {
        let ending = self.out.as_ref().and_then(|out| out.extension()?.to_str());
        let format = match (self.format, ending) {
            (Some(format), _) => format,
            (None, Some("html")) => Format::Html,
            (None, Some("json")) => Format::Json,
            (None, _) if self.out.is_some() => {
                fail!("--out: give the --format, too: html, csv, parquet, json, plot, svg or png")
            }
            (None, _) => Format::Text,
        };
        let Self { sources, tables, against, json, placed, qstat, .. } = self;
        let take = &sources.take;
        let is_live = self.live.live;
        let for_text = ("without --format", [Format::Text, Format::Json].contains(&format));
        let for_html = ("with --format html", format == Format::Html);
        let is_numbers = [Format::Csv, Format::Parquet].contains(&format);
        let for_numbers = ("with --format csv or parquet", is_numbers && tables.by.is_none());
        let for_groups = ("without --format, or with csv or parquet", for_text.1 || is_numbers);
        let always = ("without --live", true);
        if tables.by.is_some() && (placed.ppn.is_some() || placed.placement.is_some()) {
            fail!(
                "--ppn, --placement: --by has the queues of ranks, and no queues of a NIC; without \
                 --by, --format html has the need of a NIC, and so does `tcam answer`"
            );
        }
        for (option, given, (only, fits)) in [
            ("DIR|FILE", !sources.names.is_empty(), always),
            ("--format", self.format.is_some(), always),
            ("--cut-off", take.cut_off, always),
            ("--partial", take.partial, always),
            ("--all", tables.all, ("without --against", against.against.is_none())),
            ("--all", tables.all, for_text),
            ("--by", tables.by.is_some(), for_groups),
            ("--against", against.against.is_some(), for_text),
            ("--json", json.is_given(), ("without --format", format == Format::Text)),
            ("--ppn", placed.ppn.is_some(), for_html),
            ("--placement", placed.placement.is_some(), for_html),
            ("--qstat", qstat.is_some(), for_numbers),
            ("--out", self.out.is_some(), ("with another --format", format != Format::Text)),
        ] {
            if given && is_live {
                fail!("{option}: goes only without --live");
            }
            if given && !fits {
                fail!("{option}: goes only {only}");
            }
        }
        Ok(format)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        show: Show,
    }

    fn format(words: &str) -> Result<Format, String> {
        let line = Line::try_parse_from(["show"].into_iter().chain(words.split(' ')));
        line.map_err(|error| error.to_string())?.show.format().map_err(|error| error.to_string())
    }

    #[test]
    fn the_format_is_given_or_that_of_the_ending() {
        for (words, expected) in [
            ("x", Format::Text),
            ("x --out y.html", Format::Html),
            ("x --out y.json", Format::Json),
            ("x --out y.html --format csv", Format::Csv),
            ("x --format plot --out y", Format::Plot),
            ("x --against y --fail-above 3", Format::Text),
            ("x --ppn 4 --format html", Format::Html),
            ("x --by tag --format csv", Format::Csv),
        ] {
            assert_eq!(format(words), Ok(expected), "{words}");
        }
        for (words, told) in [
            ("x --out y", "--out: give the --format"),
            ("x --ppn 4", "--ppn: goes only with --format html"),
            ("x --qstat q --format html", "--qstat: goes only with --format csv or parquet"),
            ("x --by tag --format html", "--by: goes only without --format, or with csv"),
            ("x --by tag --ppn 4", "--by has the queues of ranks, and no queues of a NIC"),
            ("x --format text --out y", "--out: goes only with another --format"),
            ("x --json y --format json", "--json: goes only without --format"),
            ("x --fail-above 3", "--against"),
            ("x --once", "--live"),
            ("x --live", "DIR|FILE: goes only without --live"),
            ("x --all --against y", "--all: goes only without --against"),
            ("--live --partial", "--partial: goes only without --live"),
            ("--live --by tag", "--by: goes only without --live"),
            ("--all", "required"),
        ] {
            let error = format(words).expect_err(words);
            assert!(error.contains(told), "{words}: {error}");
        }
    }

    #[test]
    fn prefixes_are_no_paths() {
        assert_eq!(name("qstat").as_deref(), Ok("qstat"));
        for path in ["../evil", "/tmp/evil", "evil/"] {
            assert!(name(path).is_err(), "{path}");
        }
    }
}
