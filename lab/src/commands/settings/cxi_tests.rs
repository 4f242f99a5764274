// SPDX-License-Identifier: BSD-2-Clause
//! Settings that the provider replaces or does not use, and the memory of its queues and buffers.

use super::super::stacks::STACKS;
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
    check(&set(words), STACKS[0].values, ppn.and_then(NonZeroU32::new))
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
        ("-9223372036854775808", i64::MIN, ""),
        ("-99999999999999999999", i64::MIN, ""),
        ("1,024", 1, ",024"),
    ] {
        assert_eq!(strtol(text), (number, rest), "{text}");
    }
}

#[test]
fn defaults_of_each_stack_are_accepted() {
    for stack in &STACKS {
        let Checked { findings, .. } = check(&[], stack.values, NonZeroU32::new(128));
        assert_eq!(findings, [], "{}", stack.name);
        let all = stack.values.all().map(|(name, value)| format!("F_{name}={value}")).join(" ");
        for mode in ["", "F_RX_MATCH_MODE=hybrid", "F_RX_MATCH_MODE=software"] {
            let script = all.replace("F_RX_MATCH_MODE=hardware", mode);
            let Checked { findings, .. } = check(&set(&script), stack.values, None);
            assert_eq!(findings, [], "{}: {script}", stack.name);
        }
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
            "DEFAULT_TX_SIZE: the provider expects 16 to 16,384, and uses 1,024",
        ),
        (
            "F_DEFAULT_TX_SIZE=15",
            "DEFAULT_TX_SIZE: the provider expects 16 to 16,384, and uses 1,024",
        ),
        (
            "F_DEFAULT_RX_SIZE=15361",
            "DEFAULT_RX_SIZE: the provider expects 16 to 15,360, and uses 1,024",
        ),
        ("F_RDZV_THRESHOLD=191", "RDZV_THRESHOLD: the provider expects at least 192, and uses 192"),
        ("F_CQ_FILL_PERCENT=0", "CQ_FILL_PERCENT: the provider expects 1 to 100, and uses 50"),
        ("F_CQ_FILL_PERCENT=101", "CQ_FILL_PERCENT: the provider expects 1 to 100, and uses 50"),
        (
            "F_RX_MATCH_MODE=hybird",
            "RX_MATCH_MODE: the provider expects hardware, hybrid or software, and uses hardware",
        ),
        (
            "F_RX_MATCH_MODE=Hybrid",
            "RX_MATCH_MODE: the provider expects hybrid in small letters, and uses hardware",
        ),
        (
            "F_RDZV_EAGER_SIZE=16385",
            "RDZV_EAGER_SIZE: is more than RDZV_THRESHOLD, so the provider uses 16,384",
        ),
        (
            "F_RDZV_THRESHOLD=12582913",
            "RDZV_THRESHOLD: is more than OFLOW_BUF_SIZE, so the provider uses 16,384",
        ),
        (
            "F_OFLOW_BUF_SIZE=8192",
            "OFLOW_BUF_SIZE: is less than RDZV_THRESHOLD (16,384), which the provider then sets to 16,384",
        ),
        (
            "F_RDZV_GET_MIN=12566529",
            "RDZV_GET_MIN: is more than OFLOW_BUF_SIZE less RDZV_THRESHOLD, so the provider uses 0",
        ),
        ("F_ODP=ja", "ODP: the provider expects 0 or 1, and keeps its default"),
        (
            "F_LLRING_MODE=Idle",
            "LLRING_MODE: the provider expects one of always, idle, never, and ignores it",
        ),
        (
            "F_DEFAULT_CQ_SIZE=0",
            "DEFAULT_CQ_SIZE: the provider expects at least 1, and uses 131,072",
        ),
        (
            "F_OFLOW_BUF_MAX_CACHED=2",
            "OFLOW_BUF_MAX_CACHED: is less than OFLOW_BUF_MIN_POSTED, so the provider uses 3",
        ),
        (
            "F_RX_MATCH_MODE=hybrid F_REQ_BUF_MIN_POSTED=1",
            "REQ_BUF_MIN_POSTED: the provider expects at least 2, and uses 2",
        ),
        (
            "F_RX_MATCH_MODE=software F_REQ_BUF_MAX_CACHED=5",
            "REQ_BUF_MAX_CACHED: is less than REQ_BUF_MIN_POSTED, so the provider uses 6",
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
            "REQ_BUF_SIZE: the provider knows no units, stops before `MB`, and reads 16",
            "REQ_BUF_SIZE: is less than RDZV_THRESHOLD plus RDZV_GET_MIN, so the provider uses 2,000 \
             and a header",
        ]
    );
}

#[test]
fn a_value_is_checked_at_each_place() {
    assert_eq!(
        told("F_DEFAULT_TX_SIZE=32768 F_DEFAULT_TX_SIZE=4096"),
        ["DEFAULT_TX_SIZE: the provider expects 16 to 16,384, and uses 1,024"]
    );
    for (words, expected) in [
        ("F_ZBCOLL_RADIX=-4", "ZBCOLL_RADIX: the provider expects at least 2, and uses 2"),
        ("F_EQ_ACK_BATCH_SIZE=0", "EQ_ACK_BATCH_SIZE: the provider expects at least 1, and uses 1"),
        (
            "F_FC_RETRY_USEC_DELAY=-1",
            "FC_RETRY_USEC_DELAY: the provider expects at least 0, and uses 0",
        ),
        (
            "F_SW_RX_TX_INIT_MAX=8",
            "SW_RX_TX_INIT_MAX: the provider expects at least 64, and uses 64",
        ),
        (
            "F_COLL_RETRY_USEC=99999",
            "COLL_RETRY_USEC: the provider expects 1 to 32,000, and uses 32,000",
        ),
        (
            "F_COLL_TIMEOUT_USEC=0",
            "COLL_TIMEOUT_USEC: the provider expects 1 to 20,000,000, and uses 1",
        ),
        (
            "F_RNR_MAX_TIMEOUT_US=-5",
            "RNR_MAX_TIMEOUT_US: the provider expects at least 0, and uses 500,000",
        ),
        (
            "F_CTRL_RX_EQ_MAX_SIZE=0",
            "CTRL_RX_EQ_MAX_SIZE: the provider expects at least 1, and uses 67,108,864",
        ),
        (
            "F_DEVICE_NAME=cxi0,hsn0",
            "DEVICE_NAME: the provider expects a list such as cxi0,cxi1, and ignores it",
        ),
        (
            "F_COLL_FABRIC_MGR_URL=ftp://x",
            "COLL_FABRIC_MGR_URL: the provider expects http:// or https://, and ignores it",
        ),
        ("F_FORCE_ODP=1 F_ODP=0", "ODP: has no effect beside FORCE_ODP, which switches it on"),
        (
            "F_DEFAULT_CQ_SIZE=0131072",
            "DEFAULT_CQ_SIZE: is octal, because it begins with 0, and the provider reads 45,626",
        ),
        ("F_ZBCOLL_RADIX=abc", "ZBCOLL_RADIX: is no number, and the provider reads 0"),
        (
            "F_COLL_TIMEOUT_USEC=1e6",
            "COLL_TIMEOUT_USEC: the provider knows no units, stops before `e6`, and reads 1",
        ),
        (
            "F_DEFAULT_VNI=-3",
            "DEFAULT_VNI: is negative, and the provider reads 18,446,744,073,709,551,613",
        ),
        (
            "F_DISABLE_CQ_HUGETLB=1 F_DISABLE_EQ_HUGETLB=0",
            "DISABLE_CQ_HUGETLB: has no effect beside DISABLE_EQ_HUGETLB",
        ),
        (
            "F_RX_MATCH_MODE=software F_OFLOW_BUF_COUNT=4",
            "OFLOW_BUF_COUNT: has no effect with RX_MATCH_MODE=software, which has no overflow buffers",
        ),
    ] {
        assert_eq!(told(words)[0], expected, "{words}");
    }
    // 32 bits: 4294967296 is 0.
    assert_eq!(told("F_SW_RX_TX_INIT_MAX=4294967296").len(), 1);
    let both = told("F_RX_MATCH_MODE=hybrid F_REQ_BUF_MAX_COUNT=1 F_REQ_BUF_MAX_CACHED=100");
    assert_eq!(both, ["REQ_BUF_MAX_COUNT: has no effect beside REQ_BUF_MAX_CACHED"]);
}

#[test]
fn rules_of_several_settings_need_known_values() {
    let several = "has several values in this script, so rules that combine settings leave it out";
    // Branches: one of them is hybrid.
    let words = "F_RX_MATCH_MODE=hybrid F_RX_MATCH_MODE=hardware F_HYBRID_PREEMPTIVE=1 F_REQ_BUF_SIZE=16777216";
    assert_eq!(told(words), [format!("RX_MATCH_MODE: {several}")]);
    let words = "F_OFLOW_BUF_SIZE=8192 F_RDZV_THRESHOLD=$ F_RDZV_EAGER_SIZE=20000";
    assert_eq!(told(words), ["RDZV_THRESHOLD: is not checked, because the script computes it"]);
    let words = "F_DEFAULT_CQ_SIZE=1024 F_DEFAULT_RX_SIZE=$";
    assert_eq!(told(words), ["DEFAULT_RX_SIZE: is not checked, because the script computes it"]);
    let memory = checked("F_RX_MATCH_MODE=$", None).memory;
    assert!(memory.sentence(None).ends_with("with the default of 1 setting that is not checked."));
    assert_eq!(memory.assumed, 1);
    assert_eq!(checked("F_RDZV_THRESHOLD=$", None).memory.assumed, 0);
    // A value that is equal at two places is known.
    assert_eq!(
        told("F_RX_MATCH_MODE=hybrid F_RX_MATCH_MODE=hybrid F_HYBRID_PREEMPTIVE=1"),
        [""; 0]
    );
}

#[test]
fn names_and_values_without_effect_are_found() {
    for (words, expected) in [
        (
            "F_RX_MATCHMODE=hybrid",
            "RX_MATCHMODE: the provider has no such variable, but FI_CXI_RX_MATCH_MODE",
        ),
        ("F_QQQQ=1", "QQQQ: the provider has no such variable"),
        ("CXI_DEFAULT_CQ_SIZE=1", "CXI_DEFAULT_CQ_SIZE: the provider reads FI_CXI_DEFAULT_CQ_SIZE"),
        (
            "F_DEFAULT_CQ_SIZE=32767",
            "DEFAULT_CQ_SIZE: has no effect, because a queue has 32,768 slots anyway in huge pages of 2 MiB",
        ),
        (
            "F_DISABLE_EQ_HUGETLB=1 F_DEFAULT_CQ_SIZE=1024",
            "DEFAULT_CQ_SIZE: has no effect, because a queue has 2,112 slots anyway in pages of 4 KiB",
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
        ("F_DEFAULT_TX_SIZE=$", "DEFAULT_TX_SIZE: is not checked, because the script computes it"),
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
        let memory = check(&set(words), STACKS[1].values, None).memory;
        [memory.queues, memory.overflow_buffers, memory.request_buffers].map(|bytes| bytes / MIB)
    };
    assert_eq!(of(""), [16, 36, 0]);
    assert_eq!(of("F_RX_MATCH_MODE=hybrid"), [16, 36, 72]);
    assert_eq!(of("F_RX_MATCH_MODE=software"), [16, 0, 72]);
    let small = "F_RX_MATCH_MODE=hybrid F_DEFAULT_CQ_SIZE=32768 F_OFLOW_BUF_SIZE=1048576 \
                 F_REQ_BUF_SIZE=1048576";
    assert_eq!(of(small), [4, 3, 6]);
    let hybrid = check(&set("F_RX_MATCH_MODE=hybrid"), STACKS[1].values, None).memory;
    assert_eq!(
        hybrid.sentence(NonZeroU32::new(128)),
        "Memory of a rank: 124 MiB (16 MiB of event queues, 36 MiB of overflow buffers, 72 MiB of \
         request buffers), and 15.5 GiB on a node of 128 ranks."
    );
    // A public environment asks for 100 GiB of event queues on a node.
    let Checked { findings, memory, .. } = checked("F_DEFAULT_CQ_SIZE=13107200", Some(64));
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
