// SPDX-License-Identifier: BSD-2-Clause
//! A file that is written a record at a time through a mapping of its window (see
//! `nic::trace`), so that a killed process leaves what it wrote: no system call but one
//! for each [`WINDOW`].
//!
//! The window is written once before it is mapped, so that a full disk is an error
//! then and not a `SIGBUS` later. Its last record is kept for the reason why nothing
//! follows.
//!
//! Rejected: the whole file mapped, part by part (25 to 35 ns a record against 16: a
//! page fault for each 4 KiB, which file systems make dear), a buffer that is not the
//! file's (a killed process takes it along).
#![allow(unsafe_code, reason = "a shared mapping is raw memory")]

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};
use nic::trace::{HEADER, RECORD, Stop};

/// Bytes of the window; a multiple of the page size.
pub(crate) const WINDOW: usize = 64 * 1024;
const WORDS: usize = RECORD / 8;
/// Records of the window: behind the laps, but for the last.
const RECORDS: usize = WINDOW / RECORD - 2;

/// See the module.
#[derive(Debug)]
pub(crate) struct Tape {
    file: File,
    window: MmapRaw,
    /// What the window holds, once more: it is appended from here, without a look at
    /// memory that others could change.
    records: Box<[[u8; RECORD]]>,
    /// Records in the window.
    used: usize,
    /// Where the next window is appended.
    end: u64,
    laps: u64,
    /// Largest length of the file.
    max: u64,
}

impl Tape {
    /// A new file that begins with `header`, of [`HEADER`] bytes, which says that it
    /// has a window of [`WINDOW`], and grows to `max` bytes at most.
    ///
    /// # Errors
    /// The file exists or cannot be made, or the disk is full.
    pub(crate) fn create(path: &Path, header: &[u8], max: u64) -> io::Result<Self> {
        let mut file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.write_all(header)?;
        file.write_all(&[0; WINDOW])?;
        let window =
            MmapOptions::new().offset(HEADER as u64).len(WINDOW).populate().map_raw(&file)?;
        let end = (HEADER + WINDOW) as u64;
        let records = vec![[0; RECORD]; RECORDS].into();
        Ok(Self { file, window, records, used: 0, end, laps: 0, max })
    }

    /// Writes a record, of which word 0 is not 0.
    ///
    /// # Errors
    /// Why there is no room; that is in the file then, and the tape is done with.
    #[inline]
    pub(crate) fn push(&mut self, words: [u64; WORDS]) -> Result<(), Stop> {
        if self.used == RECORDS {
            self.append()?;
        }
        for (copy, word) in self.records[self.used].chunks_exact_mut(8).zip(words) {
            copy.copy_from_slice(&word.to_le_bytes());
        }
        self.used += 1;
        self.put(self.used, words);
        Ok(())
    }

    /// Appends what the window holds, and clears it.
    #[cold]
    fn append(&mut self) -> Result<(), Stop> {
        let records = self.records.as_flattened();
        let end = self.end + records.len() as u64;
        let stop = if end > self.max {
            Some(Stop::Size)
        } else if let Err(error) = self.file.write_all_at(records, self.end) {
            tracing::debug!("a trace cannot grow: {error}");
            // A part of it may be there; readers take that from the window.
            Some(Stop::Disk)
        } else {
            None
        };
        if let Some(stop) = stop {
            if let [_, Some(words)] = nic::trace::Op::Stop(stop).records() {
                self.put(1 + RECORDS, words);
            }
            return Err(stop);
        }
        for at in 1..=RECORDS {
            self.record(at)[0].store(0, Ordering::Relaxed);
        }
        self.laps += 1;
        self.record(0)[0].store(self.laps.to_le(), Ordering::Release);
        self.end = end;
        self.used = 0;
        Ok(())
    }

    #[inline]
    fn put(&self, at: usize, words: [u64; WORDS]) {
        let record = self.record(at);
        for at in 1..WORDS {
            record[at].store(words[at].to_le(), Ordering::Relaxed);
        }
        // A reader of what a killed process left takes a record that begins with 0 for
        // the end.
        record[0].store(words[0].to_le(), Ordering::Release);
    }

    /// A record of the window.
    #[inline]
    fn record(&self, at: usize) -> &[AtomicU64; WORDS] {
        assert!(at < WINDOW / RECORD);
        // SAFETY: the window is mapped as long as we live, and the record lies in it,
        // aligned to its size. Others may map the file: all access is atomic.
        unsafe { &*self.window.as_mut_ptr().add(at * RECORD).cast::<[AtomicU64; WORDS]>() }
    }
}

#[cfg(test)]
mod tests {
    use nic::trace::{Header, Op, Reader, stamped};

    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("tcam-tape-{}-{name}", std::process::id()))
    }

    fn header() -> Vec<u8> {
        Header { window: WINDOW as u32, ..Header::default() }.to_bytes()
    }

    fn ops(bytes: &[u8]) -> Vec<Op> {
        let reader = Reader::new(bytes).unwrap();
        let records = reader.records(bytes.len() as u64);
        let ops: Vec<Op> = reader.map(|op| op.unwrap().1).collect();
        assert!(records >= ops.len() as u64);
        ops
    }

    fn record(number: u64) -> [u64; WORDS] {
        stamped(Op::Cancel(number).records()[1].unwrap(), number)
    }

    #[test]
    fn windows_follow_each_other() {
        let path = path("windows");
        let mut tape = Tape::create(&path, &header(), u64::MAX).unwrap();
        let mut count = 0;
        for more in [5, RECORDS as u64 - 5, 1, 2 * RECORDS as u64 + 7] {
            (count..count + more).for_each(|number| tape.push(record(number)).unwrap());
            count += more;
            // As a killed process leaves it.
            let bytes = std::fs::read(&path).unwrap();
            assert!(ops(&bytes).into_iter().eq((0..count).map(Op::Cancel)));
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn killed_while_it_appends_a_process_loses_nothing() {
        let path = path("killed");
        let mut tape = Tape::create(&path, &header(), u64::MAX).unwrap();
        let count = 2 * RECORDS as u64;
        (0..count).for_each(|number| tape.push(record(number)).unwrap());
        let before = std::fs::read(&path).unwrap();
        tape.push(record(count)).unwrap();
        let after = std::fs::read(&path).unwrap();
        let whole = |bytes: &[u8]| ops(bytes).into_iter().eq((0..count).map(Op::Cancel));
        // Any part of the window is written.
        for part in [0, 1, RECORD, 7 * RECORD + 5, after.len() - before.len()] {
            let mut bytes = before.clone();
            bytes.extend_from_slice(&after[before.len()..before.len() + part]);
            assert!(whole(&bytes), "{part} bytes");
            // And with all of it, any part of the window is cleared.
            if before.len() + part == after.len() {
                for cleared in [0, 1, 100, RECORDS] {
                    let first = HEADER + RECORD;
                    bytes[first..first + cleared * RECORD].fill(0);
                    assert!(whole(&bytes), "{cleared} records");
                }
            }
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_size_allowed_ends_it_and_says_so() {
        let path = path("size");
        let max = (HEADER + 2 * WINDOW) as u64;
        let mut tape = Tape::create(&path, &header(), max).unwrap();
        let written = (0..).take_while(|&number| tape.push(record(number)).is_ok()).count();
        assert_eq!(written, 2 * RECORDS);
        drop(tape);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() as u64 <= max);
        let ops = ops(&bytes);
        assert_eq!((ops.len(), ops.last()), (written + 1, Some(&Op::Stop(Stop::Size))));
        std::fs::remove_file(&path).unwrap();
    }
}
