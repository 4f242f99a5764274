// SPDX-License-Identifier: BSD-2-Clause
//! `fi_fabric(3)`.

use ffi::{object::Object, sys};

/// A fabric, as an object. It stores the API version of the application.
#[derive(Debug)]
pub(crate) struct Fabric {
    api_version: u32,
}

impl Fabric {
    pub(crate) fn new(api_version: u32) -> Self {
        Self { api_version }
    }

    /// Version of the API the application was written for.
    pub(crate) fn api_version(&self) -> u32 {
        self.api_version
    }
}

impl Object for Fabric {
    type Raw = sys::fid_fabric;
}
