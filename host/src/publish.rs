// SPDX-License-Identifier: BSD-2-Clause
//! Gives a segment its name, and removes it.

use std::{fs::File, io, time::Duration};

use rustix::io::Errno;

use crate::{
    directory::{self, Directory},
    owner,
};

use crate::names::{bell_of, name_of};

/// Attempts to take a segment name that other processes remove at the same time.
const TRIES: usize = 100;
/// A process that found the owner of a name dead removes the file next. This is how often, and how
/// long, to wait for that.
const WAITS: u32 = 50;
const WAIT: Duration = Duration::from_millis(1);

/// Makes and locks a file. The file of a dead process with the same name is removed.
pub fn take_name(name: &str) -> io::Result<File> {
    let mut waits = 0..WAITS;
    for _ in 0..TRIES {
        match directory::create_locked(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let directory = Directory::open()?;
                if !owner::remove_if_dead(&directory, name) && directory.inode(name).is_some() {
                    waits.next().ok_or(Errno::ADDRINUSE)?;
                    std::thread::sleep(WAIT);
                }
            }
            made => return made,
        }
    }
    Err(Errno::ADDRINUSE.into())
}

/// Gives a segment its final name. Peers find it complete, or not at all.
pub fn publish(new: &str, port: u16) -> io::Result<()> {
    let (directory, name) = (Directory::open()?, name_of(port));
    let mut waits = 0..WAITS;
    for _ in 0..TRIES {
        match directory.rename_new(new, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !owner::remove_if_dead(&directory, &name) && directory.inode(&name).is_some() {
                    waits.next().ok_or(Errno::ADDRINUSE)?;
                    std::thread::sleep(WAIT);
                }
            }
            published => return published,
        }
    }
    Err(Errno::ADDRINUSE.into())
}

/// Removes the files of an endpoint of this process.
pub fn remove_files(port: u16) {
    let _ = std::fs::remove_file(bell_of(port));
    if let Ok(directory) = Directory::open() {
        let _ = directory.remove(&name_of(port));
    }
}

/// Returns true if this user has a segment for a port on this host.
#[must_use]
pub fn is_there(port: u16) -> bool {
    Directory::open().is_ok_and(|directory| directory.inode(&name_of(port)).is_some())
}
