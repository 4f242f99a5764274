// SPDX-License-Identifier: BSD-2-Clause
//! The directory of a user in `/dev/shm`, which contains all files of tcam that processes share.
//!
//! ```text
//! /dev/shm/tcam.USER/                     mode 0700
//!     segment.NAMESPACE.PORT              an endpoint (channel/src/shm/segment.rs)
//!     new.NAMESPACE.PORT                  an endpoint that is being made
//!     bell.NAMESPACE.PORT                 the socket that an endpoint sleeps on
//!     left.NAMESPACE.PORT-INODE           segment of a dead endpoint, kept for `tcam run`
//!     claim.JOB                           locked by `tcam run`, for which the segments of a job's
//!                                         dead endpoints are kept
//!     pool.NAMESPACE.ENTRIES              a shared pool of table entries
//!     av.NAMESPACE.NAME                   a named address vector
//! ```
//!
//! Any user may take any name in `/dev/shm` first. So tcam uses a single name. Before it uses
//! anything inside, it checks that the name is a real directory of this user that is closed to
//! others. No other user can put a file, a link or a socket into such a directory, or rename it
//! (`/dev/shm` is sticky). If another user has taken the name, tcam does not work, and the log
//! names that user.
//!
//! The directory is removed with its last file. A process that makes a file first makes the
//! directory, and starts over if the directory was removed meanwhile.
//!
//! Rejected:
//! - Names that cannot be guessed: every peer would need to learn them, and libfabric addresses
//!   have no room for them.
//! - A directory descriptor that is kept open: a program that closes all descriptors may then open
//!   another directory under the same number, which tcam would use.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::{Path, PathBuf},
    time::SystemTime,
};

use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, CWD, Dir, FallocateFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, chmod,
    fallocate, fchmod, flock, fstat, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

/// Parent of the directories of all users.
pub const SHM: &str = "/dev/shm";

/// Attempts to make a file in a directory that other processes remove when it is empty.
const TRIES: usize = 100;

/// Returns the number of the user that this process acts as.
#[must_use]
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the path of this user's directory, whether or not it exists.
#[must_use]
pub fn path() -> PathBuf {
    Path::new(SHM).join(format!("tcam.{}", user()))
}

/// The directory of this user, opened and checked to be private.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
}

impl Directory {
    /// Opens the directory.
    ///
    /// # Errors
    /// `ENOENT` if it does not exist; `EACCES`, which is also logged, if the name belongs to
    /// another user, is no directory, or is open to others.
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
            obstacle().unwrap_or_else(|| format!("no access to {}", path.display()))
        );
        Err(Errno::ACCESS.into())
    }

    /// Opens the directory, and makes it if it does not exist. Then fills the reserve of
    /// descriptors.
    ///
    /// # Errors
    /// Those of [`Directory::open`] and of making the directory; `EAGAIN` if other processes keep
    /// removing it.
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
                // The directory was removed with its last file in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                opened => {
                    if opened.is_ok() {
                        look_around();
                    }
                    return opened;
                }
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a file for reading and writing. It must be a regular file of this user that is closed
    /// to others.
    ///
    /// # Errors
    /// `ENOENT` if it does not exist, `EACCES` if it is not such a file.
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
                "{}/{name} is not a regular file, or is not private to this user: remove it",
                path().display()
            );
            return Err(Errno::ACCESS.into());
        }
        Ok(fd.into())
    }

    /// Opens a file, and makes it if it does not exist.
    ///
    /// # Errors
    /// Like [`Directory::file`]; `ENOENT` if the directory was removed.
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

    /// Returns the names of the files that begin with `prefix`.
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

    /// Returns the inode number of a file; `None` if the file does not exist.
    #[must_use]
    pub fn inode(&self, name: &str) -> Option<u64> {
        statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| stat.st_ino)
    }

    /// Returns the time at which a file in the directory was last made, renamed or removed; `None`
    /// if it is unknown.
    #[must_use]
    pub fn change_time(&self) -> Option<SystemTime> {
        let stat = fstat(&self.fd).ok()?;
        let seconds = u64::try_from(stat.st_mtime).ok()?;
        let since = std::time::Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(since)
    }

    /// Renames a file.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Renames a file to a name that is not in use.
    ///
    /// # Errors
    /// `EEXIST` if the name is in use.
    pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE)?)
    }

    /// Removes a file, and also the directory if this was its last file.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        unlinkat(&self.fd, name, AtFlags::empty())?;
        // Fails, as intended, while the directory is not empty.
        let _ = rustix::fs::rmdir(path());
        Ok(())
    }
}

/// Gives this user access to the new directory, regardless of the program's umask. The name may
/// lead elsewhere by now, so the mode of the opened directory is changed.
fn admit_owner() -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(CWD, path(), flags, Mode::empty())?;
    let stat = fstat(&fd)?;
    if stat.st_uid == user() && stat.st_mode & 0o777 != 0o700 {
        chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::RWXU)?;
    }
    Ok(())
}

/// Makes a new file and locks it for its owner.
///
/// # Errors
/// `EEXIST` if the name is in use; otherwise like [`Directory::make`]. `EAGAIN` if other processes
/// keep removing the file.
pub fn create_locked(name: &str) -> io::Result<File> {
    for _ in 0..TRIES {
        let file = match Directory::make()?.new_file(name) {
            // The directory was removed while it was still empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            made => made?,
        };
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        // A process that found the file before it was locked took the owner for dead, and removed
        // the file.
        if fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
    Err(Errno::AGAIN.into())
}

/// Describes what prevents the use of this user's directory; `None` if nothing does.
#[must_use]
pub fn obstacle() -> Option<String> {
    let path = path();
    let shown = path.display();
    let stat = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if stat.st_uid != user() {
        return Some(format!(
            "{shown} belongs to {}, so this user cannot use tcam: that user or root must remove it",
            name_of(stat.st_uid)
        ));
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Some(format!("{shown} is not a directory: remove it"));
    }
    (stat.st_mode & 0o077 != 0)
        .then(|| format!("{shown} is open to other users: chmod 700 {shown}, or remove it"))
}

/// Returns the other users that have a tcam directory on this host, by name and number.
#[must_use]
pub fn other_users() -> Vec<String> {
    let entries = std::fs::read_dir(SHM).into_iter().flatten().flatten();
    let users = entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("tcam.")?.parse::<u32>().ok());
    users.filter(|&other| other != user()).map(name_of).collect()
}

/// Returns the name, if known, and the number of a user.
fn name_of(user: u32) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_user = |line: &&str| line.split(':').nth(2) == Some(&user.to_string());
    match known.lines().find(of_user).and_then(|line| line.split(':').next()) {
        Some(name) => format!("user {name} ({user})"),
        None => format!("user {user}"),
    }
}

/// Descriptors held in reserve, to be released when no other descriptor is left. Each of them is an
/// open `/dev/shm`. Device and inode serve to check that the program has not closed the descriptor
/// and opened another file under its number.
static SPARES: Mutex<Vec<(OwnedFd, (u64, u64))>> = Mutex::new(Vec::new());

/// Number of descriptors in reserve. Opening a file takes two: for the directory and for the file.
const SPARE: usize = 2;

/// Fills the reserve while descriptors are available. To be called from time to time.
pub fn look_around() {
    let mut spares = SPARES.lock();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    while spares.len() < SPARE {
        let Ok(fd) = openat(CWD, SHM, flags, Mode::empty()) else { return };
        let Ok(fd) = rustix::io::fcntl_dupfd_cloexec(&fd, libc::STDERR_FILENO + 1) else { return };
        let Some(file) = file_of(&fd) else { return };
        spares.push((fd, file));
    }
}

/// Returns the device and the inode of an open file.
fn file_of(fd: &OwnedFd) -> Option<(u64, u64)> {
    let stat = fstat(fd).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Opens a file; if no descriptor is left, releases one from the reserve and tries again.
fn with_spare<T>(open: impl Fn() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    match open() {
        Err(Errno::MFILE | Errno::NFILE) if release_spare() => open(),
        opened => opened,
    }
}

/// Releases a descriptor from the reserve. Returns false if the reserve is empty, or if the program
/// has closed that descriptor.
fn release_spare() -> bool {
    let spare = SPARES.lock().pop();
    spare.is_some_and(|(fd, file)| release(fd, file))
}

/// Closes a descriptor from the reserve. Returns false if its number is now that of another file.
fn release(fd: OwnedFd, file: (u64, u64)) -> bool {
    let is_ours = file_of(&fd) == Some(file);
    if !is_ours {
        // The program closed all descriptors and has its own file under this number.
        std::mem::forget(fd);
    }
    is_ours
}

/// Returns true if a call failed for lack of descriptors, memory or space. Such a failure says
/// nothing about the file to be opened.
#[must_use]
pub fn is_short(error: &io::Error) -> bool {
    let short = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOSPC, libc::EDQUOT];
    error.raw_os_error().is_some_and(|errno| short.contains(&errno))
}

/// Moves a file to a descriptor above the standard streams. If these are closed, as in daemons, the
/// program's output would otherwise go into the file.
///
/// # Errors
/// No descriptor is left.
pub fn move_above_streams(file: File) -> io::Result<File> {
    if file.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(file);
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&file, libc::STDERR_FILENO + 1)?.into())
}

/// Checks that files may have this length. Beyond the limit, the kernel ends the process (SIGXFSZ).
///
/// # Errors
/// `EFBIG`, which is also logged with `what` as the name of the file.
pub fn check_file_size(length: usize, what: &str) -> io::Result<()> {
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < length as u64) {
        tracing::error!(
            "cannot make a {what} of {length} bytes: files must not be that long here \
             (raise ulimit -f)"
        );
        return Err(Errno::FBIG.into());
    }
    Ok(())
}

/// Allocates the memory of a new file at once, because a full `/dev/shm` would raise `SIGBUS`
/// later. Signals of the program may interrupt the call, which is then repeated.
///
/// # Errors
/// Those of [`check_file_size`]; others, such as `ENOSPC`, if there is no room. All are logged with
/// `what` as the name of the file.
pub fn allocate(file: &File, length: usize, what: &str) -> io::Result<()> {
    check_file_size(length, what)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_the_program_stays_open() {
        let open = |path| File::open(path).unwrap().into();
        let (spare, of_program): (OwnedFd, OwnedFd) = (open(SHM), open("/proc"));
        let number = of_program.as_raw_fd();
        let (device, inode) = file_of(&of_program).unwrap();
        // The roots of many file systems have the same inode.
        assert!(!release(of_program, (device + 1, inode)));
        assert!(Path::new(&format!("/proc/self/fd/{number}")).exists());
        let file = file_of(&spare).unwrap();
        assert!(release(spare, file));
    }
}
