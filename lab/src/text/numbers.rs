// SPDX-License-Identifier: BSD-2-Clause
//! Formats numbers as text.

use indicatif::HumanCount;

/// Returns a number with separators of thousands, such as `12,345`.
pub(crate) fn whole(number: u64) -> String {
    HumanCount(number).to_string()
}

/// Returns a number of bytes in the largest unit with a value of at least 1, such as `1.5 MB`.
pub(crate) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB"].iter();
    let mut unit = units.next().expect("there are units");
    while value >= 1000.0 {
        let Some(next) = units.next() else { break };
        value /= 1000.0;
        unit = next;
    }
    if number < 1000 { format!("{number} B") } else { format!("{value:.1} {unit}") }
}

/// Returns the sum of some counts. It saturates, because reports may contain any number.
pub(crate) fn total<const N: usize>(counts: [u64; N]) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Returns `part` of `whole` in per cent; 0 if `whole` is 0.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Returns a share in per cent with the unit, such as `12.3 %`. A share that is neither 0 nor 100
/// is not rounded to 0 or 100.
pub(crate) fn share(percent: f64) -> String {
    let rounded = (percent * 10.0).round() / 10.0;
    let misleads = (rounded == 0.0 && percent > 0.0) || (rounded == 100.0 && percent < 100.0);
    match percent {
        0.0..0.005 if misleads => "< 0.01 %".to_owned(),
        99.995..100.0 if misleads => "> 99.99 %".to_owned(),
        _ if misleads => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// Returns a share in whole per cent, such as `12 %`. Only 0 and 100 are written as such.
pub(crate) fn whole_share(percent: f64) -> String {
    match percent {
        ..=0.0 => "0 %".to_owned(),
        100.0.. => "100 %".to_owned(),
        ..1.0 => "< 1 %".to_owned(),
        _ if percent > 99.0 => "> 99 %".to_owned(),
        _ => format!("{percent:.0} %"),
    }
}

/// Returns a number with its noun, in the plural except for 1.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", whole(number), if number == 1 { "" } else { "s" })
}

/// Returns a number of entries, such as `1 entry` or `12 entries`.
pub(crate) fn entries(number: u64) -> String {
    format!("{} {}", whole(number), if number == 1 { "entry" } else { "entries" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_shares_are_not_rounded_to_all_or_nothing() {
        let told = [0.0, 0.99, 1.0, 12.4, 99.0, 99.01, 100.0].map(whole_share);
        assert_eq!(told, ["0 %", "< 1 %", "1 %", "12 %", "99 %", "> 99 %", "100 %"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let text = [0, 12, 123, 1234, 123_456, 1_234_567].map(whole);
        assert_eq!(text, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
    }

    #[test]
    fn bytes_find_their_unit() {
        let text = [0, 999, 1000, 1_500_000, 2_000_000_000_000_000].map(bytes);
        assert_eq!(text, ["0 B", "999 B", "1.0 kB", "1.5 MB", "2000.0 TB"]);
    }

    #[test]
    fn shares_do_not_pretend() {
        let text = [0.0, 0.001, 0.04, 0.06, 50.0, 99.97, 99.999, 100.0].map(share);
        let expected =
            ["0.0 %", "< 0.01 %", "0.04 %", "0.1 %", "50.0 %", "99.97 %", "> 99.99 %", "100.0 %"];
        assert_eq!(text, expected);
    }

    #[test]
    fn percent_of_nothing_is_0() {
        assert_eq!(percent(0, 0), 0.0);
        assert_eq!(percent(1, 4), 25.0);
    }
}
