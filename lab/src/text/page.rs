// SPDX-License-Identifier: BSD-2-Clause
//! Text for pages of a fixed width.

use nic::plain::plain;

/// Columns of a page.
pub(crate) const WIDTH: usize = 80;

/// Returns a text without control characters, cut to `width` characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    match text.chars().count() {
        fits if fits <= width => text.into_owned(),
        _ => text.chars().take(width - 3).chain("...".chars()).collect(),
    }
}

/// Folds a text into lines of the page. All but the first are indented.
pub(crate) fn folded(text: &str, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{}{}", " ".repeat(indent), cut(word, WIDTH - indent)));
            continue;
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(&cut(word, WIDTH));
    }
    lines
}
