// SPDX-License-Identifier: BSD-2-Clause
//! The directory of a user in `/dev/shm`, in which every file of tcam lies that processes share.
//!
//! ```text
//! /dev/shm/tcam.USER/                     mode 0700
//!     segment.NAMESPACE.PORT              an endpoint (channel/src/shm/segment.rs)
//!     new.NAMESPACE.PORT                  one that is being made
//!     bell.NAMESPACE.PORT                 the socket that it sleeps on
//!     left.NAMESPACE.PORT-INODE           what a dead endpoint left to `tcam run`
//!     claim.JOB                           `tcam run` wants what the dead of a job leave
//!     pool.NAMESPACE.ENTRIES              a shared pool of table entries
//!     av.NAMESPACE.NAME                   a named address vector
//! ```
//!
//! `/dev/shm` is everybody's: any user may take any name there first. So there is one name only,
//! and it is looked at closely before anything in it is: a real directory, of this user, closed to
//! others. Nobody else can put a file, a link or a socket into it, or rename it (`/dev/shm` is
//! sticky). Where another user took the name, nothing works, and the log says who it is.
//!
//! The directory goes with its last file. Whoever makes a file makes the directory first, and
//! starts over if that was removed meanwhile.
//!
//! Rejected: names that cannot be guessed (every peer would have to be told, and addresses of
//! libfabric have no room for it); a directory whose descriptor is kept (programs that close all
//! descriptors would have us look into another one).

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    time::SystemTime,
};

use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, chmod, fchmod, flock,
    fstat, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};

/// Where the directories of all users are.
pub const SHM: &str = "/dev/shm";

/// Tries to make a file in a directory that others remove when it is empty.
const TRIES: usize = 100;

/// The user that this process acts as.
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The directory of this user, whether it is there or not.
#[must_use]
pub fn path() -> PathBuf {
    Path::new(SHM).join(format!("tcam.{}", user()))
}

/// The directory of this user, opened and found to be private.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
}

impl Directory {
    /// Opens the directory.
    ///
    /// # Errors
    /// `ENOENT` if there is none, `EACCES` if the name is another user's, or the directory is open
    /// to others; the log says so.
    pub fn open() -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let path = path();
        match with_spare(|| openat(CWD, &path, flags, Mode::empty())) {
            Ok(fd) => {
                let stat = fstat(&fd)?;
                if stat.st_uid == user() && stat.st_mode & 0o077 == 0 {
                    return Ok(Self { fd });
                }
            }
            Err(Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
        tracing::error!(
            "{}",
            obstacle().unwrap_or_else(|| format!("{}: no access", path.display()))
        );
        Err(Errno::ACCESS.into())
    }

    /// Opens the directory, which is made if there is none.
    ///
    /// # Errors
    /// As [`Directory::open`], and if it cannot be made.
    pub fn make() -> io::Result<Self> {
        for _ in 0..TRIES {
            match mkdirat(CWD, path(), Mode::RWXU) {
                Ok(()) => _ = admit_owner(),
                Err(Errno::EXIST) => {}
                Err(error) => {
                    tracing::error!(
                        "cannot make {} ({error}): {SHM} must be a tmpfs that users may write to",
                        path().display()
                    );
                    return Err(error.into());
                }
            }
            match Self::open() {
                // Its last file went just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => {
                    if opened.is_ok() {
                        keep_spares();
                    }
                    return opened;
                }
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a file for reading and writing, and nothing but a file of this user that is closed to
    /// others.
    ///
    /// # Errors
    /// `ENOENT` if there is none, `EACCES` if it is something else.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let fd = match with_spare(|| openat(&self.fd, name, flags, Mode::empty())) {
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(Errno::ACCESS.into()),
            opened => opened?,
        };
        let stat = fstat(&fd)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || stat.st_uid != user() || stat.st_mode & 0o077 != 0 {
            tracing::warn!(
                "{}/{name} belongs to another user, is open to others or no file",
                path().display()
            );
            return Err(Errno::ACCESS.into());
        }
        Ok(fd.into())
    }

    /// Opens a file, which is made if there is none.
    ///
    /// # Errors
    /// As [`Directory::file`]; `ENOENT` if the directory has gone.
    pub fn file_or_new(&self, name: &str) -> io::Result<File> {
        match self.file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match self.new_file(name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.file(name),
                made => made,
            },
            opened => opened,
        }
    }

    fn new_file(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = with_spare(|| openat(&self.fd, name, flags, mode))?;
        fchmod(&fd, mode)?;
        Ok(fd.into())
    }

    /// The names of what is in it that begin so.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn names(&self, prefix: &str) -> io::Result<impl Iterator<Item = String> + use<>> {
        let entries = with_spare(|| Dir::read_from(&self.fd))?;
        let prefix = prefix.to_owned();
        Ok(entries
            .map_while(Result::ok)
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
            .filter(move |name| name.starts_with(&prefix)))
    }

    /// The inode that has a name.
    #[must_use]
    pub fn inode(&self, name: &str) -> Option<u64> {
        statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_ino)
    }

    /// When something in it was last made, renamed or removed.
    #[must_use]
    pub fn changed(&self) -> Option<SystemTime> {
        let stat = fstat(&self.fd).ok()?;
        let seconds = u64::try_from(stat.st_mtime).ok()?;
        let since = std::time::Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(since)
    }

    /// Gives a file another name.
    ///
    /// # Errors
    /// There is no such file.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Gives a file a name that nothing has.
    ///
    /// # Errors
    /// `EEXIST` if something has it.
    pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE)?)
    }

    /// Removes a file, and the directory with its last one.
    ///
    /// # Errors
    /// There is no such file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        unlinkat(&self.fd, name, AtFlags::empty())?;
        // Fails as it should while there are others.
        let _ = rustix::fs::rmdir(path());
        Ok(())
    }
}

/// Lets this user into the new directory, whatever the program's umask is. The name could be
/// somebody else's link by now: only what is open is changed.
fn admit_owner() -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(CWD, path(), flags, Mode::empty())?;
    let stat = fstat(&fd)?;
    if stat.st_uid == user() && stat.st_mode & 0o777 != 0o700 {
        chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::RWXU)?;
    }
    Ok(())
}

/// Makes a file that nobody has, and locks it for its owner.
///
/// # Errors
/// `EEXIST` if there is one of this name; as [`Directory::make`].
pub fn create_locked(name: &str) -> io::Result<File> {
    for _ in 0..TRIES {
        let file = match Directory::make()?.new_file(name) {
            // The directory was removed before there was anything in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            made => made?,
        };
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        // Who came across it before it was locked took it for one of the dead.
        if fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
    Err(Errno::AGAIN.into())
}

/// What is in the way of the directory of this user; nothing if nothing is.
#[must_use]
pub fn obstacle() -> Option<String> {
    let path = path();
    let shown = path.display();
    let stat = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if stat.st_uid != user() {
        return Some(format!(
            "{shown} belongs to {}, who keeps this user from tcam: that user or root must remove it",
            name_of(stat.st_uid)
        ));
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Some(format!("{shown} is no directory: remove it"));
    }
    (stat.st_mode & 0o077 != 0)
        .then(|| format!("{shown} is open to other users: chmod 700 {shown}, or remove it"))
}

/// Who else has such a directory on this host, as people know them.
#[must_use]
pub fn other_users() -> Vec<String> {
    let entries = std::fs::read_dir(SHM).into_iter().flatten().flatten();
    let users = entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("tcam.")?.parse::<u32>().ok());
    users.filter(|&other| other != user()).map(name_of).collect()
}

/// A user as people know it.
fn name_of(user: u32) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_user = |line: &&str| line.split(':').nth(2) == Some(&user.to_string());
    match known.lines().find(of_user).and_then(|line| line.split(':').next()) {
        Some(name) => format!("user {name} ({user})"),
        None => format!("user {user}"),
    }
}

/// Descriptors that are held for when a process has no other: each of `/dev/shm`, whose inode
/// tells that nobody else has been given the number since.
static SPARES: Mutex<Vec<(OwnedFd, u64)>> = Mutex::new(Vec::new());

/// To open a file takes two: the directory's and its own.
const SPARE: usize = 2;

/// Takes descriptors to hold, if there are any.
fn keep_spares() {
    let mut spares = SPARES.lock();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    while spares.len() < SPARE {
        let Ok(fd) = openat(CWD, SHM, flags, Mode::empty()) else { return };
        let Ok(fd) = rustix::io::fcntl_dupfd_cloexec(&fd, libc::STDERR_FILENO + 1) else { return };
        let Ok(stat) = fstat(&fd) else { return };
        spares.push((fd, stat.st_ino));
    }
}

/// Opens something; if no descriptor is left, with one that is held for that.
fn with_spare<T>(open: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    match open() {
        Err(Errno::MFILE | Errno::NFILE) if give_spare() => open(),
        opened => opened,
    }
}

/// Gives up a descriptor that is held; false if there is none.
fn give_spare() -> bool {
    let Some((fd, inode)) = SPARES.lock().pop() else { return false };
    let is_ours = fstat(fd.as_fd()).is_ok_and(|stat| stat.st_ino == inode);
    if !is_ours {
        // The program closed all descriptors, and has its own under this number.
        std::mem::forget(fd);
    }
    is_ours
}

/// Holds descriptors again after some were given up: to be called now and then.
pub fn look_around() {
    if SPARES.lock().len() < SPARE {
        keep_spares();
    }
}

/// Whether a call failed for want of descriptors or memory here, which says nothing of what it was
/// to open.
#[must_use]
pub fn is_short(error: &io::Error) -> bool {
    let short = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOSPC, libc::EDQUOT];
    error.raw_os_error().is_some_and(|errno| short.contains(&errno))
}

/// The same file with a number that no standard stream has: where these are closed, as those of
/// daemons are, what the program prints would go into it.
///
/// # Errors
/// No descriptor is left.
pub fn behind_streams(file: File) -> io::Result<File> {
    if file.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(file);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&file, libc::STDERR_FILENO + 1)?.into())
}
