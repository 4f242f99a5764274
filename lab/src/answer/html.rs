// SPDX-License-Identifier: BSD-2-Clause
//! The answer as a section of a page of HTML.

use super::facts::Facts;
use super::sentences::{device_cells, limits, need_rows, products, quote, ran};
use crate::error::Error;
use crate::plot::need::{self, Costs};
use crate::plot::picture;
use crate::text::html::{self, escaped};
use crate::text::sheet::Sheet;

/// Returns the title of a page that contains only answers.
pub(crate) fn title(all: &[Facts]) -> String {
    all.iter().map(|facts| facts.title.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the section.
pub(crate) fn section(facts: &Facts) -> Result<String, Error> {
    let mut text = String::from("<section>\n<h2>Answer</h2>\n");
    text += &facts.lack.as_deref().map_or_else(String::new, html::lack);
    text += &paragraph(&format!("{}.", ran(facts)));
    let mut needs = Sheet::new("Entries needed", ["", "peak of a rank", "peak of a NIC"]);
    need_rows(facts).into_iter().for_each(|cells| needs.row(cells));
    text += &html::table(&needs);
    if let Some(picture) = drawn(facts) {
        let reading = "A NIC whose ranks share that many entries for all that they hold: what of the \
                       receives and unexpected messages is in the table at once, and the share of \
                       the run's time that the overflow costs. Points are the worst run, bars the \
                       range of the runs.";
        text += &html::figure(&picture::svg(&picture)?, "Need and cost of overflow", reading);
    }
    let header = [
        "device",
        "entries (a+b: of a rank)",
        "holds all",
        "host list",
        "list+1 us",
        "why not all",
    ];
    let mut devices = Sheet::new("Devices, and what overflow costs of the run's time", header);
    for device in products(facts) {
        let cells = device_cells(device, facts.runs).into_iter();
        devices.row(cells.chain([device.judged.why.clone()]));
    }
    text += &html::table(&devices);
    text += &html::list(limits(facts));
    text += &format!("<blockquote>{}</blockquote>\n", paragraph(&quote(facts)));
    Ok(text + "</section>\n")
}

/// Returns the picture, if NICs of other sizes were replayed for it.
pub(crate) fn drawn(facts: &Facts) -> Option<need::Picture> {
    let sizes = &facts.sizes;
    let pair = |range: &super::facts::Range<f64>| (range.least, range.most);
    (!sizes.is_empty()).then(|| need::Picture {
        title: format!("{}: need of a NIC of {}", facts.title, facts.nic.name),
        need: facts.nic.at_once.most,
        sizes: sizes.iter().map(|of| of.entries as usize).collect(),
        at_once: sizes.iter().map(|of| pair(&of.at_once_percent)).collect(),
        costs: Costs {
            list: sizes.iter().map(|of| pair(&of.cpu_list_percent)).collect(),
            with_way: sizes.iter().map(|of| pair(&of.with_way_percent)).collect(),
        },
    })
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}
