// SPDX-License-Identifier: BSD-2-Clause
//! Operations of ranks of machines that need not exist, made from what papers report on
//! applications.

pub(crate) mod pattern;
pub(crate) mod stream;
