// SPDX-License-Identifier: BSD-2-Clause
//! Allocates the memory of new files in `/dev/shm`.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use crate::directory::SHM;
use rustix::{
    fs::{FallocateFlags, fallocate},
    io::retry_on_intr,
    process::{Resource, getrlimit},
};

/// Allocates the memory of a new file at once, because a full `/dev/shm` would be a `SIGBUS` later.
/// Signals of the program may interrupt the call, which is then repeated.
pub fn give_memory(file: &File, length: usize, what: &str) -> io::Result<()> {
    // Beyond this limit, the kernel ends the process (SIGXFSZ).
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < length as u64) {
        tracing::error!(
            "a {what} of {length} bytes is larger than files may be here: raise ulimit -f"
        );
        return Err(rustix::io::Errno::FBIG.into());
    }
    let reserve = || fallocate(file, FallocateFlags::empty(), 0, length as u64);
    let given = match retry_on_intr(reserve).map_err(io::Error::from) {
        // Some file systems other than tmpfs do not support it.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            file.write_all_at(&vec![0; length], 0)
        }
        given => given,
    };
    given.inspect_err(|error| {
        tracing::error!(
            "{SHM} has no room for a {what} of {length} bytes ({error}): \
             enlarge it (mount -o remount,size=...) or remove what fills it"
        );
    })
}
