// SPDX-License-Identifier: BSD-2-Clause
//! The words of a file, a quarter of a megabyte at a time: what left the window first, and then the
//! window, with which the file begins.

use std::io::{self, Read};

use super::code::Words;

/// Bytes of a word.
pub const WORD: usize = 4;
/// Bytes of a file that are read at a time.
const PART: usize = 1 << 18;

/// The words of a file, read a part at a time.
#[derive(Debug)]
pub(super) struct Input<R> {
    from: R,
    /// Bytes of the file still to be read before the window is: those that left it.
    appended: u64,
    /// What the file begins with and is told last; empty if there is none, or once it is told.
    window: Vec<u8>,
    /// Bytes read.
    part: Vec<u8>,
    /// How many of them were taken.
    at: usize,
    /// Nothing comes behind `part`.
    is_last: bool,
    /// Bytes taken in all.
    pub(super) taken: u64,
}

/// Why there are no words.
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
        let appended = match window.len() {
            0 => u64::MAX,
            len => laps.saturating_mul(len as u64),
        };
        Self { from, appended, window, part: Vec::new(), at: 0, is_last: false, taken: 0 }
    }

    /// Reads on, where fewer than `len` bytes are left; whether there are as many.
    #[cold]
    fn read_on(&mut self, len: usize) -> Result<bool, NoWords> {
        if self.is_last {
            return Ok(false);
        }
        self.part.drain(..self.at);
        self.at = 0;
        let held = self.part.len();
        // Records do not reach from one window into the next.
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
        // Killed while it appended the window, a process leaves a part there; the window has the
        // same and the rest.
        fill(&mut self.from, &mut self.window)?;
        self.part = std::mem::take(&mut self.window);
        self.is_last = true;
        Ok(self.part.len() >= len)
    }
}

impl<R: Read> Words for Input<R> {
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
        self.taken += (N * WORD) as u64;
        Ok(Some(words))
    }
}

/// Reads until the buffer is full or the input ends; the bytes read.
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
