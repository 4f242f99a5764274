// SPDX-License-Identifier: BSD-2-Clause
//! Shows the progress of long work on standard error.

use std::fmt::Write;
use std::io::IsTerminal;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// Prints the next step of long work to standard error. Prints nothing on a terminal, where a bar
/// shows the progress.
pub(crate) fn step(what: &str) {
    if !std::io::stderr().is_terminal() {
        eprintln!("{what}");
    }
}

/// Returns a bar of this template (see `indicatif`) on a terminal, and a hidden one elsewhere. In a
/// template, `{left}` is the estimated time that is left.
pub(crate) fn bar(length: u64, template: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template(template)
        .expect("the template is constant")
        .with_key("left", left);
    ProgressBar::new(length).with_style(style)
}

/// Writes the estimated time that is left. Before the first step is done, there is no estimate.
fn left(state: &ProgressState, text: &mut dyn Write) {
    let _ = match state.pos() {
        0 => write!(text, "time left unknown"),
        _ => write!(text, "{:#} left", HumanDuration(state.eta())),
    };
}
