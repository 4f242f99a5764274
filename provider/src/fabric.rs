// SPDX-License-Identifier: BSD-2-Clause
//! `fi_fabric(3)`: the fabric object, which stores the API version of the application.

use ffi::{object::Object, sys};

/// A fabric.
#[derive(Debug)]
pub(crate) struct Fabric {
    api_version: u32,
}

impl Fabric {
    pub(crate) fn new(api_version: u32) -> Self {
        Self { api_version }
    }

    /// Returns the version of the API that the application was written for.
    pub(crate) fn api_version(&self) -> u32 {
        self.api_version
    }
}

impl Object for Fabric {
    type Raw = sys::fid_fabric;
}
