// SPDX-License-Identifier: BSD-2-Clause
//! The answer of `tcam answer` to the question which tables a program needs: the entries, the
//! devices that hold all elements, and the cost of overflow. [`facts`] computes the facts; [`show`]
//! shows them as text, as HTML and as a picture.

pub(crate) mod facts;
pub(crate) mod show;
