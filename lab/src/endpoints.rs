// SPDX-License-Identifier: BSD-2-Clause
//! Endpoints that run, and those whose process was ended: the first pages of their segments in
//! `/dev/shm`. Nothing in them is taken for a length.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nic::live::{self, LEFT, Live, PAGE, Page, SEGMENTS};
use nic::plain::plain;
use rustix::fs::{FlockOperation, OFlags, fcntl_lock, flock};

use crate::error::Error;

const DIRECTORY: &str = "/dev/shm";
/// Readings of a page that is written meanwhile.
const TRIES: usize = 20;

/// Names an endpoint: process id, start of the process, port.
pub(crate) type Id = (u32, u64, u16);

/// Names a job, endpoints of which write their reports to one pattern: the last digits of
/// [`live::job_of`], 0 where they write none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Job(u16);

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.0)
    }
}

impl FromStr for Job {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.len() == 4 && text.chars().all(|char| char.is_ascii_hexdigit());
        let number = digits.then(|| u16::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or("four hexadecimal digits are expected, as `tcam watch` shows them")
    }
}

/// An endpoint that runs.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) page: Page,
    /// Name of the program.
    pub(crate) program: String,
}

impl Endpoint {
    pub(crate) fn id(&self) -> Id {
        (self.page.pid, self.page.started, self.page.port)
    }

    pub(crate) fn live(&self) -> Option<&Live> {
        self.page.live.as_ref()
    }

    /// The job that it is of, if it has told that.
    pub(crate) fn job(&self) -> Option<Job> {
        self.live().map(|live| Job(live.job as u16))
    }
}

/// Endpoints of this user, by rank.
pub(crate) fn all() -> Result<Vec<Endpoint>, Error> {
    let user = rustix::process::geteuid().as_raw();
    // What ends meanwhile is no error.
    let lives = |path: PathBuf| endpoint(&path, user).ok().flatten();
    let mut found: Vec<_> = segments(SEGMENTS, user)?.filter_map(lives).collect();
    found.sort_by_key(|of| (of.live().map_or(Some(u32::MAX), |live| live.rank), of.id()));
    Ok(found)
}

/// What the processes of a job that were ended had counted, by rank. Their segments, which
/// nobody needs any more, are removed; processes that are being ended are waited for so long.
pub(crate) fn left_by(job: u64, patience: Duration) -> Result<Vec<Live>, Error> {
    let user = rustix::process::geteuid().as_raw();
    let deadline = Instant::now() + patience;
    let mut left = BTreeMap::new();
    // Those that others come across meanwhile are found in the second place.
    for path in segments(SEGMENTS, user)?.chain(segments(LEFT, user)?) {
        let Ok(Some(Page { pid, started, port, live: Some(live) })) = page_of(&path, user) else {
            continue;
        };
        if live.job == job {
            while !remove_if_dead(&path) && Instant::now() < deadline {
                sleep(Duration::from_millis(10));
            }
            left.insert((live.rank, pid, started, port), live);
        }
    }
    Ok(left.into_values().collect())
}

/// Removes a segment unless its owner lives; whether it is gone. As the provider does
/// (`channel/owner.rs`): an owner holds one lock as long as it lives, and who removes takes turns
/// by another, since the path may else be another segment's by now.
fn remove_if_dead(path: &Path) -> bool {
    let Ok(file) = open(OpenOptions::new().read(true).write(true), path) else {
        return !path.exists();
    };
    let alone = FlockOperation::NonBlockingLockExclusive;
    flock(&file, alone).is_ok()
        && fcntl_lock(&file, alone).is_ok()
        && file.metadata().is_ok_and(|meta| {
            let is_this = fs::symlink_metadata(path).is_ok_and(|now| now.ino() == meta.ino());
            !is_this || fs::remove_file(path).is_ok()
        })
}

/// Opens a file of `/dev/shm`, not what somebody linked there, and waits for nobody.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Files of this user that are named like segments, or like those of the dead.
fn segments(kind: &str, user: u32) -> Result<impl Iterator<Item = PathBuf>, Error> {
    let directory = Path::new(DIRECTORY);
    let entries = fs::read_dir(directory).map_err(Error::io(directory))?;
    let prefix = format!("{kind}{user}.");
    let ours = entries
        .flatten()
        .filter(move |entry| entry.file_name().to_string_lossy().starts_with(&prefix));
    Ok(ours.map(|entry| entry.path()))
}

/// The endpoint whose segment this is, if it is one of this user that lives.
fn endpoint(path: &Path, user: u32) -> io::Result<Option<Endpoint>> {
    let endpoint = |page| Some(Endpoint { program: program(&page)?, page });
    Ok(page_of(path, user)?.and_then(endpoint))
}

/// The first page of a segment, if it is one of this user.
fn page_of(path: &Path, user: u32) -> io::Result<Option<Page>> {
    let file = open(OpenOptions::new().read(true), path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.uid() != user || meta.mode() & 0o077 != 0 {
        return Ok(None);
    }
    page(&file)
}

/// The name of the program that owns a segment; nothing if it has ended.
fn program(page: &Page) -> Option<String> {
    let process = Path::new("/proc").join(page.pid.to_string());
    // A process that died leaves its segment, and its number to another.
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    if live::start_of(&stat) != Some(page.started) {
        return None;
    }
    let name = fs::read_link(process.join("exe")).unwrap_or_default();
    let program = name.file_name().unwrap_or_default().to_string_lossy();
    // It goes to the terminal.
    Some(plain(&program).into_owned())
}

fn page(file: &File) -> io::Result<Option<Page>> {
    let mut pages = [[0; PAGE]; 2];
    for _ in 0..TRIES {
        for page in &mut pages {
            file.read_exact_at(page, 0)?;
        }
        if let Some(page) = Page::read(&pages[0], &pages[1]) {
            return Ok(Some(page));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A segment of this process.
    fn segment() -> [u8; PAGE] {
        let mut page = [0; PAGE];
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let mut put = |at: usize, word: u64| page[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(live::IDENTITY, live::MAGIC);
        put(live::PID, u64::from(std::process::id()));
        put(live::STARTED, live::start_of(&stat).unwrap());
        put(live::STATE, u64::from(live::OPEN));
        page
    }

    #[test]
    fn jobs_have_four_digits() {
        for name in ["0000", "00fa", "ffff"] {
            assert_eq!(name.parse::<Job>().unwrap().to_string(), name);
        }
        for wrong in ["", "1", "+00a", "00fg", "12345"] {
            assert!(wrong.parse::<Job>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_segment_goes_only_when_its_owner_is_dead() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tcam.0.1.2");
        fs::write(&path, segment()).unwrap();
        let owner = File::open(&path).unwrap();
        flock(&owner, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(!remove_if_dead(&path) && path.exists());
        drop(owner);
        assert!(remove_if_dead(&path) && !path.exists());
        assert!(remove_if_dead(&path), "gone already");
    }

    #[test]
    fn only_what_is_ours_and_lives_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let path = directory.path().join("tcam.0.1.2");
        let mut page = segment();
        let put = |page: &[u8], mode| {
            fs::write(&path, page).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let is_shown = |user| endpoint(&path, user).is_ok_and(|found| found.is_some());
        put(&page, 0o600);
        let found = endpoint(&path, user).unwrap().unwrap();
        assert_eq!((found.page.pid, found.live()), (std::process::id(), None));
        assert!(!found.program.is_empty());
        assert!(!is_shown(user + 1), "another user's");
        put(&page, 0o644);
        assert!(!is_shown(user), "open to others");
        put(&page[..PAGE - 1], 0o600);
        assert!(!is_shown(user), "too short");
        page[live::STARTED] ^= 1;
        put(&page, 0o600);
        assert!(!is_shown(user), "an earlier process of this number");
        let link = directory.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(endpoint(&link, user).is_err(), "a link");
    }
}
