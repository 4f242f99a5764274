// SPDX-License-Identifier: BSD-2-Clause
//! Makes pages of HTML that need no other file, no script and no network.

use std::fmt::Write;

use super::sheet::Sheet;

const STYLE: &str = include_str!("page.css");

/// Returns a page. `header` (below the title) and `main` are HTML; `title` is text.
pub(crate) fn page(title: &str, header: &str, main: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>tcam: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1>\n{header}</header>\n<main>\n{main}</main>\n\
         <footer>tcam {}</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Returns a section. `heading` is text, `content` is HTML.
pub(crate) fn section(heading: &str, content: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{content}</section>\n", escaped(heading))
}

/// Returns a table with its title.
pub(crate) fn table(sheet: &Sheet) -> String {
    let cells = |tag: &str, cells: &[String]| {
        cells
            .iter()
            .fold(String::new(), |row, cell| format!("{row}<{tag}>{}</{tag}>", escaped(cell)))
    };
    let mut text = format!(
        "<div class=\"sheet\"><table>\n<caption>{}</caption>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        escaped(&sheet.title),
        cells("th", &sheet.header)
    );
    for row in &sheet.rows {
        let _ = writeln!(text, "<tr>{}</tr>", cells("td", row));
    }
    text + "</tbody>\n</table></div>\n"
}

/// Returns a list of lines.
pub(crate) fn list(lines: impl IntoIterator<Item = String>) -> String {
    let items = lines
        .into_iter()
        .fold(String::new(), |items, line| items + "<li>" + &escaped(&line) + "</li>\n");
    format!("<ul>\n{items}</ul>\n")
}

/// Returns a picture with an explanation below it. `name` describes the picture to screen readers.
pub(crate) fn figure(svg: &str, name: &str, reading: &str) -> String {
    let named = format!("<svg role=\"img\" aria-label=\"{}\" ", escaped(name));
    let (svg, reading) = (svg.replacen("<svg ", &named, 1), escaped(reading));
    format!("<figure>\n{svg}<figcaption>{reading}</figcaption>\n</figure>\n")
}

/// Returns the paragraph on missing ranks or a failed program, which is the first on a page.
pub(crate) fn lack(text: &str) -> String {
    format!("<p class=\"lack\">{}</p>\n", escaped(text))
}

/// Escapes text, so that it contains no markup.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
