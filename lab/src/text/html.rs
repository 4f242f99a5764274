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

/// Largest number of characters of a name, which is wrapped only on a phone.
const NAME: usize = 34;

/// Returns a table with its title. Columns of text may be wrapped, columns of numbers may not.
pub(crate) fn table(sheet: &Sheet) -> String {
    let is_text = |cell: &String| {
        let is_word =
            cell.starts_with(|first: char| !first.is_ascii_digit() && !"<>-".contains(first));
        is_word && (cell.contains(' ') || cell.len() > 8)
    };
    let classes: Vec<_> = (0..sheet.header.len())
        .map(|column| {
            let cells = || sheet.rows.iter().map(|row| &row[column]);
            match cells().any(is_text) {
                false => "",
                true if cells().all(|cell| cell.chars().count() <= NAME) => " class=\"name\"",
                true => " class=\"text\"",
            }
        })
        .collect();
    let cells = |tag: &str, cells: &[String]| {
        cells.iter().zip(&classes).fold(String::new(), |row, (cell, class)| {
            format!("{row}<{tag}{class}>{}</{tag}>", escaped(cell))
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_of_numbers_keep_their_width() {
        let mut sheet = Sheet::new("", ["", "entries", "holds", "left to the host"]);
        for cells in [["alpu", "0 to 5 %", "yes", ""], ["uet", "< 1 %", "no", "has no UMQ"]] {
            sheet.row(cells.map(str::to_owned));
        }
        let page = table(&sheet);
        for cell in ["<td>alpu", "<td>&lt; 1 %", "<td>no", "<td class=\"name\">has no"] {
            assert!(page.contains(cell), "{page}");
        }
        sheet.rows[1][3] = "a sentence that is wrapped on every screen".to_owned();
        assert!(table(&sheet).contains("<td class=\"text\">a sentence"));
    }
}
