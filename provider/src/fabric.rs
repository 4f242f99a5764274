// SPDX-License-Identifier: BSD-2-Clause
//! `fi_fabric(3)`: the fabric object, which stores the API version of the application.

use ffi::{object::Object, sys};

/// A fabric.
#[derive(Debug)]
pub(crate) struct Fabric {
    /// The version of the API that the application was written for.
    pub(crate) api_version: u32,
}

impl Object for Fabric {
    type Raw = sys::fid_fabric;
}
