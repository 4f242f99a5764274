// SPDX-License-Identifier: BSD-2-Clause
//! Answers which match tables a program needs, for `tcam answer`. The answer contains the number of
//! entries, the devices that hold all elements, and the cost of overflow. [`facts`] computes these
//! facts. [`show`] shows them as text, as HTML and as a picture.

pub(crate) mod facts;
pub(crate) mod show;
