// SPDX-License-Identifier: BSD-2-Clause
//! Makes text from files that another user may have written safe to print: characters that move the
//! cursor, set colours or change the writing direction are shown as `?`.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Returns true if a character is safe to print: it is not a control character (some are above
/// ASCII), does not change the writing direction and does not end a line.
#[must_use]
pub fn is_plain(char: char) -> bool {
    !char.is_control()
        && !matches!(
            char,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Returns the text with `?` for each character that is not plain.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|char| if is_plain(char) { char } else { '?' }).collect())
}

/// Makes each text plain.
pub(crate) fn make_plain<'t>(texts: impl IntoIterator<Item = &'t mut String>) {
    for text in texts {
        if let Cow::Owned(plain) = plain(text) {
            *text = plain;
        }
    }
}

/// Makes the keys of a map plain. Of keys that become equal, one stays.
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
    fn only_characters_that_are_not_plain_become_question_marks() {
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
