// SPDX-License-Identifier: BSD-2-Clause
//! The variables of the provider cxi, with their types and the lines that define them, in libfabric
//! af8ddbe.

use self::Type::{Bool, Int, Size, Text, Word};

/// Prefix of the names of all variables.
pub(super) const PREFIX: &str = "FI_CXI_";

/// Type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A truth value, as `fi_parse_bool` reads it (src/var.c:256).
    Bool,
    /// A number of 32 bits, as `strtol` reads it (src/var.c:385).
    Int,
    /// A number of 64 bits without a sign, as `strtol` reads it (src/var.c:403).
    Size,
    /// One of some words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
}

/// A variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    /// Name after [`PREFIX`].
    pub(super) name: &'static str,
    pub(super) of: Type,
    /// File and line of its definition.
    pub(super) source: &'static str,
}

const fn variable(name: &'static str, of: Type, source: &'static str) -> Variable {
    Variable { name, of, source }
}

/// Every variable.
pub(super) const VARIABLES: [Variable; 74] = [
    variable(
        "RGET_TC",
        Word(&["BEST_EFFORT", "LOW_LATENCY", "DEDICATED_ACCESS", "BULK_DATA"]),
        "cxip_info.c:698",
    ),
    variable("RDZV_ALIGNED_SW_RGET", Bool, "cxip_info.c:720"),
    variable("RNR_MAX_TIMEOUT_US", Int, "cxip_info.c:726"),
    variable("RNR_APPEND_RETRY_TIMEOUT_US", Int, "cxip_info.c:736"),
    variable("ENABLE_TRIG_OP_LIMIT", Bool, "cxip_info.c:742"),
    variable("DISABLE_NON_INJECT_MSG_IDC", Bool, "cxip_info.c:753"),
    variable("DISABLE_NON_INJECT_RMA_IDC", Bool, "cxip_info.c:759"),
    variable("DISABLE_NON_INJECT_AMO_IDC", Bool, "cxip_info.c:765"),
    variable("DISABLE_HOST_REGISTER", Bool, "cxip_info.c:771"),
    variable("ODP", Bool, "cxip_info.c:777"),
    variable("FORCE_ODP", Bool, "cxip_info.c:781"),
    variable("ATS", Bool, "cxip_info.c:790"),
    variable("IOTLB", Bool, "cxip_info.c:794"),
    variable("ATS_MLOCK_MODE", Word(&["off", "all"]), "cxip_info.c:810"),
    variable("DEVICE_NAME", Text, "cxip_info.c:825"),
    variable("TELEMETRY", Text, "cxip_info.c:847"),
    variable("TELEMETRY_RGID", Int, "cxip_info.c:853"),
    variable("RX_MATCH_MODE", Word(&["hardware", "software", "hybrid"]), "cxip_info.c:860"),
    variable("RDZV_THRESHOLD", Size, "cxip_info.c:865"),
    variable("RDZV_GET_MIN", Size, "cxip_info.c:890"),
    variable("RDZV_EAGER_SIZE", Size, "cxip_info.c:895"),
    variable("OFLOW_BUF_SIZE", Size, "cxip_info.c:906"),
    variable("OFLOW_BUF_COUNT", Size, "cxip_info.c:926"),
    variable("OFLOW_BUF_MIN_POSTED", Size, "cxip_info.c:931"),
    variable("OFLOW_BUF_MAX_CACHED", Size, "cxip_info.c:938"),
    variable("SAFE_DEVMEM_COPY_THRESHOLD", Size, "cxip_info.c:949"),
    variable("OPTIMIZED_MRS", Bool, "cxip_info.c:956"),
    variable("MR_MATCH_EVENTS", Bool, "cxip_info.c:961"),
    variable("ENABLE_WRITEDATA", Bool, "cxip_info.c:967"),
    variable("PROV_KEY_CACHE", Bool, "cxip_info.c:973"),
    variable("LLRING_MODE", Word(&["always", "idle", "never"]), "cxip_info.c:979"),
    variable("ZBCOLL_RADIX", Int, "cxip_info.c:997"),
    variable("CQ_POLICY", Word(&["always", "high_empty", "low_empty", "low"]), "cxip_info.c:1006"),
    variable("DEFAULT_VNI", Size, "cxip_info.c:1026"),
    variable("EQ_ACK_BATCH_SIZE", Size, "cxip_info.c:1030"),
    variable("MSG_LOSSLESS", Bool, "cxip_info.c:1038"),
    variable("REQ_BUF_SIZE", Size, "cxip_info.c:1042"),
    variable("REQ_BUF_MIN_POSTED", Size, "cxip_info.c:1047"),
    variable("REQ_BUF_MAX_COUNT", Size, "cxip_info.c:1054"),
    variable("REQ_BUF_MAX_CACHED", Size, "cxip_info.c:1058"),
    variable("FC_RETRY_USEC_DELAY", Int, "cxip_info.c:1089"),
    variable("CNTR_SPIN_BEFORE_YIELD", Int, "cxip_info.c:1100"),
    variable("SW_RX_TX_INIT_MAX", Int, "cxip_info.c:1106"),
    variable("CTRL_RX_EQ_MAX_SIZE", Size, "cxip_info.c:1117"),
    variable("DEFAULT_CQ_SIZE", Size, "cxip_info.c:1128"),
    variable("DISABLE_CQ_HUGETLB", Bool, "cxip_info.c:1142"),
    variable("DISABLE_EQ_HUGETLB", Bool, "cxip_info.c:1147"),
    variable("CQ_FILL_PERCENT", Size, "cxip_info.c:1153"),
    variable("COLL_JOB_ID", Text, "cxip_info.c:1166"),
    variable("COLL_JOB_STEP_ID", Text, "cxip_info.c:1172"),
    variable("COLL_FABRIC_MGR_URL", Text, "cxip_info.c:1178"),
    variable("COLL_MCAST_TOKEN", Text, "cxip_info.c:1192"),
    variable("COLL_USE_DMA_PUT", Bool, "cxip_info.c:1198"),
    variable("HWCOLL_ADDRS_PER_JOB", Size, "cxip_info.c:1204"),
    variable("HWCOLL_MIN_NODES", Size, "cxip_info.c:1209"),
    variable("COLL_RETRY_USEC", Size, "cxip_info.c:1214"),
    variable("COLL_TIMEOUT_USEC", Size, "cxip_info.c:1225"),
    variable("DEFAULT_TX_SIZE", Size, "cxip_info.c:1236"),
    variable("DEFAULT_RX_SIZE", Size, "cxip_info.c:1248"),
    variable("DISABLE_HMEM_DEV_REGISTER", Bool, "cxip_info.c:1260"),
    variable("FORCE_ZE_HMEM_SUPPORT", Bool, "cxip_info.c:1269"),
    variable("TRUNC_OK", Bool, "cxip_info.c:1284"),
    variable("RDZV_PROTO", Word(&["default", "alt_read"]), "cxip_info.c:1289"),
    variable("DISABLE_ALT_READ_CMDQ", Bool, "cxip_info.c:1318"),
    variable("CNTR_TRIG_CMDQ", Bool, "cxip_info.c:1324"),
    variable("MR_CACHE_EVENTS_DISABLE_POLL_NSECS", Size, "cxip_info.c:1330"),
    variable("MR_CACHE_EVENTS_DISABLE_LE_POLL_NSECS", Size, "cxip_info.c:1336"),
    variable("FORCE_DEV_REG_COPY", Bool, "cxip_info.c:1342"),
    variable("MR_TARGET_ORDERING", Word(&["default", "strict", "relaxed"]), "cxip_info.c:1348"),
    variable("DISABLE_CUDA_SYNC_MEMOPS", Bool, "cxip_info.c:1366"),
    variable("HYBRID_PREEMPTIVE", Bool, "cxip.h:4054"),
    variable("HYBRID_RECV_PREEMPTIVE", Bool, "cxip.h:4058"),
    variable("HYBRID_UNEXPECTED_MSG_PREEMPTIVE", Bool, "cxip.h:4062"),
    variable("HYBRID_POSTED_RECV_PREEMPTIVE", Bool, "cxip.h:4067"),
];

/// Returns the variable of a name without [`PREFIX`].
pub(super) fn named(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}
