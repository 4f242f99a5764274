// SPDX-License-Identifier: BSD-2-Clause
//! The matching streams, measured in nanoseconds per pair (insert + match + remove).
//!
//! Every competitor runs every stream in this process, and every result is checked. `cargo bench -p
//! tcam-ternary-cam` prints one row per stream and depth, then instructions per pair. Options after
//! `--`:
//!
//! - `--only TEXT` runs the streams whose names contain the text.
//! - `--depths 1,4` uses other depths.
//! - `--competitors avx512,list` runs only these competitors.
//! - `--passes N` runs all streams N times and keeps the fastest results.
//! - `--ms N` is the time per competitor and row in a pass.
//! - `--report ../papers` writes the results to this directory (relative to the package).
//! - `--no-instructions` does not count instructions.

mod competitors;
mod instructions;
mod matcher;
mod measure;
mod report;
mod stream;

use std::time::Instant;

use measure::{Options, Row};
use report::Report;

fn main() {
    let options = match Options::from_args(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            std::process::exit(2);
        }
    };
    let names = stream::NAMES.iter().copied();
    let names: Vec<_> = names.filter(|name| name.contains(&options.only)).collect();
    if let Some(rounds) = options.rounds {
        for name in names.into_iter().filter(|name| *name == options.only) {
            for &depth in &options.depths {
                measure::run_only(&stream::make(name, depth), rounds);
            }
        }
        return;
    }

    let mut report = run_passes(&names, &options);
    if options.instructions {
        println!("\ninstructions per pair, at depths {:?}", instructions::DEPTHS);
        for name in names {
            match instructions::count(name) {
                Ok(counts) => {
                    println!("{name:<20}{:>8.0}{:>8.0}", counts[0], counts[1]);
                    report.add_instructions(name, counts);
                }
                Err(problem) => {
                    println!("SKIPPED: instructions could not be counted: {problem}");
                    break;
                }
            }
        }
    }
    if let Some(directory) = &options.report
        && let Err(error) = report.write(directory)
    {
        eprintln!("{}: {error}", directory.display());
        std::process::exit(1);
    }
}

/// Measures every row in each pass and keeps the fastest; the last pass prints the rows. A shared
/// machine may be busy for longer than a row takes, but seldom for a whole pass. Each pass starts
/// with another row, in case the machine is busy at regular times.
fn run_passes(names: &[&'static str], options: &Options) -> Report {
    let mut report = Report::default();
    let depths = &options.depths;
    let mut quickest: Vec<Option<Row>> = (0..names.len() * depths.len()).map(|_| None).collect();
    println!("ns per pair (in miss, the search alone); ratios to the table with the best kernel");
    for pass in 1..=options.passes {
        let start = Instant::now();
        let mut order: Vec<usize> = (0..quickest.len()).collect();
        order.rotate_left(quickest.len() * pass / options.passes);
        for at in order {
            let (name, depth) = (names[at / depths.len()], depths[at % depths.len()]);
            let row = Row::measure(&stream::make(name, depth), options);
            let row = row.or_quicker(quickest[at].take());
            if pass == options.passes {
                if at.is_multiple_of(depths.len()) {
                    println!("\n{name:<20}{}", measure::header());
                }
                println!("{depth:>20}{row}");
                report.add(name, depth, &row);
            }
            quickest[at] = Some(row);
        }
        if pass < options.passes {
            eprintln!("pass {pass} of {} took {} s", options.passes, start.elapsed().as_secs());
        }
    }
    report
}
