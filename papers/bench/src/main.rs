// SPDX-License-Identifier: BSD-2-Clause
//! The program `papers-bench`, with which `papers/reproduce.sh` measures times of nanoseconds.
//!
//! ```text
//! papers-bench replay TRACE STEPS ONCE MS SETTINGS...    prints a line of JSON for each SETTINGS
//! papers-bench threads                                   prints a line for each line of the input
//! ```

mod replay;
mod threads;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["replay", trace, steps, once, ms, ref settings @ ..] => {
            let stream = replay::Stream::read(trace, steps.parse()?, once.parse()?)?;
            replay::replay(&stream, ms.parse()?, settings)
        }
        ["threads"] => threads::threads(),
        _ => {
            Err("usage: papers-bench replay TRACE STEPS ONCE MS SETTINGS... | papers-bench threads"
                .into())
        }
    }
}
