// SPDX-License-Identifier: BSD-2-Clause
//! Giving a segment its name, and taking it away.

use std::{fs::File, io, time::Duration};

use rustix::io::Errno;

use crate::{
    directory::{self, Directory},
    owner,
};

use crate::names::{bell_of, name_of};

/// Tries to take the place of a segment that others remove at the same time.
const TRIES: usize = 100;
/// Whoever found the owner of a name dead removes the file next: how often, and how long, that is
/// waited for.
const WAITS: u32 = 50;
const WAIT: Duration = Duration::from_millis(1);

/// Makes and locks a file; what a process that died left under its name goes.
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

/// Gives a segment the name that peers look for: they find it whole, or not at all.
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

/// Removes what an endpoint of this process has in the directory.
pub fn remove_files(port: u16) {
    let _ = std::fs::remove_file(bell_of(port));
    if let Ok(directory) = Directory::open() {
        let _ = directory.remove(&name_of(port));
    }
}

/// Whether a port of this host has a segment of this user.
#[must_use]
pub fn is_there(port: u16) -> bool {
    Directory::open().is_ok_and(|directory| directory.inode(&name_of(port)).is_some())
}
