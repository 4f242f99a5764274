// SPDX-License-Identifier: BSD-2-Clause
//! Writes a trace file, record by record, through a mapping of the file's *window* (see
//! `nic::trace`), so that the records of a killed process are not lost. When the window is full, it
//! is appended to the file, with one system call per [`WINDOW`] bytes.
//!
//! The window is written once before it is mapped, so that a full disk causes an error then and not
//! a `SIGBUS` later. A zero word follows the youngest record and is written before that record, so
//! the window never needs to be cleared.
//!
//! Rejected:
//! - Mapping the whole file part by part: a record of 32 bytes takes 25 to 35 ns instead of 16 ns.
//!   The cause is a page fault per 4 KiB, which takes long on file systems.
//! - A buffer outside the file: it is lost if the process is killed.
#![allow(unsafe_code, reason = "a shared mapping is raw memory")]

use std::{
    fs::File,
    io::{self, Write as _},
    os::{fd::AsRawFd as _, unix::fs::OpenOptionsExt as _},
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::directory::{check_file_size, move_above_streams};
use memmap2::{MmapOptions, MmapRaw};
use nic::trace::{End, FILL, HEADER, MOST_REPEATS, STATE, Sink, Stop, WORD, repeat_record, state};
use rustix::process::{Resource, getrlimit};

/// Bytes of the window; a multiple of the page size.
pub const WINDOW: usize = 64 * 1024;
const WORDS: usize = WINDOW / WORD;

/// A trace file; see the module.
#[derive(Debug)]
pub struct TraceFile {
    file: File,
    /// Header and window.
    map: MmapRaw,
    /// Number of words that records take in the window.
    used: usize,
    /// Repetition count of the last word in the window, if that is an *again* record; otherwise 0.
    again: u32,
    /// Offset at which the next window is appended.
    end: u64,
    /// Number of windows that were appended.
    laps: u64,
    /// Maximum length of the file in bytes.
    max: u64,
}

impl TraceFile {
    /// Creates a file that begins with `header`, of [`HEADER`] bytes. The header must name a window
    /// of [`WINDOW`] bytes. The file never becomes longer than `max` bytes or the limit of files of
    /// this process. Beyond that limit, the kernel ends the process (SIGXFSZ).
    ///
    /// # Errors
    /// The file exists or cannot be made, the disk is full, or files must not be that long.
    pub fn create(path: &Path, header: &[u8], max: u64) -> io::Result<Self> {
        check_file_size(HEADER + WINDOW, "trace")?;
        let max = getrlimit(Resource::Fsize).current.map_or(max, |limit| max.min(limit));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        // An incomplete file must not remain: it would occupy the name of a recording.
        move_above_streams(file)
            .and_then(|file| Self::begin(file, header, max))
            .inspect_err(|_| drop(std::fs::remove_file(path)))
    }

    fn begin(mut file: File, header: &[u8], max: u64) -> io::Result<Self> {
        assert_eq!(header.len(), HEADER);
        file.write_all(header)?;
        file.write_all(&[0; WINDOW])?;
        let map = MmapOptions::new().len(HEADER + WINDOW).populate().map_raw(&file)?;
        Ok(Self { file, map, used: 0, again: 0, end: (HEADER + WINDOW) as u64, laps: 0, max })
    }

    /// Appends the window to the file and begins to fill it anew. If the append fails, ends the
    /// recording, and returns the reason.
    #[cold]
    fn append(&mut self) -> Result<(), Stop> {
        let end = self.end + WINDOW as u64;
        let stop = if end > self.max {
            Some(Stop::Size)
        } else if let Err(error) = self.write_window() {
            tracing::debug!("a trace cannot grow: {error}");
            // A part of the window may have been appended; readers take the rest from the window.
            Some(Stop::Disk)
        } else {
            None
        };
        if let Some(stop) = stop {
            self.write_state(End::Stopped(stop));
            return Err(stop);
        }
        self.word(HEADER / WORD).store(0, Ordering::Relaxed);
        self.laps += 1;
        self.write_state(End::Open);
        self.end = end;
        (self.used, self.again) = (0, 0);
        Ok(())
    }

    fn write_window(&self) -> io::Result<()> {
        let mut done = 0;
        while done < WINDOW {
            // SAFETY: the window is mapped as long as self lives. The kernel reads it, so
            // concurrent writes to the file by others are no data race of this process.
            let written = unsafe {
                let from = self.map.as_ptr().add(HEADER + done).cast();
                let at = (self.end + done as u64) as libc::off_t;
                libc::pwrite(self.file.as_raw_fd(), from, WINDOW - done, at)
            };
            match usize::try_from(written) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(more) => done += more,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Marks the trace as complete.
    pub fn close(self) {
        self.write_state(End::Closed(self.used as u32));
    }

    /// Writes the state at the end of the header: the laps, and whether and why the recording
    /// ended.
    fn write_state(&self, end: End) {
        for (word, at) in state(self.laps, end).into_iter().zip((HEADER - STATE) / WORD..) {
            self.word(at).store(word.to_le(), Ordering::Release);
        }
    }

    /// Fills the rest of the window, appends the window to the file, and writes the record that did
    /// not fit into the rest. Fails as [`Self::append`] does.
    #[cold]
    fn put_next<const N: usize>(&mut self, words: [u32; N]) -> Result<(), Stop> {
        // The words are written backwards. The first of them is zero, and ends the trace for
        // readers until it is overwritten.
        for at in (self.used..WORDS).rev() {
            self.word(HEADER / WORD + at).store(FILL.to_le(), Ordering::Release);
        }
        self.append()?;
        self.put(words)
    }

    /// Writes records of one word each. A process that is killed leaves all of them or none. If the
    /// window is full, returns false and writes nothing. Always inlined, like `try_repeat`, so that
    /// the caller makes no call.
    #[inline(always)]
    pub fn try_put<const N: usize>(&mut self, words: [u32; N]) -> bool {
        let (first, end) = (self.used, self.used + N);
        if end >= WORDS {
            return false;
        }
        self.store(first, words);
        true
    }

    /// Writes words for which the window has room. The first of them is written last, because a
    /// zero in its place ends the trace for readers.
    #[inline(always)]
    fn store<const N: usize>(&mut self, first: usize, words: [u32; N]) {
        let word = |at| self.word(HEADER / WORD + at);
        word(first + N).store(0, Ordering::Release);
        for (further, at) in words[1..].iter().zip(first + 1..) {
            word(at).store(further.to_le(), Ordering::Release);
        }
        word(first).store(words[0].to_le(), Ordering::Release);
        (self.used, self.again) = (first + N, 0);
    }

    /// Records that the last operation was repeated. If the window is full, returns false and
    /// records nothing.
    #[inline(always)]
    pub fn try_repeat(&mut self) -> bool {
        let count = self.again + 1;
        if !(2..=MOST_REPEATS).contains(&count) {
            let begun = self.try_put([repeat_record(1)]);
            self.again = u32::from(begun);
            return begun;
        }
        self.again = count;
        self.word(HEADER / WORD + self.used - 1)
            .store(repeat_record(count).to_le(), Ordering::Release);
        true
    }

    /// Returns a word of the header or window.
    #[inline]
    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at < (HEADER + WINDOW) / WORD);
        // SAFETY: header and window are mapped as long as self lives, and the word lies in them,
        // aligned. Other processes may map the file, so all access is atomic.
        unsafe { &*self.map.as_mut_ptr().cast::<AtomicU32>().add(at) }
    }
}

impl Sink for TraceFile {
    /// The reason is already in the file's header, and nothing more can be written.
    type Error = Stop;

    fn put<const N: usize>(&mut self, words: [u32; N]) -> Result<(), Stop> {
        let (first, end) = (self.used, self.used + N);
        if end >= WORDS {
            return self.put_next(words);
        }
        self.store(first, words);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use nic::trace::{Encoder, Header, Op, Reader};

    use super::*;

    /// Words of a cancel record, which the tests write. They do not fill a window evenly.
    const CANCEL: usize = 3;
    const RECORDS: usize = WORDS / CANCEL;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("tcam-trace-{}-{name}", std::process::id()))
    }

    fn header() -> Vec<u8> {
        Header { window: WINDOW as u32, ..Header::default() }.to_bytes()
    }

    fn ops(bytes: &[u8]) -> Vec<Op> {
        Reader::new(bytes).unwrap().map(|op| op.unwrap().1).collect()
    }

    fn push(trace: &mut TraceFile, number: u64) -> Result<(), Stop> {
        Encoder::default().op(trace, &Op::Cancel(number))
    }

    #[test]
    fn windows_follow_each_other() {
        let path = path("windows");
        let mut trace = TraceFile::create(&path, &header(), u64::MAX).unwrap();
        let mut count = 0;
        for more in [5, RECORDS as u64 - 5, 1, 2 * RECORDS as u64 + 7] {
            (count..count + more).for_each(|number| push(&mut trace, number).unwrap());
            count += more;
            // The file that a killed process would leave.
            let bytes = std::fs::read(&path).unwrap();
            assert!(ops(&bytes).into_iter().eq((0..count).map(Op::Cancel)));
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_process_killed_while_it_appends_loses_nothing() {
        let path = path("killed");
        let mut trace = TraceFile::create(&path, &header(), u64::MAX).unwrap();
        let count = 2 * RECORDS as u64;
        (0..count).for_each(|number| push(&mut trace, number).unwrap());
        let mut before = std::fs::read(&path).unwrap();
        push(&mut trace, count).unwrap();
        let after = std::fs::read(&path).unwrap();
        let whole = |bytes: &[u8]| ops(bytes).into_iter().eq((0..count).map(Op::Cancel));
        assert!(whole(&before));
        // The window is filled up from its end.
        let end = HEADER + WINDOW;
        assert_eq!(after[after.len() - WORD..], FILL.to_le_bytes());
        before[end - WORD..end].copy_from_slice(&FILL.to_le_bytes());
        assert!(whole(&before));
        // Any part of the window may be written.
        for part in [0, 1, WORD, 77 * WORD + 2, after.len() - before.len()] {
            let mut bytes = before.clone();
            bytes.extend_from_slice(&after[before.len()..before.len() + part]);
            assert!(whole(&bytes), "{part} bytes");
        }
        // The whole window is written, and the window begins again.
        let mut bytes = before.clone();
        bytes.extend_from_slice(&after[before.len()..]);
        bytes[HEADER..HEADER + WORD].fill(0);
        assert!(whole(&bytes));
        bytes[HEADER - STATE..HEADER].copy_from_slice(&after[HEADER - STATE..HEADER]);
        assert!(whole(&bytes));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn zeros_in_a_closed_trace_are_no_end() {
        let path = path("zeros");
        let mut trace = TraceFile::create(&path, &header(), u64::MAX).unwrap();
        let count = RECORDS as u64 + 9;
        (0..count).for_each(|number| push(&mut trace, number).unwrap());
        trace.close();
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(ops(&whole).len() as u64, count);
        // In the window, at its first record, and in the windows that were appended.
        for from in [HEADER + 3 * CANCEL * WORD, HEADER, HEADER + WINDOW + 30 * CANCEL * WORD] {
            let mut bytes = whole.clone();
            bytes[from..(from + 12 * CANCEL * WORD).min(whole.len())].fill(0);
            let read: Result<Vec<_>, _> = Reader::new(&bytes[..]).unwrap().collect();
            assert!(matches!(read, Err(nic::trace::TraceError::Cut(_))), "{from}: {read:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn words_after_the_youngest_record_are_not_read() {
        let path = path("youngest");
        let mut trace = TraceFile::create(&path, &header(), u64::MAX).unwrap();
        // Fill the window with ones.
        for _ in 0..=WORDS / 7 {
            trace.put([u32::MAX; 7]).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        let zero = HEADER + 7 * WORD;
        assert_eq!(bytes[zero..zero + 2 * WORD], [0, 0, 0, 0, 255, 255, 255, 255]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn repetitions_take_no_room_and_begin_anew_with_each_window() {
        let path = path("repetitions");
        let mut trace = TraceFile::create(&path, &header(), u64::MAX).unwrap();
        push(&mut trace, 7).unwrap();
        for count in 1..=2 * MOST_REPEATS as usize + 3 {
            assert!(trace.try_repeat());
            // The file that a killed process would leave.
            assert_eq!(ops(&std::fs::read(&path).unwrap()).len(), count + 1);
        }
        assert_eq!(trace.used, CANCEL + 3);
        // Up to the last word of the window, which must hold the zero.
        while trace.try_put([FILL]) {}
        assert!(!trace.try_repeat());
        let before = ops(&std::fs::read(&path).unwrap()).len();
        push(&mut trace, 8).unwrap();
        assert!(trace.try_repeat() && trace.try_repeat());
        let all = ops(&std::fs::read(&path).unwrap());
        assert_eq!(all[before..], [Op::Cancel(8); 3]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_recording_ends_at_the_size_limit_and_records_why() {
        let path = path("size");
        let max = (HEADER + 2 * WINDOW) as u64;
        let mut trace = TraceFile::create(&path, &header(), max).unwrap();
        let written = (0..).take_while(|&number| push(&mut trace, number).is_ok()).count();
        assert_eq!(written, 2 * RECORDS);
        drop(trace);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() as u64 <= max);
        let ops = ops(&bytes);
        assert_eq!((ops.len(), ops.last()), (written + 1, Some(&Op::Stop(Stop::Size))));
        std::fs::remove_file(&path).unwrap();
    }

    /// Environment variable of the process that
    /// [`a_recording_ends_before_the_kernel_ends_the_process`] starts.
    const LIMITED: &str = "TCAM_TEST_LIMITED";

    #[test]
    fn a_recording_ends_before_the_kernel_ends_the_process() {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "trace_file::tests::limited", "--ignored"])
            .env(LIMITED, "")
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    #[test]
    #[ignore = "a_recording_ends_before_the_kernel_ends_the_process runs it"]
    fn limited() {
        if std::env::var_os(LIMITED).is_none() {
            return;
        }
        let path = path("limited");
        let limit = |bytes: usize| {
            let limits = rustix::process::Rlimit {
                current: Some(bytes as u64),
                ..getrlimit(Resource::Fsize)
            };
            rustix::process::setrlimit(Resource::Fsize, limits).unwrap();
        };
        limit(HEADER + 2 * WINDOW + 100);
        let mut trace = TraceFile::create(&path, &header(), u64::MAX).unwrap();
        let stop = (0..).find_map(|number| push(&mut trace, number).err());
        assert_eq!(stop, Some(Stop::Size));
        std::fs::remove_file(&path).unwrap();
        limit(HEADER);
        let error = TraceFile::create(&path, &header(), u64::MAX).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
        assert!(!path.exists());
    }
}
