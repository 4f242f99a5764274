// SPDX-License-Identifier: BSD-2-Clause
//! `tcam report`: writes an experiment as one page of HTML.

use std::path::PathBuf;

use clap::Args;

use crate::error::Error;
use crate::experiment::{Experiment, Inputs, Keep, page, repeated};
use crate::file;
use crate::traces::Placed;

/// Writes an experiment as one page of HTML.
///
/// The page has the pictures of `tcam plot`, the tables of `tcam stats`, the configuration, and how
/// to read them. It is one file that needs no other, for the screen and for print. It begins with
/// the answer, for the --ppn with which `tcam answer` recorded the run unless another one is given;
/// tables and pictures have all messages. Reports without recordings have the need of a rank, and
/// two bounds for that of a NIC.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam report reports
  tcam report tcam-trace --out report.html")]
pub(crate) struct ReportPage {
    #[command(flatten)]
    from: Inputs,

    #[command(flatten)]
    placed: Placed,

    /// Output file; - is standard output.
    #[arg(long, value_name = "FILE", default_value = "tcam-report.html")]
    out: PathBuf,
}

/// Writes the page. Returns 0, or 3 if results are incomplete.
pub(crate) fn report(arguments: &ReportPage) -> Result<u8, Error> {
    let is_output = arguments.out.as_os_str() == "-";
    if !is_output {
        file::check_page(&arguments.out)?;
    }
    let (experiments, page) = match repeated::apart(&arguments.from, Keep::Shown)? {
        Some(experiments) => {
            let page = page::of_several(&arguments.from, &experiments, &arguments.placed)?;
            (experiments, page)
        }
        None => {
            let experiment = Experiment::read(&arguments.from, Keep::Shown)?;
            let page = page::of(&experiment, &arguments.placed)?;
            (vec![experiment], page)
        }
    };
    if is_output {
        print!("{page}");
    } else {
        file::write(&arguments.out, page)?;
        println!("{}", arguments.out.display());
    }
    let codes = experiments.iter().map(|experiment| experiment.code(arguments.from.take));
    Ok(codes.max().unwrap_or(0))
}
