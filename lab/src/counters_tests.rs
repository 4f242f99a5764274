// SPDX-License-Identifier: BSD-2-Clause
//! A counter of a queue is named in one place, and every output has it.

use std::fs::{self, File};

use matching::QueueCounters;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::capacity::{Knob, rows};
use crate::experiment::outcome::tests::experiment;
use crate::experiment::{export, sheets};
use crate::results::{NamedValues, Sum, counters, summary_text};
use crate::text::{html, whole};

#[test]
fn each_counter_is_in_every_output() {
    let directory = tempfile::tempdir().unwrap();
    let mut experiment = experiment(1, 64);
    let value = |at: usize, queue: u64| 1_000_003 * (2 * at as u64 + queue + 1);
    let rank = &mut experiment.ranks[0].tagged;
    for context in [&mut experiment.sum.tagged, rank] {
        for (queue, of) in (0..).zip([&mut context.prq, &mut context.umq]) {
            for (at, counter) in QueueCounters::COUNTERS.iter().enumerate() {
                *(counter.place)(of) = value(at, queue);
            }
        }
    }
    let [prq, umq] =
        [&experiment.sum.tagged.prq, &experiment.sum.tagged.umq].map(|of| of.high_water);
    (experiment.sum.prq_peak.elements, experiment.sum.umq_peak.elements) = (prq, umq);
    for parquet in [false, true] {
        export::write(&experiment, directory.path(), parquet).unwrap();
    }
    let csv = fs::read_to_string(directory.path().join("queues.csv")).unwrap();
    let csv: Vec<Vec<_>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let parquet = File::open(directory.path().join("queues.parquet")).unwrap();
    let parquet = SerializedFileReader::new(parquet).unwrap();
    let parquet: Vec<_> = parquet.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let json = serde_json::to_value(Sum::from(&experiment.sum)).unwrap();
    let of_sweep = rows::row(Knob::Tables, (64, 64), 1, 0.0, &experiment.sum, None);
    let of_sweep = serde_json::to_value(of_sweep).unwrap();
    let mut of_line = NamedValues::default();
    counters::put(&mut of_line, "umq", &experiment.sum.tagged.umq);
    let of_line = serde_json::to_value(of_line).unwrap();
    let terminal = summary_text::of(&experiment.sum);
    let page: String = sheets::all(&experiment, None).iter().map(html::table).collect();
    for (at, counter) in QueueCounters::COUNTERS.iter().enumerate() {
        let name = counter.name;
        for (queue, lower) in (0..).zip(["prq", "umq"]) {
            let expected = value(at, queue);
            let column = csv[0].iter().position(|of| *of == name).expect(name);
            assert_eq!(csv[1 + queue as usize][column], expected.to_string(), "{name} in CSV");
            let field = Field::Long(expected as i64);
            let mut fields = parquet[queue as usize].get_column_iter();
            assert!(fields.any(|of| *of.0 == name && *of.1 == field), "{name} in Parquet");
            assert_eq!(json["tagged"][lower][name], expected, "{name} in JSON");
            let told = |text: &str| text.contains(counter.text) && text.contains(&whole(expected));
            assert!(told(&terminal), "{name} in the terminal:\n{terminal}");
            assert!(told(&page), "{name} on the page");
            // A line of a sweep begins with the sizes that were given to it.
            let given = if name == "entries" { 64 } else { expected };
            assert_eq!(of_sweep[format!("{lower}_{name}")], given, "{name} in sweep.csv");
        }
        let expected = if name == "entries" { Value::Null } else { value(at, 1).into() };
        assert_eq!(of_line[format!("umq_{name}")], expected, "{name} in replay --csv");
    }
}
