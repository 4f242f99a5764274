// SPDX-License-Identifier: BSD-2-Clause
//! The answer: the entries that a program needs, the devices that hold them, and the cost of
//! overflow. [`facts`] finds the facts; text, JSON, HTML and the picture show them.

pub(crate) mod facts;
pub(crate) mod show;
