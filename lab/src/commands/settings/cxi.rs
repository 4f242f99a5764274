// SPDX-License-Identifier: BSD-2-Clause
//! Checks settings of the provider cxi as the provider itself reads them (libfabric af8ddbe,
//! prov/cxi/src/cxip_info.c, `cxip_env_init`), and computes the memory of its queues and buffers.
//!
//! ```text
//! number    = strtol(value): a suffix is dropped
//! replaced  = out of range, or in conflict with another setting
//! memory    = 2 event queues + overflow buffers (hardware, hybrid) + request buffers (hybrid, software)
//! a queue   = 64 bytes * max(slots that are needed, DEFAULT_CQ_SIZE), in huge pages of 2 MiB
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Serialize;

use super::assignments::Assignment;
use super::stacks::{Defaults, Mode};
use super::variables::{PREFIX, Type, VARIABLES, named};
use crate::hint;
use crate::text::whole;

/// Smallest rendezvous threshold: the largest message without a buffer, `C_MAX_IDC_PAYLOAD_UNR`.
const INJECT: u64 = 192;
/// Bytes of an event.
const EVENT: u64 = 64;
/// Bytes of a huge page.
const HUGE: u64 = 2 << 20;
/// Bytes of buffers and queues of a rank, and of a node, above which a finding names them. Our
/// choice.
const MUCH_A_RANK: u64 = 1 << 30;
const MUCH_A_NODE: u64 = 64 << 30;

/// Why a setting does not do what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Problem {
    /// No such variable.
    Unknown,
    /// The provider uses another value.
    Replaced,
    /// The value has no effect together with the others.
    NoEffect,
    /// The value takes very much memory.
    Memory,
    /// The value cannot be known from the script.
    NotChecked,
}

/// A setting and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Finding {
    /// Line of the script, or `environment`.
    pub(super) place: String,
    pub(super) name: String,
    /// `None` if the script computes the value.
    pub(super) value: Option<String>,
    pub(super) problem: Problem,
    pub(super) says: String,
    /// File and line of the source; empty if no line says it.
    pub(super) source: String,
}

/// Bytes that the provider takes for queues and buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Memory {
    /// Both event queues.
    queues: u64,
    /// Buffers for messages that no receive waits for.
    overflow_buffers: u64,
    /// Buffers for messages that software matches.
    request_buffers: u64,
}

/// The findings, and the memory of a rank with these settings.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    pub(super) findings: Vec<Finding>,
    #[serde(rename = "bytes_a_rank")]
    pub(super) memory: Memory,
}

impl Memory {
    fn all(&self) -> u64 {
        self.queues.saturating_add(self.overflow_buffers).saturating_add(self.request_buffers)
    }

    /// Returns a sentence on the memory of a rank, and of a node of `ppn` ranks.
    pub(super) fn sentence(&self, ppn: Option<NonZeroU32>) -> String {
        let Self { queues, overflow_buffers, request_buffers } = *self;
        let parts = [
            (queues, "event queues"),
            (overflow_buffers, "overflow buffers"),
            (request_buffers, "request buffers"),
        ];
        let parts = parts.iter().filter(|(bytes, _)| *bytes > 0);
        let parts: Vec<_> =
            parts.map(|(bytes, of)| format!("{} of {of}", binary(*bytes))).collect();
        let node = ppn.map_or_else(String::new, |ppn| {
            let all = self.all().saturating_mul(ppn.get().into());
            format!(", and {} on a node of {} ranks", binary(all), whole(ppn.get().into()))
        });
        format!("Memory of a rank: {} ({}){node}.", binary(self.all()), parts.join(", "))
    }
}

/// Returns a number of bytes with a unit, such as `12 MiB` or `15.5 GiB`.
fn binary(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_024 => (1, "B"),
        1_024..1_048_576 => (1 << 10, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    match bytes % unit {
        0 => format!("{} {name}", whole(bytes / unit)),
        _ => format!("{:.1} {name}", bytes as f64 / unit as f64),
    }
}

/// The settings that are given, by name without [`PREFIX`]. Of several values, the last counts.
struct Given<'a> {
    by_name: BTreeMap<&'a str, &'a Assignment>,
    findings: Vec<Finding>,
}

impl Given<'_> {
    fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    fn find(&mut self, name: &str, problem: Problem, says: impl Into<String>, source: &str) {
        let Some(Assignment { name: full, value, place }) = self.by_name.get(name) else { return };
        self.findings.push(Finding {
            place: place.clone(),
            name: full.clone(),
            value: value.clone(),
            problem,
            says: says.into(),
            source: source.to_owned(),
        });
    }

    /// Returns a number, or the default if it is not given or the script computes it.
    fn number(&mut self, name: &str, default: u64) -> u64 {
        let value = self.by_name.get(name).and_then(|of| of.value.clone());
        let Some(value) = value else { return default };
        // The provider stores a negative number as a very large one.
        strtol(&value).0.cast_unsigned()
    }

    /// Returns a truth value; false if it is not given.
    fn is_on(&self, name: &str) -> bool {
        let value = self.by_name.get(name).and_then(|of| of.value.as_deref());
        value.and_then(truth).unwrap_or(false)
    }

    /// Replaces a number by `by`, if `if_so`, and adds a finding if the number is given.
    fn replace(
        &mut self,
        name: &str,
        number: &mut u64,
        (if_so, by): (bool, u64),
        why: &str,
        source: &str,
    ) {
        if if_so {
            let says = format!("{why}: the provider uses {}", whole(by));
            self.find(name, Problem::Replaced, says, source);
            *number = by;
        }
    }
}

/// Reads a number as `strtol` with base 0 does: blanks, a sign, and digits, which are hexadecimal
/// after `0x` and octal after `0`. Returns the number and what follows it.
fn strtol(text: &str) -> (i64, &str) {
    let rest = text.trim_start();
    let (negative, rest) = match rest.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix('+').unwrap_or(rest)),
    };
    let hexadecimal = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
    let (base, digits) = match hexadecimal
        .filter(|digits| digits.starts_with(|char: char| char.is_ascii_hexdigit()))
    {
        Some(digits) => (16, digits),
        None if rest.starts_with('0') => (8, rest),
        None => (10, rest),
    };
    let end = digits.find(|char: char| !char.is_digit(base)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let number = match digits {
        "" => 0,
        digits => i64::from_str_radix(digits, base).unwrap_or(i64::MAX),
    };
    (if negative { -number } else { number }, rest.trim_end())
}

/// Reads a truth value as `fi_parse_bool` does (src/var.c:256).
fn truth(text: &str) -> Option<bool> {
    let is = |words: [&str; 4]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match (is(["1", "true", "yes", "on"]), is(["0", "false", "no", "off"])) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Checks settings, with these defaults for those that are not given.
pub(super) fn check(all: &[Assignment], defaults: Defaults, ppn: Option<NonZeroU32>) -> Checked {
    let mut given = Given { by_name: BTreeMap::new(), findings: names(all) };
    for assignment in all {
        if let Some(name) =
            assignment.name.strip_prefix(PREFIX).filter(|name| named(name).is_some())
        {
            given.by_name.insert(name, assignment);
        }
    }
    types(&mut given);
    let mode = mode(&mut given, defaults.mode);
    let memory = sizes(&mut given, mode, defaults);
    let much = memory.all() > MUCH_A_RANK
        || ppn.is_some_and(|ppn| memory.all().saturating_mul(ppn.get().into()) > MUCH_A_NODE);
    if much {
        let of = [
            (memory.queues, &["DEFAULT_CQ_SIZE", "DEFAULT_RX_SIZE"][..]),
            (
                memory.overflow_buffers,
                &["OFLOW_BUF_SIZE", "OFLOW_BUF_MIN_POSTED", "OFLOW_BUF_COUNT"],
            ),
            (memory.request_buffers, &["REQ_BUF_SIZE", "REQ_BUF_MIN_POSTED"]),
        ];
        let (bytes, names) = of.into_iter().max().expect("there are parts");
        if let Some(name) = names.iter().find(|name| given.has(name)) {
            let node = ppn.map_or_else(String::new, |ppn| {
                let bytes = binary(bytes.saturating_mul(ppn.get().into()));
                format!(", {bytes} on a node of {} ranks", whole(ppn.get().into()))
            });
            let says = format!("takes {} a rank{node}", binary(bytes));
            given.find(name, Problem::Memory, says, "");
        }
    }
    let mut findings = given.findings;
    let place = |finding: &Finding| all.iter().position(|of| of.place == finding.place);
    findings.sort_by_key(place);
    Checked { findings, memory }
}

/// Returns the findings on names: unknown ones, and values that the script computes.
fn names(all: &[Assignment]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Assignment { name, value, place } in all {
        let mut find = |problem, says: String, source: &str| {
            findings.push(Finding {
                place: place.clone(),
                name: name.clone(),
                value: value.clone(),
                problem,
                says,
                source: source.to_owned(),
            });
        };
        let known = || VARIABLES.iter().map(|variable| variable.name);
        match name.strip_prefix(PREFIX) {
            Some(word) => match named(word) {
                None => {
                    let near = hint::nearest(word, known());
                    let near = near.map_or_else(String::new, |near| format!("; {PREFIX}{near}?"));
                    let says = format!("the provider has no such variable{near}");
                    find(Problem::Unknown, says, "cxip_info.c:688");
                }
                Some(variable) if value.is_none() => {
                    let says = "the script computes the value: not checked".to_owned();
                    find(Problem::NotChecked, says, variable.source);
                }
                Some(_) => {}
            },
            None => {
                let word = name.strip_prefix("CXI_").or_else(|| name.strip_prefix("FI_CXIP_"));
                if let Some(variable) = word.and_then(named) {
                    let says = format!("the provider reads {PREFIX}{}", variable.name);
                    find(Problem::Unknown, says, variable.source);
                }
            }
        }
    }
    findings
}

/// Checks that a value is of its type.
fn types(given: &mut Given<'_>) {
    for variable in &VARIABLES {
        let value = given.by_name.get(variable.name).and_then(|of| of.value.clone());
        let Some(value) = value else { continue };
        match variable.of {
            Type::Bool if truth(&value).is_none() => {
                let says = "no truth value, so the provider keeps its default: 0 or 1 is expected";
                given.find(variable.name, Problem::Replaced, says, "src/var.c:256");
            }
            Type::Number => {
                let (number, rest) = strtol(&value);
                if !rest.is_empty() {
                    let says = format!("the provider knows no units and reads {number}");
                    given.find(variable.name, Problem::Replaced, says, "src/var.c:403");
                }
            }
            // The match mode is checked apart.
            Type::Word(words) if variable.name != "RX_MATCH_MODE" => {
                let value =
                    if variable.name == "RDZV_PROTO" { value.replace('-', "_") } else { value };
                if !words.contains(&value.as_str()) {
                    let says =
                        format!("no such word, so it is ignored: {} is expected", words.join(", "));
                    given.find(variable.name, Problem::Replaced, says, variable.source);
                }
            }
            _ => {}
        }
    }
}

/// Returns the match mode. The provider compares `hardware` without regard to case, but the others
/// exactly (cxip.h:4073-4089).
fn mode(given: &mut Given<'_>, default: Mode) -> Mode {
    const NAME: &str = "RX_MATCH_MODE";
    let value = given.by_name.get(NAME).and_then(|of| of.value.clone());
    let mode = match value.as_deref() {
        None => default,
        Some("software") => Mode::Software,
        Some("hybrid") => Mode::Hybrid,
        Some(value) if value.eq_ignore_ascii_case("hardware") => Mode::Hardware,
        Some(value) => {
            let lower =
                ["software", "hybrid"].into_iter().find(|of| value.eq_ignore_ascii_case(of));
            let expected = lower
                .map_or("hardware, hybrid or software is expected".to_owned(), |of| {
                    format!("{of} in small letters is expected")
                });
            let says = format!("no such mode, so the provider uses hardware: {expected}");
            given.find(NAME, Problem::Replaced, says, "cxip.h:4083");
            Mode::Hardware
        }
    };
    // A mode that the script computes may be any.
    if given.has(NAME) && value.is_none() {
        return mode;
    }
    for (name, source) in [
        ("HYBRID_PREEMPTIVE", "cxip.h:4091"),
        ("HYBRID_RECV_PREEMPTIVE", "cxip.h:4097"),
        ("HYBRID_POSTED_RECV_PREEMPTIVE", "cxip.h:4103"),
        ("HYBRID_UNEXPECTED_MSG_PREEMPTIVE", "cxip.h:4109"),
    ] {
        if mode != Mode::Hybrid && given.is_on(name) {
            given.find(
                name,
                Problem::NoEffect,
                "has an effect only with RX_MATCH_MODE=hybrid",
                source,
            );
        }
    }
    for name in ["REQ_BUF_SIZE", "REQ_BUF_MIN_POSTED", "REQ_BUF_MAX_CACHED", "REQ_BUF_MAX_COUNT"] {
        if mode == Mode::Hardware {
            let says = "has no effect with RX_MATCH_MODE=hardware, which has no request buffers";
            given.find(name, Problem::NoEffect, says, "cxip_info.c:1063");
        }
    }
    mode
}

/// Checks the numbers in the order in which the provider reads them. Returns the memory.
fn sizes(given: &mut Given<'_>, mode: Mode, defaults: Defaults) -> Memory {
    let mut threshold = given.number("RDZV_THRESHOLD", defaults.rdzv_threshold);
    let too_small = (threshold < INJECT, INJECT);
    given.replace("RDZV_THRESHOLD", &mut threshold, too_small, "at least 192", "cxip_info.c:874");
    let mut get_min = given.number("RDZV_GET_MIN", defaults.rdzv_get_min);
    let mut eager = given.number("RDZV_EAGER_SIZE", defaults.rdzv_eager_size);
    let above = (eager > threshold, threshold);
    let why = "more than RDZV_THRESHOLD";
    given.replace("RDZV_EAGER_SIZE", &mut eager, above, why, "cxip_info.c:900");
    let oflow = given.number("OFLOW_BUF_SIZE", defaults.oflow_buf_size);
    let above = (threshold > oflow, 16_384);
    let why = "more than OFLOW_BUF_SIZE";
    let names = ["RDZV_THRESHOLD", "OFLOW_BUF_SIZE"];
    let name = names.into_iter().find(|name| given.has(name)).unwrap_or(names[0]);
    if name == names[0] {
        given.replace(name, &mut threshold, above, why, "cxip_info.c:912");
    } else if above.0 {
        let says = "less than RDZV_THRESHOLD: the provider uses a threshold of 16,384";
        given.find(name, Problem::Replaced, says, "cxip_info.c:912");
        threshold = above.1;
    }
    // The provider subtracts without regard to a sign.
    let above = (get_min > oflow.wrapping_sub(threshold), 0);
    let why = "more than OFLOW_BUF_SIZE less RDZV_THRESHOLD";
    given.replace("RDZV_GET_MIN", &mut get_min, above, why, "cxip_info.c:918");
    let posted = given.number("OFLOW_BUF_COUNT", defaults.oflow_buf_min_posted);
    let posted = given.number("OFLOW_BUF_MIN_POSTED", posted);
    if given.has("OFLOW_BUF_COUNT") && given.has("OFLOW_BUF_MIN_POSTED") {
        let says = "has no effect beside OFLOW_BUF_MIN_POSTED";
        given.find("OFLOW_BUF_COUNT", Problem::NoEffect, says, "cxip_info.c:925");
    }
    let mut cached = given.number("OFLOW_BUF_MAX_CACHED", posted.saturating_mul(3));
    let below = (cached > 0 && cached < posted, posted);
    let why = "less than OFLOW_BUF_MIN_POSTED";
    given.replace("OFLOW_BUF_MAX_CACHED", &mut cached, below, why, "cxip_info.c:942");
    let (mut request, mut requests) = (defaults.req_buf_size, defaults.req_buf_min_posted);
    if mode != Mode::Hardware {
        request = given.number("REQ_BUF_SIZE", request);
        let least = threshold.saturating_add(get_min);
        // The header has a few tens of bytes more.
        if request < least {
            let says = format!(
                "less than RDZV_THRESHOLD plus RDZV_GET_MIN: the provider uses {} and a header",
                whole(least)
            );
            given.find("REQ_BUF_SIZE", Problem::Replaced, says, "cxip_info.c:1067");
            request = least;
        }
        requests = given.number("REQ_BUF_MIN_POSTED", requests);
        let few = (requests < 2, 2);
        given.replace("REQ_BUF_MIN_POSTED", &mut requests, few, "at least 2", "cxip_info.c:1073");
        for name in ["REQ_BUF_MAX_COUNT", "REQ_BUF_MAX_CACHED"] {
            let mut cached = given.number(name, 0);
            let below = (cached > 0 && cached < requests, requests);
            let why = "less than REQ_BUF_MIN_POSTED";
            given.replace(name, &mut cached, below, why, "cxip_info.c:1080");
        }
    }
    let queues = queues(given, defaults);
    Memory {
        queues,
        overflow_buffers: match mode {
            Mode::Software => 0,
            Mode::Hardware | Mode::Hybrid => oflow.saturating_mul(posted),
        },
        request_buffers: match mode {
            Mode::Hardware => 0,
            Mode::Hybrid | Mode::Software => request.saturating_mul(requests),
        },
    }
}

/// Checks the sizes of queues. Returns the bytes of both event queues.
fn queues(given: &mut Given<'_>, defaults: Defaults) -> u64 {
    let mut cq = given.number("DEFAULT_CQ_SIZE", defaults.cq_size);
    let why = "at least 1";
    let none = (cq == 0, 131_072);
    given.replace("DEFAULT_CQ_SIZE", &mut cq, none, why, "cxip_info.c:1133");
    let mut fill = given.number("CQ_FILL_PERCENT", 50);
    let wrong = (!(1..=100).contains(&fill), 50);
    given.replace("CQ_FILL_PERCENT", &mut fill, wrong, "1 to 100 is expected", "cxip_info.c:1159");
    let mut tx = given.number("DEFAULT_TX_SIZE", defaults.tx_size);
    let wrong = (!(16..=16_384).contains(&tx), 1_024);
    let why = "16 to 16,384 is expected";
    given.replace("DEFAULT_TX_SIZE", &mut tx, wrong, why, "cxip_info.c:1241");
    let mut rx = given.number("DEFAULT_RX_SIZE", defaults.rx_size);
    let wrong = (!(16..=15_360).contains(&rx), 1_024);
    let why = "16 to 15,360 is expected";
    given.replace("DEFAULT_RX_SIZE", &mut rx, wrong, why, "cxip_info.c:1253");
    // Slots that the provider needs: two for each receive, and some of its own.
    let needed = 2 * rx + 36;
    let is_huge = !given.is_on("DISABLE_CQ_HUGETLB") && !given.is_on("DISABLE_EQ_HUGETLB");
    let slots = cq.max(needed);
    let page = if is_huge { HUGE } else { 4_096 };
    let bytes = |slots: u64| slots.saturating_mul(EVENT).div_ceil(page).saturating_mul(page);
    if bytes(slots) == bytes(needed) && cq > 0 && cq < slots.max(page / EVENT) {
        let has = bytes(slots) / EVENT;
        let pages = if is_huge { "in huge pages of 2 MiB" } else { "in pages of 4 KiB" };
        let says = format!("has no effect: {pages}, a queue has {} slots anyway", whole(has));
        given.find("DEFAULT_CQ_SIZE", Problem::NoEffect, says, "cxip_evtq.c:449");
    }
    bytes(slots).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::super::stacks::Stack;
    use super::*;

    fn set(words: &str) -> Vec<Assignment> {
        let words = words.split_whitespace().filter_map(|word| word.split_once('='));
        let set = |(name, value): (&str, &str)| Assignment {
            name: match name.strip_prefix("F_") {
                Some(name) => format!("{PREFIX}{name}"),
                None => name.to_owned(),
            },
            value: (value != "$").then(|| value.to_owned()),
            place: "job.sh:1".to_owned(),
        };
        words.map(set).collect()
    }

    fn checked(words: &str, ppn: Option<u32>) -> Checked {
        check(&set(words), Stack::Libfabric.values(), ppn.and_then(NonZeroU32::new))
    }

    fn told(words: &str) -> Vec<String> {
        let findings = checked(words, None).findings;
        findings.iter().map(|of| format!("{}: {}", of.name.replace(PREFIX, ""), of.says)).collect()
    }

    #[test]
    fn numbers_are_those_of_strtol() {
        for (text, number, rest) in [
            ("16MB", 16, "MB"),
            ("131072", 131_072, ""),
            ("0x10", 16, ""),
            ("010", 8, ""),
            ("08", 0, "8"),
            (" -5 ", -5, ""),
            ("+7", 7, ""),
            ("all", 0, "all"),
            ("", 0, ""),
            ("0x", 0, "x"),
            ("99999999999999999999", i64::MAX, ""),
            ("1,024", 1, ",024"),
        ] {
            assert_eq!(strtol(text), (number, rest), "{text}");
        }
    }

    #[test]
    fn defaults_of_each_stack_are_accepted() {
        for stack in [Stack::Libfabric, Stack::CrayMpich, Stack::Shs] {
            let Checked { findings, .. } = check(&[], stack.values(), NonZeroU32::new(128));
            assert_eq!(findings, [], "{}", stack.name());
        }
        assert_eq!(told("F_DEFAULT_TX_SIZE=16384 F_RX_MATCH_MODE=hybrid OTHER=1"), [""; 0]);
        let all = "F_RX_MATCH_MODE=Hardware F_OPTIMIZED_MRS=False F_RDZV_PROTO=alt-read \
                   F_RDZV_THRESHOLD=192 F_DEFAULT_RX_SIZE=15360 F_CQ_FILL_PERCENT=100 \
                   F_DEVICE_NAME=cxi0,cxi1 F_LLRING_MODE=never F_DEFAULT_CQ_SIZE=131072";
        assert_eq!(told(all), [""; 0]);
    }

    #[test]
    fn values_that_the_provider_replaces_are_found() {
        for (words, expected) in [
            (
                "F_DEFAULT_TX_SIZE=131072",
                "DEFAULT_TX_SIZE: 16 to 16,384 is expected: the provider uses 1,024",
            ),
            (
                "F_DEFAULT_TX_SIZE=15",
                "DEFAULT_TX_SIZE: 16 to 16,384 is expected: the provider uses 1,024",
            ),
            (
                "F_DEFAULT_RX_SIZE=15361",
                "DEFAULT_RX_SIZE: 16 to 15,360 is expected: the provider uses 1,024",
            ),
            ("F_RDZV_THRESHOLD=191", "RDZV_THRESHOLD: at least 192: the provider uses 192"),
            ("F_CQ_FILL_PERCENT=0", "CQ_FILL_PERCENT: 1 to 100 is expected: the provider uses 50"),
            (
                "F_CQ_FILL_PERCENT=101",
                "CQ_FILL_PERCENT: 1 to 100 is expected: the provider uses 50",
            ),
            (
                "F_RX_MATCH_MODE=hybird",
                "RX_MATCH_MODE: no such mode, so the provider uses hardware: hardware, hybrid or software is expected",
            ),
            (
                "F_RX_MATCH_MODE=Hybrid",
                "RX_MATCH_MODE: no such mode, so the provider uses hardware: hybrid in small letters is expected",
            ),
            (
                "F_RDZV_EAGER_SIZE=16385",
                "RDZV_EAGER_SIZE: more than RDZV_THRESHOLD: the provider uses 16,384",
            ),
            (
                "F_RDZV_THRESHOLD=12582913",
                "RDZV_THRESHOLD: more than OFLOW_BUF_SIZE: the provider uses 16,384",
            ),
            (
                "F_OFLOW_BUF_SIZE=8192",
                "OFLOW_BUF_SIZE: less than RDZV_THRESHOLD: the provider uses a threshold of 16,384",
            ),
            (
                "F_RDZV_GET_MIN=12566529",
                "RDZV_GET_MIN: more than OFLOW_BUF_SIZE less RDZV_THRESHOLD: the provider uses 0",
            ),
            (
                "F_ODP=ja",
                "ODP: no truth value, so the provider keeps its default: 0 or 1 is expected",
            ),
            (
                "F_LLRING_MODE=Idle",
                "LLRING_MODE: no such word, so it is ignored: always, idle, never is expected",
            ),
            ("F_DEFAULT_CQ_SIZE=0", "DEFAULT_CQ_SIZE: at least 1: the provider uses 131,072"),
            (
                "F_OFLOW_BUF_MAX_CACHED=2",
                "OFLOW_BUF_MAX_CACHED: less than OFLOW_BUF_MIN_POSTED: the provider uses 3",
            ),
            (
                "F_RX_MATCH_MODE=hybrid F_REQ_BUF_MIN_POSTED=1",
                "REQ_BUF_MIN_POSTED: at least 2: the provider uses 2",
            ),
            (
                "F_RX_MATCH_MODE=software F_REQ_BUF_MAX_CACHED=5",
                "REQ_BUF_MAX_CACHED: less than REQ_BUF_MIN_POSTED: the provider uses 6",
            ),
        ] {
            assert_eq!(told(words), [expected], "{words}");
        }
        // A public environment: 16MB is 16, which is less than a message of 2,000 bytes and a header.
        assert_eq!(
            told(
                "F_RX_MATCH_MODE=software F_REQ_BUF_SIZE=16MB F_RDZV_THRESHOLD=2000 F_RDZV_GET_MIN=0 \
                  F_RDZV_EAGER_SIZE=2000"
            ),
            [
                "REQ_BUF_SIZE: the provider knows no units and reads 16",
                "REQ_BUF_SIZE: less than RDZV_THRESHOLD plus RDZV_GET_MIN: the provider uses 2,000 \
                 and a header",
            ]
        );
        // The last of several values counts.
        assert_eq!(told("F_DEFAULT_TX_SIZE=9 F_DEFAULT_TX_SIZE=99"), [""; 0]);
    }

    #[test]
    fn names_and_values_without_effect_are_found() {
        for (words, expected) in [
            (
                "F_RX_MATCHMODE=hybrid",
                "RX_MATCHMODE: the provider has no such variable; FI_CXI_RX_MATCH_MODE?",
            ),
            ("F_QQQQ=1", "QQQQ: the provider has no such variable"),
            (
                "CXI_DEFAULT_CQ_SIZE=1",
                "CXI_DEFAULT_CQ_SIZE: the provider reads FI_CXI_DEFAULT_CQ_SIZE",
            ),
            (
                "F_DEFAULT_CQ_SIZE=32767",
                "DEFAULT_CQ_SIZE: has no effect: in huge pages of 2 MiB, a queue has 32,768 slots anyway",
            ),
            (
                "F_DISABLE_EQ_HUGETLB=1 F_DEFAULT_CQ_SIZE=1024",
                "DEFAULT_CQ_SIZE: has no effect: in pages of 4 KiB, a queue has 2,112 slots anyway",
            ),
            (
                "F_REQ_BUF_SIZE=8388608",
                "REQ_BUF_SIZE: has no effect with RX_MATCH_MODE=hardware, which has no request buffers",
            ),
            (
                "F_HYBRID_PREEMPTIVE=1",
                "HYBRID_PREEMPTIVE: has an effect only with RX_MATCH_MODE=hybrid",
            ),
            (
                "F_OFLOW_BUF_COUNT=4 F_OFLOW_BUF_MIN_POSTED=5",
                "OFLOW_BUF_COUNT: has no effect beside OFLOW_BUF_MIN_POSTED",
            ),
            ("F_DEFAULT_TX_SIZE=$", "DEFAULT_TX_SIZE: the script computes the value: not checked"),
        ] {
            assert_eq!(told(words), [expected], "{words}");
        }
        for words in [
            "F_HYBRID_PREEMPTIVE=0",
            "F_HYBRID_PREEMPTIVE=1 F_RX_MATCH_MODE=hybrid",
            "F_DEFAULT_CQ_SIZE=32769",
            "F_DISABLE_EQ_HUGETLB=1 F_DEFAULT_CQ_SIZE=32767",
        ] {
            assert_eq!(told(words), [""; 0], "{words}");
        }
        // A mode that only the shell knows may be hybrid.
        assert_eq!(told("F_RX_MATCH_MODE=$ F_HYBRID_PREEMPTIVE=1").len(), 1);
    }

    #[test]
    fn memory_is_that_of_queues_and_buffers() {
        const MIB: u64 = 1 << 20;
        let of = |words: &str| {
            let memory = check(&set(words), Stack::CrayMpich.values(), None).memory;
            [memory.queues, memory.overflow_buffers, memory.request_buffers]
                .map(|bytes| bytes / MIB)
        };
        assert_eq!(of(""), [16, 36, 0]);
        assert_eq!(of("F_RX_MATCH_MODE=hybrid"), [16, 36, 72]);
        assert_eq!(of("F_RX_MATCH_MODE=software"), [16, 0, 72]);
        let small = "F_RX_MATCH_MODE=hybrid F_DEFAULT_CQ_SIZE=32768 F_OFLOW_BUF_SIZE=1048576 \
                     F_REQ_BUF_SIZE=1048576";
        assert_eq!(of(small), [4, 3, 6]);
        let hybrid = check(&set("F_RX_MATCH_MODE=hybrid"), Stack::CrayMpich.values(), None).memory;
        assert_eq!(
            hybrid.sentence(NonZeroU32::new(128)),
            "Memory of a rank: 124 MiB (16 MiB of event queues, 36 MiB of overflow buffers, 72 MiB of \
             request buffers), and 15.5 GiB on a node of 128 ranks."
        );
        // A public environment asks for 100 GiB of event queues on a node.
        let Checked { findings, memory } = checked("F_DEFAULT_CQ_SIZE=13107200", Some(64));
        assert_eq!(memory.queues, 2 * 800 * MIB);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].says, "takes 1.6 GiB a rank, 100 GiB on a node of 64 ranks");
        assert_eq!(findings[0].problem, Problem::Memory);
        assert_eq!(binary(1_023), "1,023 B");
        assert_eq!([binary(1_536), binary(4_096)], ["1.5 KiB", "4 KiB"]);
    }

    #[test]
    fn each_variable_has_its_own_name() {
        let mut names: Vec<_> = VARIABLES.iter().map(|variable| variable.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), VARIABLES.len());
    }
}
