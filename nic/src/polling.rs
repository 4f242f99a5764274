// SPDX-License-Identifier: BSD-2-Clause
//! The parameter `FI_TCAM_POLL`: how often the network is polled relative to shared memory, after
//! section 3.2 of *Analysis of Design Considerations for Optimizing Multi-Channel MPI over
//! InfiniBand* (Chai, Sur, Jin, Panda; IPDPS 2005). `channel/src/polling.rs` applies the policy.

use std::str::FromStr;

/// The polling policy; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// One poll of the network, then n polls without it. n is the number of messages over shared
    /// memory since the last message over the network, at most 256.
    Auto,
    /// Poll the network each time.
    Every,
    /// One poll of the network, then this many polls without it (the paper's static scheme).
    Static(u32),
    /// One poll of the network, then m / (n + 1) polls without it, at most 256. After each group of
    /// this many messages, m becomes the number of them over shared memory, and n the number over
    /// the network (the paper's dynamic scheme).
    Dynamic(u32),
}

impl Polling {
    /// Description of the allowed values.
    pub const ALLOWED: &str = "auto, every, static:R or dynamic:H with R and H from 1 to 10000";
    /// Largest allowed number.
    pub const MOST: u32 = 10_000;
}

impl FromStr for Polling {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |text: &str| {
            text.parse().ok().filter(|number| (1..=Self::MOST).contains(number)).ok_or(())
        };
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "every" => Ok(Self::Every),
            Some(("static", times)) => number(times).map(Self::Static),
            Some(("dynamic", messages)) => number(messages).map(Self::Dynamic),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Polling::{self, Auto, Dynamic, Every, Static};

    #[test]
    fn policies_are_read() {
        for (text, policy) in [
            ("auto", Ok(Auto)),
            ("every", Ok(Every)),
            ("static:50", Ok(Static(50))),
            ("dynamic:10", Ok(Dynamic(10))),
        ] {
            assert_eq!(text.parse::<Polling>(), policy);
        }
        for text in ["", "static", "static:0", "dynamic:10001", "every:1", "static:x"] {
            assert_eq!(text.parse::<Polling>(), Err(()), "{text}");
        }
    }
}
