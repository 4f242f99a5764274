// SPDX-License-Identifier: BSD-2-Clause
//! Raw bindings that bindgen generates from the installed headers.
//!
//! Some structures grew after 1.17: `fi_domain_attr`, `fi_mr_attr`, `fi_cq_err_entry` and
//! `fi_ops_av`. Code accesses them only field by field, because the structure of the loaded
//! libfabric may be larger or smaller than the declared one.
#![allow(missing_docs, clippy::all, clippy::pedantic, non_camel_case_types, non_snake_case)]
#![allow(non_upper_case_globals, unused, unsafe_op_in_unsafe_fn, unreachable_pub)]
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

include!(concat!(env!("OUT_DIR"), "/libfabric.rs"));
