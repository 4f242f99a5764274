// SPDX-License-Identifier: BSD-2-Clause
//! The streams of matching, in nanoseconds a pair (insert + match + remove).
//!
//! Every competitor runs every stream in this process, and every answer is
//! checked. `cargo bench -p ternary_cam` prints one row a stream and depth;
//! `-- --csv FILE` also writes them; `-- --only TEXT` runs the streams whose name
//! contains the text, `-- --depths 1,4` other depths.

mod matcher;
mod measure;
mod peers;
mod stream;

use std::fmt::Write as _;

use measure::{Options, Row};

fn main() {
    let options = match Options::from_args(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            std::process::exit(2);
        }
    };
    println!("ns a pair (search alone in miss); ratios against the table with the best kernel");
    let mut csv = String::from("stream,depth,competitor,ns\n");
    for &name in stream::NAMES.iter().filter(|name| name.contains(&options.only)) {
        println!("\n{name:<20}{}", measure::header());
        for &depth in &options.depths {
            let row = Row::measure(&stream::make(name, depth), &options);
            println!("{depth:>20}{row}");
            for (competitor, ns) in row.cells() {
                if let Some(ns) = ns {
                    writeln!(csv, "{name},{depth},{competitor},{ns:.2}").expect("to a string");
                }
            }
        }
    }
    if let Some(path) = &options.csv
        && let Err(error) = std::fs::write(path, csv)
    {
        eprintln!("{}: {error}", path.display());
        std::process::exit(1);
    }
}
