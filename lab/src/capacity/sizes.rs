// SPDX-License-Identifier: BSD-2-Clause
//! Parses lists of table sizes, such as `0,64,...,8192`, and combines the sizes of PRQ and UMQ.

use std::str::FromStr;

use nic::params::Params;

use crate::error::Error;
use crate::options::{LARGEST, table_size};

/// Table sizes of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

/// Sizes of the table of unexpected messages (UMQ).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UmqSizes {
    /// The sizes of the table of posted receives (PRQ).
    Same,
    /// One size for all PRQ sizes, one for each PRQ size, or several for a single PRQ size.
    List(Sizes),
}

impl Sizes {
    /// Returns the sizes of a sweep if none are given and the need is unknown.
    pub(crate) fn usual() -> Self {
        Self(vec![0, 64, 128, 256, 512, 1024, 2048, 4096, 8192])
    }

    /// Returns sizes around a need: 0, quarters of the need, the need, and powers of two from a
    /// sixteenth of the need to twice the next power of two, but none above [`LARGEST`]. If the
    /// need is 0, returns [`Self::usual`].
    pub(crate) fn around(need: u64) -> Self {
        let need = need.min(LARGEST as u64) as usize;
        if need == 0 {
            return Self::usual();
        }
        let most = (2 * need.next_power_of_two()).min(LARGEST);
        let least = (need / 16).next_power_of_two();
        let powers = std::iter::successors(Some(least), |size| Some(2 * size));
        let mut sizes: Vec<_> = powers.take_while(|size| *size <= most).collect();
        // A quarter that differs from one of the powers by at most an eighth is left out.
        let quarters = (1..4).map(|quarters| (need * quarters).div_ceil(4));
        let is_near = |size: &usize| sizes.iter().any(|power| power.abs_diff(*size) * 8 <= *size);
        let between: Vec<_> = quarters.filter(|size| !is_near(size)).collect();
        sizes.extend(between.into_iter().chain([0, need]));
        sizes.sort_unstable();
        sizes.dedup();
        Self(sizes)
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sizes: Vec<usize> = Vec::new();
        let mut doubling = false;
        for word in text.split(',').map(str::trim) {
            if word == "..." {
                match sizes.last() {
                    None => return Err("`...` needs a size before it, as in 64,...,8192".into()),
                    Some(0) => return Err("0 cannot be doubled: write 0,64,...,8192".into()),
                    Some(_) if doubling => return Err("`...` needs a size after it".into()),
                    Some(_) => doubling = true,
                }
                continue;
            }
            let size = table_size(word).map_err(|why| {
                match word.chars().all(|char| ".…".contains(char)) {
                    true if !word.is_empty() => {
                        format!("`{word}`: three dots are expected, as in 64,...,8192")
                    }
                    _ => format!("`{word}` is no table size: {why}"),
                }
            })?;
            if let (true, Some(&from)) = (doubling, sizes.last()) {
                if size <= from {
                    return Err(format!("`{from},...,{size}` does not rise"));
                }
                sizes.extend(
                    std::iter::successors(Some(from * 2), |last| Some(last * 2))
                        .take_while(|&next| next < size),
                );
                doubling = false;
            }
            sizes.push(size);
        }
        if doubling {
            return Err("`...` needs a size after it".into());
        }
        Ok(Self(sizes))
    }
}

impl FromStr for UmqSizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "same" => Ok(Self::Same),
            list => Ok(Self::List(list.parse()?)),
        }
    }
}

/// Returns the PRQ and UMQ sizes of every run, smallest first, each pair once. Without `umq`, the
/// UMQ gets the sizes of the PRQ, or 0 if the device has no table of unexpected messages. Fails if
/// both lists have several sizes and their lengths differ.
pub(crate) fn pairs(
    prq: &Sizes,
    umq: Option<&UmqSizes>,
    params: &Params,
) -> Result<Vec<(usize, usize)>, Error> {
    let prq = &prq.0;
    let has_none = params.device != "generic" && params.umq_entries == 0;
    let none = UmqSizes::List(Sizes(vec![0]));
    let mut pairs: Vec<_> = match umq.unwrap_or(if has_none { &none } else { &UmqSizes::Same }) {
        UmqSizes::Same => prq.iter().map(|&size| (size, size)).collect(),
        UmqSizes::List(Sizes(umq)) => match (prq.as_slice(), umq.as_slice()) {
            (_, [one]) => prq.iter().map(|&size| (size, *one)).collect(),
            ([one], _) => umq.iter().map(|&size| (*one, size)).collect(),
            _ if prq.len() == umq.len() => prq.iter().copied().zip(umq.iter().copied()).collect(),
            _ => fail!(
                "--umq has {} sizes and --prq {}: give `same`, one size, or as many",
                umq.len(),
                prq.len()
            ),
        },
    };
    pairs.sort_unstable();
    pairs.dedup();
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(device: &str) -> Params {
        Params::from_lookup(|name| (name == "device").then(|| device.to_owned())).unwrap()
    }

    #[test]
    fn the_umq_size_is_0_for_a_device_without_that_table() {
        let prq = "4,8".parse().unwrap();
        let pairs = |umq: Option<&str>, device| {
            pairs(&prq, umq.map(|umq| umq.parse().unwrap()).as_ref(), &params(device)).unwrap()
        };
        assert_eq!(pairs(None, "generic"), [(4, 4), (8, 8)]);
        assert_eq!(pairs(None, "portals4-ref"), [(4, 4), (8, 8)]);
        assert_eq!(pairs(None, "connectx"), [(4, 0), (8, 0)]);
        assert_eq!(pairs(Some("same"), "connectx"), [(4, 4), (8, 8)]);
    }

    fn sizes(text: &str) -> Result<Vec<usize>, String> {
        text.parse().map(|Sizes(list)| list)
    }

    #[test]
    fn dots_double() {
        assert_eq!(sizes("0,64,...,8192").unwrap(), [0, 64, 128, 256, 512, 1024, 2048, 4096, 8192]);
        assert_eq!(sizes("3, ... ,20").unwrap(), [3, 6, 12, 20]);
        assert_eq!(sizes("1,...,4,100,...,300").unwrap(), [1, 2, 4, 100, 200, 300]);
        assert_eq!(sizes("7").unwrap(), [7]);
    }

    #[test]
    fn sizes_are_around_the_need() {
        assert_eq!(sizes("0,64,...,8192").unwrap(), Sizes::usual().0);
        assert_eq!(Sizes::around(21).0, [0, 1, 2, 4, 6, 8, 11, 16, 21, 32, 64]);
        assert_eq!(Sizes::around(1).0, [0, 1, 2]);
        let large = Sizes::around(2015).0;
        assert_eq!(large[..4], [0, 128, 256, 512]);
        assert_eq!(large[large.len() - 4..], [1512, 2015, 2048, 4096]);
        for need in [40_000, 65_536, 70_000, u64::MAX] {
            assert_eq!(Sizes::around(need).0.last(), Some(&LARGEST), "{need}");
        }
        assert_eq!(Sizes::around(0), Sizes::usual());
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in [
            ("", "no table size"),
            ("64,,128", "no table size"),
            ("...,64", "before it"),
            ("0,...,64", "cannot be doubled"),
            ("64,...", "after it"),
            ("64,...,...,128", "after it"),
            ("64,...,64", "does not rise"),
            ("0,64,..,8192", "`..`: three dots are expected"),
            ("0,64,…,8192", "`…`: three dots are expected"),
            ("70000", "`70000` is no table size: a table has 0 to 65536 entries"),
            ("-1", "no table size"),
        ] {
            let error = sizes(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn pairs_follow_the_second_list() {
        let prq = "128,64,128".parse().unwrap();
        let params = params("generic");
        let pairs_with = |umq: &str| pairs(&prq, Some(&umq.parse().unwrap()), &params);
        assert_eq!(pairs_with("same").unwrap(), [(64, 64), (128, 128)]);
        assert_eq!(pairs_with("9").unwrap(), [(64, 9), (128, 9)]);
        assert_eq!(pairs_with("1,2,3").unwrap(), [(64, 2), (128, 1), (128, 3)]);
        assert!(pairs_with("1,2").is_err());
        assert_eq!(
            pairs(&"5".parse().unwrap(), Some(&"1,2".parse().unwrap()), &params).unwrap(),
            [(5, 1), (5, 2)]
        );
    }
}
