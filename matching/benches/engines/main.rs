// SPDX-License-Identifier: BSD-2-Clause
//! Measures the search time of the host engines and of UCX's hash: on streams like the paper's
//! (Ghazimirsaeed, Grant, Afsahi 2019, sections 5.2 and 5.3), with k_C from 1 to 16, behind
//! receives that stay in the queue (*standing* ones), and with wildcards.
//!
//! ```text
//! cargo bench -p tcam-matching --bench engines -- [--only TEXT] [--ms N]
//! ```
//!
//! A stream is a step that is repeated: elements are posted, then each is searched and removed, in
//! another order in every step. In streams with standing elements, each element is removed before
//! the next is posted. The first steps, in which engines profile and make queues, are not measured.
//! A number is the median over the steps of the time of a search with its removal, minus the time
//! of reading the clock; posting is measured separately. The contenders take turns. Every result is
//! checked, and a small instance of every stream is first replayed against the oracle.
//!
//! The paper's figures are from MVAPICH on clusters. Its speedups for gather are those of the
//! latency of the whole operation; its speedups for applications are those of the search time of
//! the PRQ.

mod contender;
mod measure;
mod stream;

mod competitors;
/// The contender interface of the bench of `ternary_cam`.
#[path = "../../../ternary_cam/benches/streams/matcher.rs"]
mod matcher;

use std::time::Duration;

use contender::{COL_PNP, CONTENDERS, LINKED_COL_PNP, UCX};
use measure::Costs;
use stream::{Kind, Stream};

/// Command line.
struct Options {
    only: String,
    time: Duration,
}

fn options() -> Options {
    let mut options = Options { only: String::new(), time: Duration::from_millis(100) };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = |args: &mut dyn Iterator<Item = String>| {
            args.next().unwrap_or_else(|| panic!("{arg} needs a value"))
        };
        match arg.as_str() {
            "--bench" => {}
            "--only" => options.only = value(&mut args),
            "--ms" => {
                let number = value(&mut args).parse().expect("--ms needs a number of milliseconds");
                options.time = Duration::from_millis(number);
            }
            _ => panic!("unknown option {arg}: expected --only TEXT or --ms N"),
        }
    }
    options
}

fn title(text: &str) {
    println!("\n{text}");
    for line in [0, 1] {
        let names: String = CONTENDERS.iter().map(|names| format!("{:>15}", names[line])).collect();
        println!("  {:<12}{names}", "");
    }
}

/// Prints the times, each with its speedup over the linked list.
fn row(name: &str, times: &[f64], paper: &str) {
    let list = times[0];
    let columns: String =
        times.iter().map(|time| format!("{time:>8.1} {:>5.1}x", list / time)).collect();
    println!("  {name:<12}{columns}   {paper}");
}

fn measured(streams: Vec<Stream>, options: &Options) -> impl Iterator<Item = (Stream, Vec<Costs>)> {
    let only = options.only.clone();
    let time = options.time;
    streams.into_iter().filter(move |stream| stream.name.contains(&only)).map(move |stream| {
        let costs = measure::all(&stream, time, |stream, to| contender::visit_all(stream, to));
        (stream, costs)
    })
}

/// Nanoseconds of a post and its match.
fn pairs(costs: &[Costs]) -> Vec<f64> {
    costs.iter().map(|costs| costs.post() + costs.searches()).collect()
}

fn main() {
    let options = options();
    let kinds = [stream::papers, stream::sweep, stream::wildcards, stream::standing];
    for stream in kinds.into_iter().flat_map(|streams| streams(32)) {
        measure::check_all(&stream);
    }
    println!("answers agree with the oracle");

    title("like the paper's: ns a search, speedup over the linked list, the paper's col-pnp");
    for (stream, costs) in measured(stream::papers(1), &options) {
        println!("{}, {} elements", stream.name, stream.posts.len());
        for (kind, paper) in Kind::ALL.into_iter().zip(stream.paper) {
            if costs[0].has(kind) {
                let times: Vec<_> = costs.iter().map(|costs| costs.search(kind)).collect();
                row(kind.name(), &times, paper);
            }
        }
        if Kind::ALL.into_iter().all(|kind| costs[0].has(kind)) {
            let times: Vec<_> = costs.iter().map(Costs::searches).collect();
            row("all", &times, stream.paper[2]);
        }
        let times: Vec<_> = costs.iter().map(Costs::post).collect();
        row("post", &times, "");
        let (collective, point_to_point) = costs[COL_PNP].dedicated;
        println!("  col-pnp made {collective} + {point_to_point} queues");
    }

    title("gather, k_C = 1 to 16: ns a search, speedup over the linked list, the paper's latency");
    for (stream, costs) in measured(stream::sweep(1), &options) {
        let times: Vec<_> = costs.iter().map(Costs::searches).collect();
        println!("{}: {} queues", stream.name, costs[COL_PNP].dedicated.0);
        row("", &times, stream.paper[0]);
    }

    title("behind standing receives: ns a post and its match, one after the other");
    for (stream, costs) in measured(stream::standing(1), &options) {
        println!("{}", stream.name);
        row("pair", &costs.iter().map(Costs::searches).collect::<Vec<_>>(), "");
    }

    title("wildcards: ns a post and its match, speedup over the linked list");
    for (stream, costs) in measured(stream::wildcards(1), &options) {
        let pairs = pairs(&costs);
        let beats = |other: usize| if pairs[COL_PNP] < pairs[other] { "yes" } else { "NO" };
        println!(
            "{}: packed col-pnp beats linked {}, UCX {}",
            stream.name,
            beats(LINKED_COL_PNP),
            beats(UCX)
        );
        row("pair", &pairs, "");
        row("search", &costs.iter().map(Costs::searches).collect::<Vec<_>>(), "");
    }
}
