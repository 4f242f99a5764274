// SPDX-License-Identifier: BSD-2-Clause
//! Lists of table sizes: `0,64,...,8192`.

use std::str::FromStr;

use nic::params::Params;

use crate::environment::Settings;
use crate::error::Error;

/// Largest table the provider offers.
pub(crate) const LARGEST: usize = 65_536;

/// Table sizes as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<usize>);

/// Sizes of the second table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UmqSizes {
    /// Those of the first.
    Same,
    /// One for all runs, or one a run.
    List(Sizes),
}

/// One table size as given on the command line.
pub(crate) fn one(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| *size <= LARGEST);
    size.ok_or_else(|| format!("a table has 0 to {LARGEST} entries"))
}

impl Sizes {
    /// Those of a sweep that is given none.
    pub(crate) fn usual() -> Self {
        Self(vec![0, 64, 128, 256, 512, 1024, 2048, 4096, 8192])
    }

    /// These, and the last doubled until it holds so many entries or is the largest there is.
    pub(crate) fn on_to(mut self, need: u64) -> Self {
        let last = self.0.last().copied().unwrap_or(0).max(1);
        let doubled = std::iter::successors(Some(last), |size| Some(2 * size)).skip(1);
        let most = (need.min(LARGEST as u64) as usize).next_power_of_two();
        self.0.extend(doubled.take_while(|size| *size <= most));
        self
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
            let size = one(word).map_err(|why| format!("`{word}` is no table size: {why}"))?;
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

/// PRQ and UMQ size of every run, smallest first, each pair once. Unless sizes of the UMQ are
/// given they are the same, but for a device that has no table of unexpected messages.
pub(crate) fn pairs(
    prq: &Sizes,
    umq: Option<&UmqSizes>,
    params: &Params,
) -> Result<Vec<(usize, usize)>, Error> {
    let prq = &prq.0;
    let has_none = params.text("device") != "generic" && params.number("umq_entries") == 0;
    let none = UmqSizes::List(Sizes(vec![0]));
    let mut pairs: Vec<_> = match umq.unwrap_or(if has_none { &none } else { &UmqSizes::Same }) {
        UmqSizes::Same => prq.iter().map(|&size| (size, size)).collect(),
        UmqSizes::List(Sizes(umq)) => match (prq.as_slice(), umq.as_slice()) {
            (_, [one]) => prq.iter().map(|&size| (size, *one)).collect(),
            ([one], _) => umq.iter().map(|&size| (*one, size)).collect(),
            _ if prq.len() == umq.len() => prq.iter().copied().zip(umq.iter().copied()).collect(),
            _ => return Err(Error::Lengths { prq: prq.len(), umq: umq.len() }),
        },
    };
    pairs.sort_unstable();
    pairs.dedup();
    Ok(pairs)
}

/// Sizes are not set like other parameters where a sweep varies them.
pub(crate) fn check(settings: &Settings) -> Result<(), Error> {
    for (name, option) in [("prq_entries", "--prq LIST"), ("umq_entries", "--umq LIST")] {
        if settings.get(name).is_some() {
            return Err(Error::OwnOption { name: name.to_owned(), option });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(device: &str) -> Params {
        Params::from_lookup(|name| (name == "device").then(|| device.to_owned())).unwrap()
    }

    #[test]
    fn a_device_without_a_table_of_unexpected_messages_gets_none() {
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
    fn usual_sizes_go_on_to_what_is_needed() {
        assert_eq!(sizes("0,64,...,8192").unwrap(), Sizes::usual().0);
        let last = |need| Sizes::usual().on_to(need).0.last().copied().unwrap();
        let needs = [0, 8192, 8193, 16_384, 40_000, 65_536, 70_000, u64::MAX].map(last);
        assert_eq!(needs, [8192, 8192, 16_384, 16_384, 65_536, 65_536, 65_536, 65_536]);
        assert_eq!(Sizes::usual().on_to(20_000).0.len(), 11);
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
