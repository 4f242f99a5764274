// SPDX-License-Identifier: BSD-2-Clause
//! `mr_mode`: the rules of memory registration, on which application and provider must agree
//! (`fi_mr(3)`).

use ffi::sys;
use nic::params::types::MrMode;

use crate::params::api_at_least;

/// Returns the `mr_mode` bits that an application must support, for a value of `FI_TCAM_MR`.
pub(crate) fn required(rules: MrMode) -> i32 {
    let mode = match rules {
        MrMode::Basic => sys::FI_MR_VIRT_ADDR | sys::FI_MR_ALLOCATED | sys::FI_MR_PROV_KEY,
        MrMode::Endpoint => sys::FI_MR_ENDPOINT | sys::FI_MR_ALLOCATED,
        MrMode::Scalable => 0,
    };
    mode.cast_signed()
}

/// Returns the `mr_mode` for an application that supports `wanted`; `None` if `wanted` lacks a
/// required bit. Before version 1.5 of the API, there were two modes, `FI_MR_BASIC` and
/// `FI_MR_SCALABLE`, each a complete set of rules. An application of that time that sets no bit
/// supports both.
pub(crate) fn meet(required: i32, wanted: i32, api_version: u32) -> Option<i32> {
    let before = !api_at_least(api_version, 1, 5);
    let wanted = if before && wanted == 0 { 3 } else { wanted };
    let (basic, scalable) = (sys::FI_MR_BASIC.cast_signed(), sys::FI_MR_SCALABLE.cast_signed());
    if wanted & scalable != 0 && required == 0 {
        return Some(scalable);
    }
    if wanted & basic != 0 && required & sys::FI_MR_ENDPOINT.cast_signed() == 0 {
        return Some(basic);
    }
    (required & !wanted == 0).then_some(required)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_required_rules_and_the_two_old_modes_are_met() {
        let basic = required(MrMode::Basic);
        let meet_now = |required, wanted| meet(required, wanted, 1 << 16 | 14);
        assert_eq!(meet_now(0, i32::MAX & !3), Some(0));
        assert_eq!(meet_now(basic, basic | required(MrMode::Endpoint)), Some(basic));
        assert_eq!(meet_now(basic, 0), None);
        assert_eq!(meet_now(basic, sys::FI_MR_BASIC.cast_signed()), Some(1));
        assert_eq!(meet_now(0, sys::FI_MR_SCALABLE.cast_signed()), Some(2));
        assert_eq!(meet_now(required(MrMode::Endpoint), sys::FI_MR_BASIC.cast_signed()), None);
        assert_eq!(meet(0, 0, 1 << 16), Some(2));
        assert_eq!(meet(basic, 0, 1 << 16), Some(1));
        assert_eq!(meet(required(MrMode::Endpoint), 0, 1 << 16), None);
    }
}
