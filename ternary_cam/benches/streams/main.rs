// SPDX-License-Identifier: BSD-2-Clause
//! The streams of matching, in nanoseconds a pair (insert + match + remove).
//!
//! Every competitor runs every stream in this process, and every answer is
//! checked. `cargo bench -p ternary_cam` prints one row a stream and depth, then
//! instructions a pair. After `--`: `--only TEXT` runs the streams whose name
//! contains the text, `--depths 1,4` other depths, `--competitors avx512,list` only
//! these, `--ms N` takes so long for each, `--report ../docs` writes the results
//! there (paths start at the package).

mod instructions;
mod matcher;
mod measure;
mod peers;
mod report;
mod stream;

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
    let names = stream::NAMES.iter().filter(|name| name.contains(&options.only));
    if let Some(rounds) = options.rounds {
        for &name in names.filter(|name| **name == options.only) {
            for &depth in &options.depths {
                measure::run_only(&stream::make(name, depth), rounds);
            }
        }
        return;
    }

    let mut report = Report::default();
    println!("ns a pair (search alone in miss); ratios against the table with the best kernel");
    for &name in names.clone() {
        println!("\n{name:<20}{}", measure::header());
        for &depth in &options.depths {
            let row = Row::measure(&stream::make(name, depth), &options);
            println!("{depth:>20}{row}");
            report.add(name, depth, &row);
        }
    }
    if options.instructions {
        println!("\ninstructions a pair, depth {:?}", instructions::DEPTHS);
        for &name in names {
            match instructions::count(name) {
                Ok(counts) => {
                    println!("{name:<20}{:>8.0}{:>8.0}", counts[0], counts[1]);
                    report.add_instructions(name, counts);
                }
                Err(problem) => {
                    println!("SKIPPED: instructions are not counted: {problem}");
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
