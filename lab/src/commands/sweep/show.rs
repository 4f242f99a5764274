// SPDX-License-Identifier: BSD-2-Clause
//! Draws and prints the points of a sweep.

use std::path::Path;

use comfy_table::Table;

use super::arguments::Sweep;
use crate::capacity::{Cost, Knob, Point, Swept, verdict};
use crate::error::Error;
use crate::plot::capacity;
use crate::text::{Sheet, share, whole};

/// Draws the curve. Prints the table of the points and sentences about them, unless JSON goes to
/// standard output. `lack` is the note on missing ranks; `failed` are sizes whose runs failed.
pub(crate) fn show(
    arguments: &Sweep,
    out: &Path,
    title: &str,
    swept: &Swept,
    lack: Option<&str>,
    failed: &[usize],
) -> Result<(), Error> {
    let [svg, png] = capacity::draw(out, title, swept)?;
    arguments.json.tell(lack);
    if arguments.json.takes_output() {
        return Ok(());
    }
    println!("{}", points_table(swept));
    println!("Table: {}", out.join("sweep.csv").display());
    println!("Curve: {}", svg.display());
    println!("       {}", png.display());
    let more = swept.larger(arguments.umq.as_ref()).into_iter();
    let more = more.chain(verdict::times(&swept.points));
    let lines = swept.reading().into_iter().chain(swept.reliance(failed)).chain(more);
    for line in lines {
        println!("{line}");
    }
    Ok(())
}

/// Returns the median of the spilled share, and below it the largest share if that is larger.
fn spread_of(point: &Point, of: usize) -> String {
    point.spilled_text(of).replace(", at most ", "\n- ")
}

/// Returns the table for the terminal, one line for each size.
fn points_table(swept: &Swept) -> Table {
    let points = &swept.points;
    let header = ["entries", "fit immediately", "promoted first", "PRQ spilled", "UMQ spilled"];
    let mut sheet = Sheet::new("", header);
    let mut columns = |names: &[&str]| sheet.header.extend(names.iter().map(|&of| of.to_owned()));
    // With modelled costs there are no columns of high-water marks: in replays the order of
    // operations, and so the length of a queue, does not depend on the table size.
    let is_modelled = matches!(points[0].cost, Some(Cost::Modelled(_)));
    if !is_modelled {
        columns(&["PRQ high water", "UMQ high water"]);
    }
    columns(&[points[0].cost.map_or("time", |cost| cost.title().1)]);
    if is_modelled {
        columns(&["host adds, ns", "worst rank, ns"]);
    }
    if swept.knob == Knob::Pool {
        sheet.header.push("MPI's own spilled".to_owned());
    }
    for point in points {
        let mut row = vec![
            point.size(),
            share(point.immediate()),
            share(point.promoted),
            spread_of(point, 1),
            spread_of(point, 2),
        ];
        if !is_modelled {
            row.extend([0, 1].map(|queue: usize| whole(point.peaks[queue].elements)));
        }
        row.push(match point.cost {
            None => format!("{:.2} s", point.seconds[1]),
            Some(cost) => format!("{:.1}", cost.value()),
        });
        if let Some(Cost::Modelled(modelled)) = point.cost {
            row.extend([modelled.added, modelled.worst].map(|ns| format!("{ns:.1}")));
        }
        if swept.knob == Knob::Pool {
            row.push(whole(point.internal_spills));
        }
        sheet.row(row);
    }
    sheet.table()
}
