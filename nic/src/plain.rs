// SPDX-License-Identifier: BSD-2-Clause
//! Text of files that others may have written, on its way to a terminal or a page: what
//! moves the cursor, sets colours or turns the direction of writing is shown as `?`.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Whether a character only stands for itself: it is no control character, of which some are
/// above ASCII, none that turns the direction of writing, and ends no line.
#[must_use]
pub fn is_plain(char: char) -> bool {
    !char.is_control()
        && !matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The text with `?` for whatever is not plain.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|char| if is_plain(char) { char } else { '?' }).collect())
}

/// Has texts be plain.
pub(crate) fn make_plain<'t>(texts: impl IntoIterator<Item = &'t mut String>) {
    for text in texts {
        if let Cow::Owned(plain) = plain(text) {
            *text = plain;
        }
    }
}

/// Has the keys of a map be plain; of those that become the same, one stays.
pub(crate) fn make_keys_plain<T>(map: &mut BTreeMap<String, T>) {
    if map.keys().any(|key| !key.chars().all(is_plain)) {
        let old = std::mem::take(map);
        map.extend(old.into_iter().map(|(key, value)| (plain(&key).into_owned(), value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_shown_as_it_is_becomes_a_question_mark() {
        assert!(matches!(plain("/opt/größe <x> 日本 \u{1f600}"), Cow::Borrowed(_)));
        assert_eq!(plain("a\x1b[2Jb\x07\u{9b}31m\n\x7f"), "a?[2Jb??31m??");
        assert_eq!(plain("\u{202e}gpj.exe\u{2066}\u{200f}\u{2028}"), "?gpj.exe???");
    }

    #[test]
    fn keys_of_maps_are_made_plain() {
        let mut map = BTreeMap::from([("a\x1b".to_owned(), 1), ("b".to_owned(), 2)]);
        make_keys_plain(&mut map);
        assert_eq!(map, BTreeMap::from([("a?".to_owned(), 1), ("b".to_owned(), 2)]));
    }
}
