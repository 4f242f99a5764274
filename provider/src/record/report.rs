// SPDX-License-Identifier: BSD-2-Clause
//! Writes the report of an endpoint or a shared receive context to `FI_TCAM_REPORT` when the object
//! closes, or when the process exits while the object is open. Until then, the report of an
//! endpoint has a draft, a file that remains if the process crashes (`host::draft`).

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Instant,
};

use host::{
    draft::{Draft, INTERVAL},
    live::Live,
};
use nic::{
    params::Params,
    report::{FORMAT, LiveContext, Report, VERSION, WrittenAt},
};
use parking_lot::Mutex;
use tempfile::NamedTempFile;

use crate::{
    device::clusters,
    job::{self, expand},
    params,
    record::{message, summary},
};

/// Begins the draft of an endpoint's report. Returns `None` if no report is requested. Prints the
/// reason to the error output and returns `None` if the draft cannot be created.
pub(crate) fn begin(params: &Params, address: String, opened: Instant) -> Option<Box<OpenReport>> {
    if params.report.is_empty() {
        return None;
    }
    let report = make(params, address, opened, WrittenAt::Running);
    let base = expand(&params.report, &report);
    match Draft::create(&base) {
        Ok(draft) => {
            Some(Box::new(OpenReport { draft, report, last_written: None, opened, due: opened }))
        }
        Err(error) => {
            message::print(format_args!(
                "tcam: the report FI_TCAM_REPORT={} is lost if the program is killed or crashes, \
                 because its draft cannot be created: {error}",
                base.display()
            ));
            None
        }
    }
}

/// The report of an open endpoint, and its draft.
#[derive(Debug)]
pub(crate) struct OpenReport {
    draft: Draft,
    report: Report,
    /// The counters in the draft, when they were last written.
    last_written: Option<[LiveContext; 2]>,
    opened: Instant,
    due: Instant,
}

impl OpenReport {
    /// Returns whether it is time to write the draft.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Writes the draft, if the counters in `live` have changed. `count` fills in all counters.
    pub(crate) fn put(&mut self, count: impl FnOnce(&mut Report), live: &Live, now: Instant) {
        self.due = now + INTERVAL;
        let counters = Some([live.tagged, live.msg]);
        if counters == self.last_written {
            return;
        }
        self.last_written = counters;
        self.report.elapsed_s = (now - self.opened).as_secs_f64();
        count(&mut self.report);
        self.draft.put(&mut self.report);
    }

    /// The draft, for use after the report was written.
    pub(crate) fn into_draft(self) -> Draft {
        self.draft
    }
}

/// Returns whether an object must create a report when it closes, for the file of `FI_TCAM_REPORT`
/// or for the summary.
pub(crate) fn is_wanted(params: &Params) -> bool {
    !params.report.is_empty() || summary::is_wanted(params)
}

/// Prints the summary of a complete report and writes the report, as far as requested. Removes the
/// draft, if there is one. If the report cannot be written, prints the reason to the error output,
/// and keeps the draft with the report in it.
pub(crate) fn finish(params: &Params, report: &mut Report, draft: Option<Draft>) {
    if summary::is_wanted(params) {
        summary::print(report);
    }
    if !params.report.is_empty() {
        save_checked(params, report, draft);
    }
}

fn save_checked(params: &Params, report: &mut Report, draft: Option<Draft>) {
    if let Err(why) = report.check() {
        tracing::error!("{}: the counts do not add up: {why}", report.address);
    }
    let base = expand(&params.report, report);
    let Err(error) = save(&base, report) else { return };
    let Some(mut draft) = draft else { return say(&base, &error, "") };
    // The draft's space was reserved when the endpoint was opened, so this needs no room on the
    // disk.
    draft.put(report);
    let name = draft.path().file_name().unwrap_or_default();
    say(&base, &error, &format!("; the draft {} beside it contains the report", name.display()));
    draft.keep();
}

fn say(base: &Path, error: &io::Error, rest: &str) {
    message::print(format_args!(
        "tcam: cannot write the report FI_TCAM_REPORT={}: {error}{rest}",
        base.display()
    ));
}

/// Creates the report of an object that was opened at `opened`, without counts.
pub(crate) fn make(
    params: &Params,
    address: String,
    opened: Instant,
    written_at: WrittenAt,
) -> Report {
    let program = std::env::current_exe().unwrap_or_default();
    Report {
        format: FORMAT.to_owned(),
        version: VERSION,
        tcam: env!("CARGO_PKG_VERSION").to_owned(),
        libfabric: params::libfabric_version(),
        host: job::host(),
        pid: std::process::id(),
        rank: job::rank(),
        address,
        program: program.display().to_string(),
        origin: job::origin(opened),
        start_ns: job::since_1970(opened).as_nanos() as u64,
        elapsed_s: opened.elapsed().as_secs_f64(),
        written_at,
        config: params.recorded(),
        remarks: clusters::remarks(),
        ..Default::default()
    }
}

/// Writes `base.json`, whole or not at all. If the disk is full, an earlier file stays. Replaces
/// reports of earlier processes. If the process writes several reports, all but the
/// first are written to `base.1.json` and so on.
///
/// Other users may write to the directory too. Therefore no file is opened for writing by a name
/// that they can predict, and links are replaced, not followed.
///
/// # Errors
/// The file cannot be written, or a file with its name is no report of tcam.
fn save(base: &Path, report: &Report) -> io::Result<()> {
    let directory = match base.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    fs::create_dir_all(directory)?;
    // Two endpoints of a process that close at once must not use the same number.
    static SAVING: Mutex<()> = Mutex::new(());
    let _saving = SAVING.lock();
    let json = report.to_json().map_err(io::Error::other)?;
    let file = new_file(directory, &json)?;
    for number in 0_u32.. {
        let number = if number == 0 { String::new() } else { format!(".{number}") };
        let mut path = base.as_os_str().to_owned();
        path.push(format!("{number}.json"));
        let path = PathBuf::from(path);
        let writer = match content(&path)? {
            Some(content) => Some(Report::writer(&content).ok_or_else(|| not_a_report(&path))?),
            None => None,
        };
        if writer == Some(report.pid) {
            continue;
        }
        file.persist(path)?;
        return Ok(());
    }
    Ok(())
}

/// Creates a file with this text. It is removed when it is dropped, unless it was renamed.
fn new_file(directory: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(".tcam-")
        .suffix(".new")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// More bytes than any report has.
const MOST: u64 = 16 << 20;

/// Returns the content of the file with this name, up to [`MOST`] bytes; `None` if there is no file,
/// or an empty file or a link, which contains nothing to keep.
///
/// # Errors
/// The file cannot be read, or is not a regular file.
fn content(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    if about.is_symlink() || about.is_file() && about.len() == 0 {
        return Ok(None);
    }
    // Other users may replace the file meanwhile.
    let no_link = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = fs::File::options().read(true).custom_flags(no_link).open(path);
    let file = file.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    if !file.metadata()?.is_file() {
        return Err(not_a_report(path));
    }
    let mut content = Vec::new();
    file.take(MOST).read_to_end(&mut content)?;
    Ok(Some(content))
}

fn not_a_report(path: &Path) -> io::Error {
    let why = format!("{} is there and no report of tcam; it stays as it is", path.display());
    io::Error::new(io::ErrorKind::AlreadyExists, why)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn report(pid: u32) -> Report {
        Report { format: FORMAT.to_owned(), version: VERSION, pid, ..Default::default() }
    }

    #[test]
    fn earlier_runs_are_replaced_and_a_second_endpoint_gets_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let base = directory.join("0");
        for pid in [1, 2, 2] {
            save(&base, &report(pid)).unwrap();
        }
        let pid = |name: &str| {
            let text = fs::read_to_string(directory.join(name)).unwrap();
            Report::from_json(&text).unwrap().pid
        };
        assert_eq!((pid("0.json"), pid("0.1.json")), (2, 2));
        assert_eq!(fs::read_dir(directory).unwrap().count(), 2);
    }

    #[test]
    fn the_target_of_a_link_is_neither_written_nor_read() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let precious = report(7).to_json().unwrap();
        fs::write(place("precious"), &precious).unwrap();
        for name in ["0.json", "0.7.json.new"] {
            symlink("precious", place(name)).unwrap();
        }
        // If links were followed, this would be its own report.
        save(&place("0"), &report(7)).unwrap();
        assert_eq!(fs::read_to_string(place("precious")).unwrap(), precious);
        assert!(fs::symlink_metadata(place("0.json")).unwrap().is_file());
        assert!(!place("0.1.json").exists());
    }

    #[test]
    fn files_of_another_kind_stay() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("a.json"), "{\"pid\": 1}").unwrap();
        fs::create_dir(place("b.json")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, place("c.json"), 0o600.into()).unwrap();
        let count = || fs::read_dir(directory.path()).unwrap().count();
        let before = count();
        for name in ["a.json", "b.json", "c.json"] {
            let error = save(&place(&name[..1]), &report(1)).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("no report of tcam"), "{error}");
        }
        assert_eq!(count(), before);
        // Empty files are replaced, and so are reports of other versions.
        fs::write(place("e.json"), "").unwrap();
        fs::write(place("f.json"), "{\"format\": \"tcam-report\", \"pid\": 1, \"x\": 2}").unwrap();
        for name in ["e", "f"] {
            save(&place(name), &report(2)).unwrap();
        }
    }
}
