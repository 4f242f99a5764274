// SPDX-License-Identifier: BSD-2-Clause
//! The words of a file, read in parts of 256 KiB: first the appended windows, and then the window
//! at the start of the file.

use std::io::{self, Read};

use super::code::WordSource;

/// Bytes of a word.
pub const WORD: usize = 4;
/// Bytes that are read at a time.
const PART: usize = 1 << 18;

/// The words of a file, read in parts.
#[derive(Debug)]
pub(super) struct Input<R> {
    from: R,
    /// Bytes of appended windows still to be read. The window is returned after them. If there is
    /// no window, all records are read as appended. `u64::MAX` if their number is unknown.
    appended: u64,
    /// The window at the start of the file, which is returned last. Empty if the file has no window
    /// or after the window was returned.
    window: Vec<u8>,
    /// The bytes read last, preceded by those that had not been returned before.
    part: Vec<u8>,
    /// Bytes of `part` that were returned.
    at: usize,
    /// True if no more input follows `part`.
    is_last: bool,
    /// Bytes returned in all.
    pub(super) bytes_read: u64,
}

/// Why no words could be read.
#[derive(Debug)]
pub(super) enum NoWords {
    Cut,
    Io(io::Error),
}

impl From<io::Error> for NoWords {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> Input<R> {
    pub(super) fn new(from: R, laps: u64, window: Vec<u8>) -> Self {
        let appended = match (window.len(), laps) {
            (0, 0) => u64::MAX,
            (0, words) => words.saturating_mul(WORD as u64),
            (len, laps) => laps.saturating_mul(len as u64),
        };
        Self { from, appended, window, part: Vec::new(), at: 0, is_last: false, bytes_read: 0 }
    }

    /// Reads the next part, called if fewer than `len` bytes are left. Returns true if `len` bytes
    /// are available then, and false at the end of the records.
    #[cold]
    fn read_on(&mut self, len: usize) -> Result<bool, NoWords> {
        if self.is_last {
            return Ok(false);
        }
        self.part.drain(..self.at);
        self.at = 0;
        let held = self.part.len();
        // Records do not cross from one window into the next.
        if self.appended.saturating_add(held as u64) >= len as u64 {
            let most = self.appended.min(PART as u64) as usize;
            self.part.resize(held + most, 0);
            let read = fill(&mut self.from, &mut self.part[held..])?;
            self.part.truncate(held + read);
            if self.appended != u64::MAX {
                self.appended -= read as u64;
            }
            return match &self.part {
                part if part.len() >= len => Ok(true),
                part if self.window.is_empty() && part.iter().all(|&byte| byte == 0) => Ok(false),
                _ => Err(NoWords::Cut),
            };
        }
        // If the process was killed while it appended the window, a copy of the window, or a part
        // of it, is left in the input. The window has the words that this copy lacks. The copy has
        // the first word of the window, which may already be cleared.
        fill(&mut self.from, &mut self.window)?;
        self.part = std::mem::take(&mut self.window);
        self.is_last = true;
        Ok(self.part.len() >= len)
    }
}

impl<R: Read> Input<R> {
    /// Returns true if the zero word that was just returned can be the end of a complete recording.
    /// An appended window has no such word, because it is full of records. In the last window, the
    /// zero must follow `words` words, unless `words` is 0 (unknown). A file may end at any zero if
    /// the number of its records is unknown.
    pub(super) fn ends_at(&self, words: u32) -> bool {
        self.appended == u64::MAX
            || self.is_last && (words == 0 || self.at == (words as usize + 1) * WORD)
    }
}

impl<R: Read> WordSource for Input<R> {
    type Error = NoWords;

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<Option<[u32; N]>, NoWords> {
        if self.part.len() - self.at < N * WORD && !self.read_on(N * WORD)? {
            return Ok(None);
        }
        let mut words = [0; N];
        let bytes = self.part[self.at..][..N * WORD].as_chunks::<WORD>().0;
        for (word, bytes) in words.iter_mut().zip(bytes) {
            *word = u32::from_le_bytes(*bytes);
        }
        self.at += N * WORD;
        self.bytes_read += (N * WORD) as u64;
        Ok(Some(words))
    }
}

/// Reads until the buffer is full or the input ends. Returns the number of bytes read.
pub(super) fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match from.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a few bytes at a time. Every other read is interrupted.
    struct Slow<'b> {
        bytes: &'b [u8],
        reads: usize,
        fails_at: usize,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.reads += 1;
            if self.reads == self.fails_at {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if self.reads % 2 == 1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let most = buffer.len().min(self.reads);
            self.bytes.read(&mut buffer[..most])
        }
    }

    #[test]
    fn a_buffer_is_filled_by_short_and_interrupted_reads() {
        let bytes: Vec<u8> = (0..100).collect();
        for len in [0, 1, 99, 100, 120] {
            let mut buffer = vec![255; len];
            let mut from = Slow { bytes: &bytes, reads: 0, fails_at: usize::MAX };
            let read = fill(&mut from, &mut buffer).unwrap();
            assert_eq!(read, len.min(100));
            assert_eq!(buffer[..read], bytes[..read]);
            assert!(buffer[read..].iter().all(|&byte| byte == 255));
        }
        let mut from = Slow { bytes: &bytes, reads: 0, fails_at: 5 };
        let error = fill(&mut from, &mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    fn words(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
        numbers.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// Takes all words, one or two at a time.
    fn take_all(input: &mut Input<&[u8]>) -> Result<Vec<u32>, NoWords> {
        let mut all = Vec::new();
        loop {
            let taken = all.len();
            if all.len().is_multiple_of(3) {
                all.extend(input.take::<1>()?.into_iter().flatten());
            } else {
                all.extend(input.take::<2>()?.into_iter().flatten());
            }
            if all.len() == taken {
                assert_eq!(input.bytes_read, (taken * WORD) as u64);
                return Ok(all);
            }
        }
    }

    #[test]
    fn words_come_from_the_appended_windows_and_then_from_the_window() {
        const LEN: u32 = 6;
        for laps in 0..3 {
            let appended = words(100..100 + laps * LEN);
            // The window lacks its last three words, which a copy of it, appended in part, may have.
            let window = words(1..=LEN);
            let mut input = Input::new(&appended[..], laps.into(), window);
            let expected: Vec<_> = (100..100 + laps * LEN).chain(1..=LEN).collect();
            assert_eq!(take_all(&mut input).unwrap(), expected);
            assert!(input.ends_at(0) && !input.ends_at(LEN) && input.ends_at(LEN - 1));
        }
    }

    #[test]
    fn a_copy_of_the_window_replaces_its_words() {
        let from = words([7, 8]);
        let mut input = Input::new(&from[..], 0, words([0, 0, 3]));
        assert_eq!(take_all(&mut input).unwrap(), [7, 8, 3]);
    }

    #[test]
    fn records_without_a_window_are_read_to_their_number_or_to_the_end() {
        // More than a part.
        let count = (2 * PART / WORD) as u32 / 3 * 3 + 3;
        let all = words(1..=count);
        for laps in [0, u64::from(count)] {
            let mut input = Input::new(&all[..], laps, Vec::new());
            assert_eq!(take_all(&mut input).unwrap(), (1..=count).collect::<Vec<_>>());
            assert_eq!(input.ends_at(5), laps == 0);
        }
        // Fewer words than the file should have, and a part of a word.
        for (len, laps) in [(all.len() - 2, u64::from(count)), (all.len() - 2, 0)] {
            let mut input = Input::new(&all[..len], laps, Vec::new());
            assert!(matches!(take_all(&mut input), Err(NoWords::Cut)));
        }
        // Zeros at the end, less than the words that are taken, are no cut.
        let mut input = Input::new(&[1, 0, 0, 0, 0, 0][..], 0, Vec::new());
        assert_eq!(input.take::<1>().unwrap(), Some([1]));
        assert_eq!(input.take::<1>().unwrap(), None);
    }
}
