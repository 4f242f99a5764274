// SPDX-License-Identifier: BSD-2-Clause
//! Checks settings of the provider cxi as the provider itself reads them (libfabric af8ddbe,
//! prov/cxi/src/cxip_info.c, `cxip_env_init`), and computes the memory of its queues and buffers.
//!
//! ```text
//! number    = strtol(value), with 32 or 64 bits: a suffix is dropped
//! replaced  = out of range, or in conflict with another setting
//! memory    = 2 event queues + overflow buffers (hardware, hybrid)
//!             + request buffers (hybrid, software)
//! a queue   = 64 bytes * max(slots that are needed, DEFAULT_CQ_SIZE), in huge pages of 2 MiB
//! ```
//! A value is checked by itself at each place. Rules of several settings are applied only if each of
//! them has one value that is known.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use serde::Serialize;

use super::assignments::Assignment;
use super::stacks::{Defaults, Mode};
use super::variables::{PREFIX, Type, VARIABLES, Variable, named};
use crate::hint;
use crate::text::{count, whole};

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
    pub(super) source: &'static str,
    /// Place of the setting among all.
    #[serde(skip)]
    pub(super) order: usize,
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
    /// Number of settings that are given but not known, so that their defaults are assumed.
    #[serde(skip)]
    assumed: u32,
}

/// The findings, and the memory of a rank with these settings.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    pub(super) findings: Vec<Finding>,
    #[serde(rename = "bytes_a_rank")]
    pub(super) memory: Memory,
    /// Number of settings that are given but not known, whose defaults the memory assumes.
    assumed_defaults: u32,
}

impl Memory {
    pub(super) fn all(&self) -> u64 {
        self.queues.saturating_add(self.overflow_buffers).saturating_add(self.request_buffers)
    }

    /// Returns a sentence on the memory of a rank, and of a node of `ppn` ranks.
    pub(super) fn sentence(&self, ppn: Option<NonZeroU32>) -> String {
        let Self { queues, overflow_buffers, request_buffers, assumed } = *self;
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
            format!(", and {} on a node of {}", binary(all), count(ppn.get().into(), "rank"))
        });
        let assumed = match assumed {
            0 => String::new(),
            1 => ", with the default of 1 setting that is not checked".to_owned(),
            number => {
                format!(
                    ", with the defaults of {} settings that are not checked",
                    whole(number.into())
                )
            }
        };
        format!("Memory of a rank: {} ({}){node}{assumed}.", binary(self.all()), parts.join(", "))
    }
}

/// Returns a number of bytes with a unit, such as `12 MiB` or `15.5 GiB`.
pub(super) fn binary(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_024 => (1, "B"),
        1_024..1_048_576 => (1 << 10, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    match bytes % unit {
        0 => format!("{} {name}", whole(bytes / unit)),
        _ if bytes / unit >= 1_000 => format!("{} {name}", whole(bytes / unit)),
        _ => format!("{:.1} {name}", bytes as f64 / unit as f64),
    }
}

/// A number that the provider replaces: name, range, what it uses below and above the range, and the
/// line of the source.
type Bounds = (&'static str, [i128; 2], [i128; 2], &'static str);

/// No upper end of a range.
const ANY: i128 = i128::MAX;

const BOUNDS: [Bounds; 13] = [
    ("DEFAULT_TX_SIZE", [16, 16_384], [1_024, 1_024], "cxip_info.c:1241"),
    ("DEFAULT_RX_SIZE", [16, 15_360], [1_024, 1_024], "cxip_info.c:1253"),
    ("DEFAULT_CQ_SIZE", [1, ANY], [131_072, 0], "cxip_info.c:1133"),
    ("CQ_FILL_PERCENT", [1, 100], [50, 50], "cxip_info.c:1159"),
    ("RDZV_THRESHOLD", [192, ANY], [192, 0], "cxip_info.c:874"),
    ("ZBCOLL_RADIX", [2, ANY], [2, 0], "cxip_info.c:1000"),
    ("EQ_ACK_BATCH_SIZE", [1, ANY], [1, 0], "cxip_info.c:1035"),
    ("FC_RETRY_USEC_DELAY", [0, ANY], [0, 0], "cxip_info.c:1094"),
    ("SW_RX_TX_INIT_MAX", [64, ANY], [64, 0], "cxip_info.c:1111"),
    ("CTRL_RX_EQ_MAX_SIZE", [1, ANY], [67_108_864, 0], "cxip_info.c:1122"),
    ("COLL_RETRY_USEC", [1, 32_000], [1, 32_000], "cxip_info.c:1220"),
    ("COLL_TIMEOUT_USEC", [1, 20_000_000], [1, 20_000_000], "cxip_info.c:1231"),
    ("RNR_MAX_TIMEOUT_US", [0, ANY], [500_000, 0], "cxip_info.c:731"),
];

/// The value of a setting, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known<'a> {
    Unset,
    One(&'a str),
    /// The script computes it, or sets it to different values.
    No,
}

/// The settings that are given, by name without [`PREFIX`].
struct Given<'a> {
    by_name: BTreeMap<&'a str, Vec<(usize, &'a Assignment)>>,
    findings: Vec<Finding>,
    /// Names of settings that are not known although a rule needs them.
    unknown: BTreeSet<&'static str>,
}

impl<'a> Given<'a> {
    fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns what is known of a setting.
    fn known(&mut self, name: &'static str) -> Known<'a> {
        let Some(all) = self.by_name.get(name) else { return Known::Unset };
        let first = all[0].1.value.as_deref();
        match first.filter(|_| all.iter().all(|(_, of)| of.value.as_deref() == first)) {
            Some(value) => Known::One(value),
            None => {
                self.unknown.insert(name);
                Known::No
            }
        }
    }

    /// Adds a finding at each place where a setting is given.
    fn find(
        &mut self,
        name: &str,
        problem: Problem,
        says: impl Into<String>,
        source: &'static str,
    ) {
        let says = says.into();
        for (order, of) in self.by_name.get(name).into_iter().flatten() {
            self.findings.push(finding(*order, of, problem, says.clone(), source));
        }
    }

    /// Returns a number as the provider uses it; the default if it is not given, and `None` if it is
    /// not known.
    fn number(&mut self, name: &'static str, default: u64) -> Option<u64> {
        match self.known(name) {
            Known::Unset => Some(default),
            Known::No => None,
            Known::One(value) => {
                let of = named(name).map_or(Type::Size, |variable| variable.of);
                let number = read(of, value).0;
                Some(bounded(name, number).map_or(number, |(used, _)| used) as u64)
            }
        }
    }

    /// Returns a truth value; `default` if it is not given, and `None` if it is not known.
    fn truth(&mut self, name: &'static str, default: bool) -> Option<bool> {
        match self.known(name) {
            Known::Unset => Some(default),
            Known::No => None,
            Known::One(value) => Some(truth(value).unwrap_or(default)),
        }
    }
}

fn finding(
    order: usize,
    of: &Assignment,
    problem: Problem,
    says: String,
    source: &'static str,
) -> Finding {
    let Assignment { name, value, place } = of.clone();
    Finding { place, name, value, problem, says, source, order }
}

/// Returns what the provider uses instead of a number out of its range, and the line of the source.
/// Returns `None` if it uses the number.
fn bounded(name: &str, number: i128) -> Option<(i128, &'static Bounds)> {
    let bounds = BOUNDS.iter().find(|of| of.0 == name)?;
    let (_, [least, most], [below, above], _) = *bounds;
    match number {
        _ if number < least => Some((below, bounds)),
        _ if number > most => Some((above, bounds)),
        _ => None,
    }
}

/// Reads a number of a type. Returns it with what follows it.
fn read(of: Type, text: &str) -> (i128, &str) {
    let (number, rest) = strtol(text);
    match of {
        Type::Int => (i128::from(number as i32), rest),
        // The provider stores a negative number as a very large one.
        _ => (i128::from(number.cast_unsigned()), rest),
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
    let is_digit = |char: char| char.is_ascii_hexdigit();
    let (base, digits) = match hexadecimal.filter(|digits| digits.starts_with(is_digit)) {
        Some(digits) => (16, digits),
        None if rest.starts_with('0') => (8, rest),
        None => (10, rest),
    };
    let end = digits.find(|char: char| !char.is_digit(base)).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let most = if negative { i64::MIN } else { i64::MAX };
    let number = match digits {
        "" => 0,
        digits => match i128::from_str_radix(digits, base) {
            Ok(number) => i64::try_from(if negative { -number } else { number }).unwrap_or(most),
            Err(_) => most,
        },
    };
    (number, rest.trim_end())
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
    let (by_name, unknown) = (BTreeMap::new(), BTreeSet::new());
    let mut given = Given { by_name, findings: Vec::new(), unknown };
    for (order, assignment) in all.iter().enumerate() {
        alone(order, assignment, &mut given.findings);
        let name = assignment.name.strip_prefix(PREFIX).filter(|name| named(name).is_some());
        let Some(name) = name else { continue };
        given.by_name.entry(name).or_default().push((order, assignment));
    }
    let mode = mode(&mut given, defaults.mode);
    let memory = sizes(&mut given, mode, defaults);
    if given.truth("FORCE_ODP", false) == Some(true) && given.truth("ODP", true) == Some(false) {
        let says = "has no effect beside FORCE_ODP, which switches it on";
        given.find("ODP", Problem::NoEffect, says, "cxip_info.c:785");
    }
    let much = memory.all() > MUCH_A_RANK
        || ppn.is_some_and(|ppn| memory.all().saturating_mul(ppn.get().into()) > MUCH_A_NODE);
    if much {
        blame(&mut given, &memory, defaults, ppn);
    }
    for name in std::mem::take(&mut given.unknown) {
        let last = given.by_name.get(name).and_then(|all| all.last());
        if let Some((order, of)) = last.filter(|(_, of)| of.value.is_some()) {
            let says =
                "has several values in this script, so rules that combine settings leave it out";
            let finding = finding(*order, of, Problem::NotChecked, says.to_owned(), "");
            given.findings.push(finding);
        }
    }
    let mut findings = given.findings;
    // A default that has no effect does what the script says.
    let defaults = defaults.all();
    let is_default = |of: &Finding| {
        let name = of.name.strip_prefix(PREFIX);
        defaults
            .iter()
            .any(|(default, value)| name == Some(default) && of.value.as_ref() == Some(value))
    };
    findings.retain(|of| of.problem != Problem::NoEffect || !is_default(of));
    findings.sort_by_key(|finding| finding.order);
    Checked { findings, memory, assumed_defaults: memory.assumed }
}

/// Adds a finding on the setting that takes most of the memory, if one is given and is larger than
/// its default.
fn blame(given: &mut Given<'_>, memory: &Memory, defaults: Defaults, ppn: Option<NonZeroU32>) {
    let of = [
        (memory.queues, &[("DEFAULT_CQ_SIZE", defaults.cq_size)][..]),
        (
            memory.overflow_buffers,
            &[
                ("OFLOW_BUF_SIZE", defaults.oflow_buf_size),
                ("OFLOW_BUF_MIN_POSTED", defaults.oflow_buf_min_posted),
                ("OFLOW_BUF_COUNT", defaults.oflow_buf_min_posted),
            ],
        ),
        (
            memory.request_buffers,
            &[
                ("REQ_BUF_SIZE", defaults.req_buf_size),
                ("REQ_BUF_MIN_POSTED", defaults.req_buf_min_posted),
            ],
        ),
    ];
    let (bytes, names) = of.into_iter().max_by_key(|of| of.0).expect("there are parts");
    let larger = |(name, default): &&(&'static str, u64)| {
        given.number(name, *default).is_some_and(|number| number > *default)
    };
    let Some((name, _)) = names.iter().find(larger) else { return };
    let node = ppn.map_or_else(String::new, |ppn| {
        let bytes = binary(bytes.saturating_mul(ppn.get().into()));
        format!(", {bytes} on a node of {} ranks", whole(ppn.get().into()))
    });
    let says = format!("takes {} a rank{node}", binary(bytes));
    given.find(name, Problem::Memory, says, "");
}

/// Adds the findings on one setting by itself.
fn alone(order: usize, of: &Assignment, findings: &mut Vec<Finding>) {
    let Assignment { name, value, .. } = of;
    let mut find = |problem, says: String, source| {
        findings.push(finding(order, of, problem, says, source));
    };
    let Some(word) = name.strip_prefix(PREFIX) else {
        let word = name.strip_prefix("CXI_").or_else(|| name.strip_prefix("FI_CXIP_"));
        if let Some(variable) = word.and_then(named) {
            let says = format!("the provider reads {PREFIX}{}", variable.name);
            find(Problem::Unknown, says, variable.source);
        }
        return;
    };
    let Some(variable) = named(word) else {
        let near = hint::nearest(word, VARIABLES.iter().map(|variable| variable.name));
        let near = near.map_or_else(String::new, |near| format!(", but {PREFIX}{near}"));
        let says = format!("the provider has no such variable{near}");
        return find(Problem::Unknown, says, "cxip_info.c:690");
    };
    let Some(value) = value else {
        let says = "is not checked, because the script computes it".to_owned();
        return find(Problem::NotChecked, says, variable.source);
    };
    let Variable { name, of, source } = *variable;
    if value.ends_with('\r') {
        let says = "ends with a carriage return, because the script has the line ends of Windows, and \
                    the provider gets it, too";
        return find(Problem::Replaced, says.to_owned(), source);
    }
    match of {
        Type::Bool if truth(value).is_none() => {
            let says = "the provider expects 0 or 1, and keeps its default";
            find(Problem::Replaced, says.to_owned(), "src/var.c:391");
        }
        Type::Int | Type::Size => {
            let (number, rest) = read(of, value);
            let line = if of == Type::Int { "src/var.c:385" } else { "src/var.c:403" };
            if let Some(says) = misread(of, value, number, rest) {
                find(Problem::Replaced, says, line);
            }
            if let Some((used, (_, [least, most], _, source))) = bounded(name, number) {
                let range = match *most {
                    ANY => format!("at least {}", whole(*least as u64)),
                    most => format!("{} to {}", whole(*least as u64), whole(most as u64)),
                };
                let says = format!("the provider expects {range}, and uses {}", whole(used as u64));
                find(Problem::Replaced, says, source);
            }
        }
        Type::Word(words) if name == "RX_MATCH_MODE" => {
            // `hardware` is compared without regard to case, but the others exactly.
            let lower = words.iter().find(|of| value.eq_ignore_ascii_case(of));
            if !words.contains(&value.as_str()) && lower != Some(&"hardware") {
                let expected = match lower {
                    Some(lower) => format!("{lower} in small letters"),
                    None => "hardware, hybrid or software".to_owned(),
                };
                let says = format!("the provider expects {expected}, and uses hardware");
                find(Problem::Replaced, says, "cxip.h:4083");
            }
        }
        Type::Word(words) => {
            let plain = if name == "RDZV_PROTO" { value.replace('-', "_") } else { value.clone() };
            if !words.contains(&plain.as_str()) {
                let says =
                    format!("the provider expects one of {}, and ignores it", words.join(", "));
                find(Problem::Replaced, says, source);
            }
        }
        Type::Text if name == "DEVICE_NAME" && !value.split(',').all(is_device) => {
            let says = "the provider expects a list such as cxi0,cxi1, and ignores it".to_owned();
            find(Problem::Replaced, says, "cxip_info.c:829");
        }
        Type::Text if name == "COLL_FABRIC_MGR_URL" => {
            let lower = value.to_ascii_lowercase();
            if !["http://", "https://"]
                .iter()
                .any(|of| lower.len() > of.len() && lower.starts_with(of))
            {
                let says = "the provider expects http:// or https://, and ignores it".to_owned();
                find(Problem::Replaced, says, "cxip_info.c:1184");
            }
        }
        Type::Bool | Type::Text => {}
    }
}

/// Returns what a number is read as, if a reader would expect another one.
fn misread(of: Type, value: &str, number: i128, rest: &str) -> Option<String> {
    let told = if number < 0 {
        format!("-{}", whole(number.unsigned_abs() as u64))
    } else {
        whole(number as u64)
    };
    let read = value.trim().strip_suffix(rest).unwrap_or_default();
    let digits = read.trim_start_matches(['+', '-']);
    match () {
        () if digits.is_empty() => Some(format!("is no number, and the provider reads {told}")),
        () if !rest.is_empty() => {
            Some(format!("the provider knows no units, stops before `{rest}`, and reads {told}"))
        }
        () if of == Type::Size && read.starts_with('-') && number != 0 => {
            Some(format!("is negative, and the provider reads {told}"))
        }
        () if digits.len() > 1
            && digits.chars().all(|char| char.is_digit(8))
            && digits.starts_with('0') =>
        {
            Some(format!("is octal, because it begins with 0, and the provider reads {told}"))
        }
        () => None,
    }
}

/// Returns true for `cxi0` to `cxi99`.
fn is_device(text: &str) -> bool {
    let number =
        text.strip_prefix("cxi").filter(|number| number.chars().all(|char| char.is_ascii_digit()));
    number.is_some_and(|number| number.len() == 1 || number.len() == 2 && !number.starts_with('0'))
}

/// Returns the match mode, or `None` if it is not known. Adds findings on settings that have no
/// effect in it.
fn mode(given: &mut Given<'_>, default: Mode) -> Option<Mode> {
    let mode = match given.known("RX_MATCH_MODE") {
        Known::Unset => default,
        Known::No => return None,
        Known::One("software") => Mode::Software,
        Known::One("hybrid") => Mode::Hybrid,
        Known::One(_) => Mode::Hardware,
    };
    for (name, source) in [
        ("HYBRID_PREEMPTIVE", "cxip.h:4091"),
        ("HYBRID_RECV_PREEMPTIVE", "cxip.h:4097"),
        ("HYBRID_POSTED_RECV_PREEMPTIVE", "cxip.h:4103"),
        ("HYBRID_UNEXPECTED_MSG_PREEMPTIVE", "cxip.h:4109"),
    ] {
        if mode != Mode::Hybrid && given.truth(name, false) == Some(true) {
            given.find(
                name,
                Problem::NoEffect,
                "has an effect only with RX_MATCH_MODE=hybrid",
                source,
            );
        }
    }
    let (names, says, source) = match mode {
        Mode::Hybrid => return Some(mode),
        Mode::Hardware => (
            &["REQ_BUF_SIZE", "REQ_BUF_MIN_POSTED", "REQ_BUF_MAX_CACHED", "REQ_BUF_MAX_COUNT"][..],
            "has no effect with RX_MATCH_MODE=hardware, which has no request buffers",
            "cxip_info.c:1063",
        ),
        Mode::Software => (
            &["OFLOW_BUF_MIN_POSTED", "OFLOW_BUF_COUNT", "OFLOW_BUF_MAX_CACHED"][..],
            "has no effect with RX_MATCH_MODE=software, which has no overflow buffers",
            "cxip_msg_hpc.c:3970",
        ),
    };
    names.iter().for_each(|name| given.find(name, Problem::NoEffect, says, source));
    Some(mode)
}

/// Checks the sizes of buffers in the order in which the provider reads them. Returns the memory.
fn sizes(given: &mut Given<'_>, mode: Option<Mode>, defaults: Defaults) -> Memory {
    let mut threshold = given.number("RDZV_THRESHOLD", defaults.rdzv_threshold);
    let eager = given.number("RDZV_EAGER_SIZE", defaults.rdzv_eager_size);
    if let (Some(threshold), Some(eager)) = (threshold, eager)
        && eager > threshold
    {
        let says =
            format!("is more than RDZV_THRESHOLD, so the provider uses {}", whole(threshold));
        given.find("RDZV_EAGER_SIZE", Problem::Replaced, says, "cxip_info.c:900");
    }
    let oflow = given.number("OFLOW_BUF_SIZE", defaults.oflow_buf_size);
    if let (Some(number), Some(oflow)) = (threshold, oflow)
        && number > oflow
    {
        const SOURCE: &str = "cxip_info.c:912";
        if given.has("OFLOW_BUF_SIZE") {
            let says = format!(
                "is less than RDZV_THRESHOLD ({}), which the provider then sets to 16,384",
                whole(number)
            );
            given.find("OFLOW_BUF_SIZE", Problem::Replaced, says, SOURCE);
        } else {
            let says = "is more than OFLOW_BUF_SIZE, so the provider uses 16,384";
            given.find("RDZV_THRESHOLD", Problem::Replaced, says, SOURCE);
        }
        threshold = Some(16_384);
    }
    let mut get_min = given.number("RDZV_GET_MIN", defaults.rdzv_get_min);
    if let (Some(threshold), Some(oflow), Some(number)) = (threshold, oflow, get_min)
        // The provider subtracts without regard to a sign.
        && number > oflow.wrapping_sub(threshold)
    {
        let says = "is more than OFLOW_BUF_SIZE less RDZV_THRESHOLD, so the provider uses 0";
        given.find("RDZV_GET_MIN", Problem::Replaced, says, "cxip_info.c:918");
        get_min = Some(0);
    }
    // Of two names of a number, the second counts if it is given.
    let posted = match given.has("OFLOW_BUF_MIN_POSTED") {
        true => "OFLOW_BUF_MIN_POSTED",
        false => "OFLOW_BUF_COUNT",
    };
    for (first, second, unused_in, source) in [
        ("OFLOW_BUF_COUNT", "OFLOW_BUF_MIN_POSTED", Some(Mode::Software), "cxip_info.c:925"),
        ("REQ_BUF_MAX_COUNT", "REQ_BUF_MAX_CACHED", Some(Mode::Hardware), "cxip_info.c:1053"),
        ("DISABLE_CQ_HUGETLB", "DISABLE_EQ_HUGETLB", None, "cxip_info.c:1139"),
    ] {
        // In a mode without these buffers, the settings have a finding already.
        let is_used = unused_in.is_none() || unused_in != mode;
        if is_used && given.has(first) && given.has(second) {
            given.find(first, Problem::NoEffect, format!("has no effect beside {second}"), source);
        }
    }
    let posted = given.number(posted, defaults.oflow_buf_min_posted);
    if mode != Some(Mode::Software) {
        cached(given, "OFLOW_BUF_MAX_CACHED", posted, "OFLOW_BUF_MIN_POSTED", "cxip_info.c:942");
    }
    let (mut request, mut requests) =
        (Some(defaults.req_buf_size), Some(defaults.req_buf_min_posted));
    if mode != Some(Mode::Hardware) {
        request = given.number("REQ_BUF_SIZE", defaults.req_buf_size);
        requests = given.number("REQ_BUF_MIN_POSTED", defaults.req_buf_min_posted);
    }
    if matches!(mode, Some(Mode::Hybrid | Mode::Software)) {
        if let (Some(number), Some(threshold), Some(get_min)) = (request, threshold, get_min) {
            let least = threshold.wrapping_add(get_min);
            // The header has a few tens of bytes more.
            if number < least {
                let says = format!(
                    "is less than RDZV_THRESHOLD plus RDZV_GET_MIN, so the provider uses {} and a header",
                    whole(least)
                );
                given.find("REQ_BUF_SIZE", Problem::Replaced, says, "cxip_info.c:1067");
                request = Some(least);
            }
        }
        if requests.is_some_and(|number| number < 2) {
            let says = "the provider expects at least 2, and uses 2";
            given.find("REQ_BUF_MIN_POSTED", Problem::Replaced, says, "cxip_info.c:1073");
            requests = Some(2);
        }
        let name = match given.has("REQ_BUF_MAX_CACHED") {
            true => "REQ_BUF_MAX_CACHED",
            false => "REQ_BUF_MAX_COUNT",
        };
        cached(given, name, requests, "REQ_BUF_MIN_POSTED", "cxip_info.c:1080");
    }
    let (queues, mut assumed) = queues(given, defaults);
    assumed += u32::from(mode.is_none());
    let mode = mode.unwrap_or(defaults.mode);
    let mut buffers = |are_used: bool, known: [Option<u64>; 2], defaults: [u64; 2]| {
        if !are_used {
            return 0;
        }
        assumed += known.iter().map(|of| u32::from(of.is_none())).sum::<u32>();
        let [size, number] = [0, 1].map(|at| known[at].unwrap_or(defaults[at]));
        size.saturating_mul(number)
    };
    let overflow_buffers = buffers(
        mode != Mode::Software,
        [oflow, posted],
        [defaults.oflow_buf_size, defaults.oflow_buf_min_posted],
    );
    let request_buffers = buffers(
        mode != Mode::Hardware,
        [request, requests],
        [defaults.req_buf_size, defaults.req_buf_min_posted],
    );
    Memory { queues, overflow_buffers, request_buffers, assumed }
}

/// Checks the largest number of buffers that the provider keeps, of which 0 is any number.
fn cached(
    given: &mut Given<'_>,
    name: &'static str,
    posted: Option<u64>,
    other: &str,
    source: &'static str,
) {
    let number = given.number(name, 0);
    if let (Some(number), Some(posted)) = (number, posted)
        && number > 0
        && number < posted
    {
        let says = format!("is less than {other}, so the provider uses {}", whole(posted));
        given.find(name, Problem::Replaced, says, source);
    }
}

/// Checks the sizes of queues. Returns the bytes of both event queues, and the number of settings
/// that are not known.
fn queues(given: &mut Given<'_>, defaults: Defaults) -> (u64, u32) {
    let cq = given.number("DEFAULT_CQ_SIZE", defaults.cq_size);
    let rx = given.number("DEFAULT_RX_SIZE", defaults.rx_size);
    let disabled = match given.has("DISABLE_EQ_HUGETLB") {
        true => "DISABLE_EQ_HUGETLB",
        false => "DISABLE_CQ_HUGETLB",
    };
    let huge = given.truth(disabled, false).map(|disabled| !disabled);
    let not_known = [cq.is_none(), rx.is_none(), huge.is_none()];
    let not_known = not_known.into_iter().map(u32::from).sum();
    let is_huge = huge.unwrap_or(true);
    // The provider needs two slots for each receive, and 36 others.
    let needed = 2 * rx.unwrap_or(defaults.rx_size) + 36;
    let slots = cq.unwrap_or(defaults.cq_size).max(needed);
    let page = if is_huge { HUGE } else { 4_096 };
    let bytes = |slots: u64| slots.saturating_mul(EVENT).div_ceil(page).saturating_mul(page);
    if not_known == 0
        && bytes(slots) == bytes(needed)
        && cq.is_some_and(|cq| cq * EVENT < bytes(slots))
    {
        let has = bytes(slots) / EVENT;
        let pages = if is_huge { "in huge pages of 2 MiB" } else { "in pages of 4 KiB" };
        let says =
            format!("has no effect, because a queue has {} slots anyway {pages}", whole(has));
        given.find("DEFAULT_CQ_SIZE", Problem::NoEffect, says, "cxip_evtq.c:449");
    }
    (bytes(slots).saturating_mul(2), not_known)
}

#[cfg(test)]
#[path = "cxi_tests.rs"]
mod tests;
