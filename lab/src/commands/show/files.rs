// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show --format`: writes an experiment to files: pictures, a page of HTML, or its numbers for
//! other programs.

use std::cell::Cell;
use std::path::Path;

use super::tables::{self, NO_PLACES, Tables, WITHOUT_PLACES};
use crate::error::Error;
use crate::experiment::{
    Experiment, Inputs, Keep, Material, export, figures, operations, page, repeated,
};
use crate::file;
use crate::results::{EarlierFiles, output_directory};
use crate::traces::Placed;

/// Writes the pictures to the directory `out`: as SVG, as PNG, or both, as `endings` has it. Returns
/// 0, or 3 if results are incomplete.
pub(super) fn pictures(from: &Inputs, out: &Path, endings: &[&str]) -> Result<u8, Error> {
    let expected = "there are several pictures: give a directory; --format says svg or png";
    file::check_kind(out, &[], expected)?;
    output_directory::check(out)?;
    repeated::write_each(from, Keep::Shown, out, |experiment, out| {
        let code = experiment.code(from.take);
        draw(experiment, out, endings)?;
        Ok(code)
    })
}

/// Draws the pictures of one experiment.
fn draw(experiment: &Experiment, out: &Path, endings: &[&str]) -> Result<(), Error> {
    let earlier = EarlierFiles::of(out, &figures::NAMES, &["svg", "png"]);
    let material = Material::of(experiment)?;
    let figures = figures::all(experiment, &material);
    let has_blocks = figures.iter().any(|figure| figure.name == "blocks");
    for figure in figures {
        for &ending in endings {
            let path = out.join(figure.name).with_extension(ending);
            match ending {
                "svg" => file::write(&path, figure.picture.svg()?)?,
                _ => figure.picture.png(&path)?,
            }
            println!("{}", path.display());
        }
    }
    if !has_blocks {
        eprintln!("Nothing spilled: there is no picture of why elements were not in the table.");
    }
    earlier.note("pictures");
    Ok(())
}

/// Writes the page of HTML to a file; `-` is standard output. Returns 0, or 3 if results are
/// incomplete.
pub(super) fn html(from: &Inputs, placed: &Placed, out: &Path) -> Result<u8, Error> {
    let is_output = out.as_os_str() == "-";
    if !is_output {
        file::check_page(out)?;
    }
    let (experiments, page) = match repeated::apart(from, Keep::Shown)? {
        Some(experiments) => {
            let page = page::of_several(from, &experiments, placed)?;
            (experiments, page)
        }
        None => {
            let experiment = Experiment::read(from, Keep::Shown)?;
            let page = page::of(&experiment, placed)?;
            (vec![experiment], page)
        }
    };
    if is_output {
        print!("{page}");
    } else {
        file::write(out, page)?;
        println!("{}", out.display());
    }
    Ok(experiments.iter().map(|experiment| experiment.code(from.take)).max().unwrap_or(0))
}

/// Writes the groups of `--by` to the directory `out`, as CSV or Parquet. Returns 0, or 3 if results
/// are incomplete.
pub(super) fn groups(
    from: &Inputs,
    tables: &Tables,
    out: &Path,
    parquet: bool,
) -> Result<u8, Error> {
    file::check_kind(out, &[], "give a directory; --format says csv or parquet")?;
    output_directory::check(out)?;
    let is_written = Cell::new(false);
    let code = repeated::write_each(from, Keep::Shown, out, |experiment, out| {
        if tables.has_groups(experiment) {
            is_written.set(true);
            tables::write_groups(experiment, tables, out, parquet)?;
        } else {
            eprintln!("{}: {WITHOUT_PLACES}", out.display());
        }
        Ok(experiment.code(from.take))
    })?;
    if !is_written.get() {
        fail!("{NO_PLACES}");
    }
    Ok(code)
}

/// Writes the numbers to the directory `out`, as CSV or Parquet; `qstat` is the prefix of the names
/// of LogGOPSim's files. Returns 0, or 3 if results are incomplete.
pub(super) fn numbers(from: &Inputs, out: &Path, parquet: bool, qstat: &str) -> Result<u8, Error> {
    let expected = "there are several files: give a directory; --format says csv or parquet";
    file::check_kind(out, &[], expected)?;
    output_directory::check(out)?;
    repeated::write_each(from, Keep::Lengths, out, |experiment, out| {
        let earlier = EarlierFiles::of(out, &export::NAMES, &["csv", "parquet"]);
        let names = operations::QSTAT.map(|name| format!("{qstat}-{name}"));
        let earlier_qstat = EarlierFiles::of(out, &names.each_ref().map(String::as_str), &["data"]);
        export::write(experiment, out, parquet)?;
        if !experiment.traces.is_empty() {
            operations::write(experiment, out, qstat, parquet)?;
        }
        earlier.note("files");
        earlier_qstat.note("files");
        Ok(experiment.code(from.take))
    })
}
