// SPDX-License-Identifier: BSD-2-Clause
//! Reads the counters of endpoints on this host: of running ones, and of those whose process has
//! ended. The counters are in the first page of a segment, the endpoint's file in shared memory
//! ([`host::directory`]). Any process of the user may write to a segment, so no value in a page is
//! used as a length.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use host::directory::{self, Directory};
use host::live::{Live, PAGE, SegmentHeader};
use host::names::{LEFT, SEGMENT_NAME};
use host::owner::{remove_if_dead, start_of, stat_of};
use matching::Tallies;
use nic::plain::plain;
use nic::report::LiveContext;

use crate::error::Error;

/// Maximum number of attempts to read a page. The endpoint may write to the page at the same time.
const TRIES: usize = 20;

/// Identifies an endpoint: process id, start of the process, port.
pub(crate) type Id = (u32, u64, u16);

/// Identifies a job by the last four hexadecimal digits of its [`host::names::job_of`]. All
/// endpoints of a job have the same FI_TCAM_REPORT. Endpoints that write no reports have 0.
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
        number
            .map(Self)
            .ok_or("four hexadecimal digits are expected, as `tcam show --live` shows them")
    }
}

/// An endpoint whose process runs.
#[derive(Clone, Debug)]
pub(crate) struct RunningEndpoint {
    pub(crate) page: SegmentHeader,
    /// Name of the program.
    pub(crate) program: String,
}

impl RunningEndpoint {
    pub(crate) fn id(&self) -> Id {
        (self.page.pid, self.page.started, self.page.port)
    }

    pub(crate) fn live(&self) -> Option<&Live> {
        self.page.live.as_ref()
    }

    /// Returns the job of the endpoint, or `None` if its page contains no counters yet, or counters
    /// of another version.
    pub(crate) fn job(&self) -> Option<Job> {
        self.live().map(|live| Job(live.job as u16))
    }
}

/// Returns the running endpoints of this user, sorted by rank.
pub(crate) fn all() -> Result<Vec<RunningEndpoint>, Error> {
    let Some(directory) = open()? else { return Ok(Vec::new()) };
    // An endpoint whose process ends before its page is read is left out.
    let lives = |name: String| endpoint(&directory, &name).ok().flatten();
    let mut found: Vec<_> = names(&directory, SEGMENT_NAME)?.filter_map(lives).collect();
    found.sort_by_key(|of| (of.live().map_or(Some(u32::MAX), |live| live.rank), of.id()));
    Ok(found)
}

/// Returns the last counters of the endpoints of a job, sorted by rank. Waits up to `patience` for
/// their processes to end, and removes the segments of the processes that have ended. The counters
/// of processes that still run are returned too.
pub(crate) fn left_by(job: u64, patience: Duration) -> Result<Vec<Live>, Error> {
    let Some(directory) = open()? else { return Ok(Vec::new()) };
    let deadline = Instant::now() + patience;
    let mut left = BTreeMap::new();
    let of_job = |name: &str| {
        let page = page_of(&directory, name).ok().flatten();
        page.and_then(|page| page.live.filter(|live| live.job == job).map(|live| (page, live)))
    };
    for name in names(&directory, SEGMENT_NAME)? {
        let Some((page, live)) = of_job(&name) else { continue };
        let is_there = || directory.inode(&name).is_some();
        while !remove_if_dead(&directory, &name) && is_there() && Instant::now() < deadline {
            sleep(Duration::from_millis(10));
        }
        left.insert((live.rank, page.pid, page.started, page.port), live);
    }
    // While a process claims the job (see `leftovers`), the segment of a dead endpoint is not
    // removed but gets a name with this prefix.
    for name in names(&directory, LEFT)? {
        let Some((page, live)) = of_job(&name) else { continue };
        left.insert((live.rank, page.pid, page.started, page.port), live);
        let _ = directory.remove(&name);
    }
    Ok(left.into_values().collect())
}

/// Adds up the counters of several endpoints. For table sizes and high-water marks, the result has
/// the largest value instead of the sum.
pub(crate) fn sum(contexts: impl IntoIterator<Item = LiveContext>) -> LiveContext {
    contexts.into_iter().fold(LiveContext::default(), |mut sum, of| {
        sum.merge(&of);
        sum
    })
}

/// Returns the counts that only grow: posts, arrivals and unexpected messages; then, as sums of
/// both queues, matches in the table, matches on the host, and spills.
pub(crate) fn counts(of: &LiveContext) -> [u64; 6] {
    let LiveContext { posts, arrivals, unexpected, prq, umq } = of;
    let of_both = |of: fn(&Tallies) -> u64| of(prq).saturating_add(of(umq));
    [
        *posts,
        *arrivals,
        *unexpected,
        of_both(|queue| queue.table_matches),
        of_both(|queue| queue.host_matches),
        of_both(|queue| queue.spills),
    ]
}

/// Opens the directory of this user. Returns `None` if tcam has never run on this host.
pub(crate) fn open() -> Result<Option<Directory>, Error> {
    match Directory::open() {
        Ok(directory) => Ok(Some(directory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::Message(
            directory::obstacle()
                .unwrap_or_else(|| format!("{}: {error}", directory::path().display())),
        )),
    }
}

fn names(directory: &Directory, prefix: &str) -> Result<impl Iterator<Item = String>, Error> {
    directory.names(prefix).map_err(Error::io(&directory::path()))
}

/// Returns the endpoint of a segment, or `None` if its process has ended or its page cannot be read
/// in a consistent state.
fn endpoint(directory: &Directory, name: &str) -> io::Result<Option<RunningEndpoint>> {
    let endpoint = |page| Some(RunningEndpoint { program: program(&page)?, page });
    Ok(page_of(directory, name)?.and_then(endpoint))
}

/// Returns the first page of a segment, or `None` if no attempt read it in a consistent state.
fn page_of(directory: &Directory, name: &str) -> io::Result<Option<SegmentHeader>> {
    page(&directory.file(name)?)
}

/// Returns the name of the program that owns a segment, or `None` if its process has ended.
fn program(page: &SegmentHeader) -> Option<String> {
    let process = Path::new("/proc").join(page.pid.to_string());
    // A dead process leaves its segment, and another process may get its number.
    let stat = stat_of(page.pid).ok()?;
    if start_of(&stat) != Some(page.started) {
        return None;
    }
    let name = fs::read_link(process.join("exe")).unwrap_or_default();
    let program = name.file_name().unwrap_or_default().to_string_lossy();
    // The name is printed to the terminal, so control characters are replaced.
    Some(plain(&program).into_owned())
}

fn page(file: &File) -> io::Result<Option<SegmentHeader>> {
    let mut pages = [[0; PAGE]; 2];
    for _ in 0..TRIES {
        for page in &mut pages {
            file.read_exact_at(page, 0)?;
        }
        if let Some(page) = SegmentHeader::read(&pages[0], &pages[1]) {
            return Ok(Some(page));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use host::live;

    /// Returns a segment of this process.
    fn segment() -> [u8; PAGE] {
        let mut page = [0; PAGE];
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let mut put = |at: usize, word: u64| page[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(live::MAGIC_AT, live::MAGIC);
        put(live::PID, u64::from(std::process::id()));
        put(live::STARTED, start_of(&stat).unwrap());
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
    fn only_living_endpoints_of_this_user_are_shown() {
        // No namespace has this number.
        let name = format!("{SEGMENT_NAME}0.{}", std::process::id());
        let path = directory::path().join(&name);
        // Locked as by its owner, because provider tests that run at the same time remove segments
        // without a lock.
        let _owner = directory::create_locked(&name).unwrap();
        let directory = Directory::open().unwrap();
        let mut page = segment();
        let put = |page: &[u8], mode| {
            fs::write(&path, page).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let is_shown = || endpoint(&directory, &name).is_ok_and(|found| found.is_some());
        put(&page, 0o600);
        let found = endpoint(&directory, &name).unwrap().unwrap();
        assert_eq!((found.page.pid, found.live()), (std::process::id(), None));
        assert!(!found.program.is_empty());
        put(&page, 0o644);
        assert!(!is_shown(), "other users may read the segment");
        put(&page[..PAGE - 1], 0o600);
        assert!(!is_shown(), "too short");
        page[live::STARTED] ^= 1;
        put(&page, 0o600);
        assert!(!is_shown(), "an earlier process of this number");
        let link = format!("{name}.link");
        symlink(&path, directory::path().join(&link)).unwrap();
        assert!(endpoint(&directory, &link).is_err(), "a link");
        directory.remove(&link).unwrap();
        directory.remove(&name).unwrap();
    }
}
