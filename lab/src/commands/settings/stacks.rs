// SPDX-License-Identifier: BSD-2-Clause
//! The default values of the provider cxi in several software stacks.

use clap::ValueEnum;

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

/// The software whose default values are assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stack {
    /// libfabric 2.6, from its source
    #[value(name = "libfabric-2.6")]
    Libfabric,
    /// HPE Cray MPICH, from the documents of Slingshot (shs-docs)
    CrayMpich,
    /// Slingshot host software 2.1, from its documents
    #[value(name = "shs-2.1")]
    Shs,
}

impl Stack {
    /// Returns the name, as on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Libfabric => "libfabric-2.6",
            Self::CrayMpich => "cray-mpich",
            Self::Shs => "shs-2.1",
        }
    }

    pub(super) fn values(self) -> Defaults {
        match self {
            Self::Libfabric => LIBFABRIC,
            Self::CrayMpich => Defaults { rx_size: 512, ..LIBFABRIC },
            Self::Shs => Defaults {
                rdzv_threshold: 2_048,
                oflow_buf_size: 2 << 20,
                req_buf_size: 2 << 20,
                req_buf_min_posted: 4,
                cq_size: 1_024,
                rx_size: 512,
                tx_size: 512,
                ..LIBFABRIC
            },
        }
    }
}
