// SPDX-License-Identifier: BSD-2-Clause
//! `fi_profile(3)`: the current occupancy of a device's queues.

use ffi::ops::profile::Variable;
use nic::device::Device;

use crate::device::carried::{Kept, RecvOp};

/// `FI_VAR_UNEXP_MSG_CNT`.
const UNEXPECTED: u32 = 0;
/// First private number of a variable.
const OWN: u32 = 1 << 16;

/// The variables of an endpoint and of a shared receive context.
pub(crate) static VARIABLES: [Variable; 9] = [
    Variable {
        id: UNEXPECTED,
        name: c"unexp_msg_cnt",
        help: c"unexpected messages that wait for a receive",
    },
    own(0, c"tcam_tagged_prq_table", c"posted tagged receives in the table"),
    own(1, c"tcam_tagged_prq_host", c"posted tagged receives on the host"),
    own(2, c"tcam_tagged_umq_table", c"unexpected tagged messages in the table"),
    own(3, c"tcam_tagged_umq_host", c"unexpected tagged messages on the host"),
    own(4, c"tcam_msg_prq_table", c"posted untagged receives in the table"),
    own(5, c"tcam_msg_prq_host", c"posted untagged receives on the host"),
    own(6, c"tcam_msg_umq_table", c"unexpected untagged messages in the table"),
    own(7, c"tcam_msg_umq_host", c"unexpected untagged messages on the host"),
];

const fn own(
    number: u32,
    name: &'static std::ffi::CStr,
    help: &'static std::ffi::CStr,
) -> Variable {
    Variable { id: OWN + number, name, help }
}

/// Returns the values of [`VARIABLES`], in the same order.
pub(crate) fn values(device: &Device<RecvOp, Kept>) -> Vec<u64> {
    let [tagged, msg] = [&device.tagged, &device.msg].map(nic::device::Context::occupancy);
    let unexpected: usize = [tagged[1], msg[1]].iter().map(|(table, host)| table + host).sum();
    let queues = tagged.into_iter().chain(msg).flat_map(|(table, host)| [table, host]);
    std::iter::once(unexpected).chain(queues).map(|count| count as u64).collect()
}
