// SPDX-License-Identifier: BSD-2-Clause
//! The answer: entries that a program needs, which devices hold them, and what overflow costs. One
//! function finds the facts ([`facts`]); text, JSON, HTML and the picture show these.

pub(crate) mod facts;
pub(crate) mod html;
pub(crate) mod page;
mod sentences;
