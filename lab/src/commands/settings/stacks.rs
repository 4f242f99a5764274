// SPDX-License-Identifier: BSD-2-Clause
//! The default values of the provider cxi in several software stacks.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The match mode of Cassini.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Hardware,
    Hybrid,
    Software,
}

impl Mode {
    /// Returns the name, as a value of `FI_CXI_RX_MATCH_MODE`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Hybrid => "hybrid",
            Self::Software => "software",
        }
    }
}

/// Default values. Sizes of buffers are in bytes, and those of queues in slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) mode: Mode,
    pub(super) rdzv_threshold: u64,
    pub(super) rdzv_get_min: u64,
    pub(super) rdzv_eager_size: u64,
    pub(super) oflow_buf_size: u64,
    pub(super) oflow_buf_min_posted: u64,
    pub(super) req_buf_size: u64,
    pub(super) req_buf_min_posted: u64,
    pub(super) cq_size: u64,
    pub(super) rx_size: u64,
    pub(super) tx_size: u64,
}

impl Defaults {
    /// Returns each variable, without its prefix, and its value.
    pub(super) fn all(&self) -> [(&'static str, String); 11] {
        let Self { mode, oflow_buf_size, oflow_buf_min_posted, .. } = *self;
        [
            ("RX_MATCH_MODE", mode.name().to_owned()),
            ("RDZV_THRESHOLD", self.rdzv_threshold.to_string()),
            ("RDZV_GET_MIN", self.rdzv_get_min.to_string()),
            ("RDZV_EAGER_SIZE", self.rdzv_eager_size.to_string()),
            ("OFLOW_BUF_SIZE", oflow_buf_size.to_string()),
            ("OFLOW_BUF_MIN_POSTED", oflow_buf_min_posted.to_string()),
            ("REQ_BUF_SIZE", self.req_buf_size.to_string()),
            ("REQ_BUF_MIN_POSTED", self.req_buf_min_posted.to_string()),
            ("DEFAULT_CQ_SIZE", self.cq_size.to_string()),
            ("DEFAULT_RX_SIZE", self.rx_size.to_string()),
            ("DEFAULT_TX_SIZE", self.tx_size.to_string()),
        ]
    }
}

/// The values in the source of libfabric (`cxip.h:109-179`, `cxip_info.c:613-686`).
const LIBFABRIC: Defaults = Defaults {
    mode: Mode::Hardware,
    rdzv_threshold: 16_384,
    rdzv_get_min: 2_049,
    rdzv_eager_size: 2_048,
    oflow_buf_size: 12 << 20,
    oflow_buf_min_posted: 3,
    req_buf_size: 12 << 20,
    req_buf_min_posted: 6,
    cq_size: 131_072,
    rx_size: 1_024,
    tx_size: 1_024,
};

/// Software whose default values are known.
#[derive(Debug)]
pub(super) struct Stack {
    /// Name on the command line.
    pub(super) name: &'static str,
    help: &'static str,
    pub(super) values: Defaults,
}

/// Every stack; the first is the default.
pub(super) const STACKS: [Stack; 3] = [
    Stack { name: "libfabric-2.6", help: "libfabric 2.6, from its source", values: LIBFABRIC },
    Stack {
        name: "cray-mpich",
        help: "HPE Cray MPICH, from the documents of Slingshot (shs-docs)",
        values: Defaults { rx_size: 512, ..LIBFABRIC },
    },
    Stack {
        name: "shs-2.1",
        help: "Slingshot host software 2.1, from its documents",
        values: Defaults {
            rdzv_threshold: 2_048,
            oflow_buf_size: 2 << 20,
            req_buf_size: 2 << 20,
            req_buf_min_posted: 4,
            cq_size: 1_024,
            rx_size: 512,
            tx_size: 512,
            ..LIBFABRIC
        },
    },
];

/// Returns a parser of the name of a stack.
pub(super) fn parser() -> impl TypedValueParser<Value = &'static Stack> {
    let names = STACKS.iter().map(|of| PossibleValue::new(of.name).help(of.help));
    PossibleValuesParser::new(names).map(|name| {
        STACKS.iter().find(|of| of.name == name).expect("the parser allows names of stacks only")
    })
}
