// SPDX-License-Identifier: BSD-2-Clause
//! Drafts: files with the report of an endpoint that is open. The draft remains if the process
//! crashes or is killed, or if the disk has no room for the final report.
//!
//! ```text
//! byte 0       HEAD              HEAD + SLOT
//!      | head   | slot 0          | slot 1         |
//! head   "tcam-draft 1\n", zeros
//! slot   turn (8) | length (4) | CRC32C (4) | a report as JSON
//! ```
//!
//! Integers are little-endian. The writer alternates between the slots, so that one of them is
//! complete at any moment. Of the slots whose checksum (over turn and text) is correct, the reader
//! takes the one with the higher turn. A draft is written in full length when it is created, so
//! later updates need no further room on the disk.

use crate::report::{Report, ReportError};

/// First bytes of a draft.
pub const MAGIC: &[u8] = b"tcam-draft 1\n";
/// File name extension of drafts.
pub const EXTENSION: &str = "draft";
/// Bytes of the head.
pub const HEAD: usize = 64;
/// Bytes of a slot: a report with all its lengths over time takes about 110,000 at most.
pub const SLOT: usize = 128 << 10;
/// Bytes of a draft.
pub const LENGTH: usize = HEAD + 2 * SLOT;
/// Bytes of a slot before the text.
const TEXT: usize = 16;

/// Encodes a report into a slot. If the slot becomes longer than [`SLOT`], drops the report's
/// lengths over time and, if this is not enough, its elements by source. If the slot is still too
/// long, it is nevertheless complete: the caller must check its length.
///
/// # Errors
/// Never in practice: every field can be written as JSON.
pub fn put(report: &mut Report, turn: u64, slot: &mut Vec<u8>) -> Result<(), ReportError> {
    write(report, slot)?;
    if slot.len() > SLOT {
        report.tagged.lengths = Default::default();
        report.msg.lengths = Default::default();
        write(report, slot)?;
    }
    if slot.len() > SLOT {
        for counters in [&mut report.tagged, &mut report.msg] {
            counters.prq.added = Default::default();
            counters.umq.added = Default::default();
        }
        write(report, slot)?;
    }
    let length = u32::try_from(slot.len() - TEXT).unwrap_or(u32::MAX);
    slot[..8].copy_from_slice(&turn.to_le_bytes());
    slot[8..12].copy_from_slice(&length.to_le_bytes());
    let sum = checksum(turn, &slot[TEXT..]);
    slot[12..TEXT].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

fn write(report: &Report, slot: &mut Vec<u8>) -> Result<(), ReportError> {
    slot.clear();
    slot.resize(TEXT, 0);
    Ok(serde_json::to_writer(slot, report)?)
}

/// Offset in the file of the slot into which turn number `turn` is written.
#[must_use]
pub fn place(turn: u64) -> usize {
    HEAD + if turn.is_multiple_of(2) { 0 } else { SLOT }
}

fn checksum(turn: u64, text: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&turn.to_le_bytes()), text)
}

/// Returns true if a file is a draft.
#[must_use]
pub fn is_draft(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

/// Returns the latest report in a draft; `None` if the file is no draft or no slot is complete.
///
/// # Errors
/// The text is not a report, or its counts do not add up.
pub fn report(file: &[u8]) -> Option<Result<Report, ReportError>> {
    if !is_draft(file) {
        return None;
    }
    let last = [0, 1].into_iter().filter_map(|at| text(file, at)).max_by_key(|(turn, _)| *turn);
    last.map(|(_, text)| Report::from_json(&String::from_utf8_lossy(text)))
}

/// Returns turn and text of a slot; `None` if the slot is empty or incomplete.
fn text(file: &[u8], slot: usize) -> Option<(u64, &[u8])> {
    let slot = file.get(HEAD + slot * SLOT..)?;
    let turn = u64::from_le_bytes(*slot.first_chunk()?);
    let length = u32::from_le_bytes(*slot.get(8..)?.first_chunk()?) as usize;
    let sum = u32::from_le_bytes(*slot.get(12..)?.first_chunk()?);
    let text = slot.get(TEXT..TEXT.checked_add(length)?.min(SLOT))?;
    (turn > 0 && text.len() == length && checksum(turn, text) == sum).then_some((turn, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{FORMAT, VERSION};

    fn sample(pid: u32) -> Report {
        Report { format: FORMAT.to_owned(), version: VERSION, pid, ..Report::default() }
    }

    fn file(turns: u64) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.resize(LENGTH, 0);
        let mut slot = Vec::new();
        for turn in 1..=turns {
            put(&mut sample(turn as u32), turn, &mut slot).unwrap();
            file[place(turn)..][..slot.len()].copy_from_slice(&slot);
        }
        file
    }

    fn pid(file: &[u8]) -> Option<u32> {
        report(file).map(|report| report.unwrap().pid)
    }

    #[test]
    fn the_last_whole_report_is_read() {
        assert_eq!(pid(&file(0)), None);
        for turns in 1..5 {
            let mut file = file(turns);
            assert_eq!(pid(&file), Some(turns as u32));
            // As if the process was killed while it wrote the next one.
            for (at, byte) in [(0, 9), (9, 1), (12, 7), (40, b'x')] {
                let mut cut = file.clone();
                cut[place(turns + 1) + at] ^= byte;
                assert_eq!(pid(&cut), Some(turns as u32));
            }
            file.truncate(place(turns) + 20);
            let other = if turns.is_multiple_of(2) { None } else { Some(turns as u32 - 1) };
            assert_eq!(pid(&file), other.filter(|turn| *turn > 0), "{turns}");
        }
        assert!(report(b"{}").is_none() && report(b"").is_none());
    }

    #[test]
    fn a_report_that_is_too_long_loses_its_lengths_over_time() {
        let mut long = sample(1);
        long.tagged.lengths.us = vec![u64::MAX; 10_000];
        let mut slot = Vec::new();
        put(&mut long, 1, &mut slot).unwrap();
        assert!(slot.len() < SLOT && long.tagged.lengths.us.is_empty());
    }

    #[test]
    fn a_report_is_cut_only_as_far_as_needed() {
        let mut slot = Vec::new();
        let mut both = sample(1);
        both.tagged.lengths.us = vec![1; 10];
        both.msg.prq.added = vec![Default::default(); SLOT / 4];
        put(&mut both, 1, &mut slot).unwrap();
        assert!(
            slot.len() < SLOT && both.msg.prq.added.is_empty() && both.tagged.lengths.us.is_empty()
        );
        let mut fits = sample(1);
        fits.msg.umq.added = vec![Default::default(); 10];
        put(&mut fits, 1, &mut slot).unwrap();
        // Filled up to the last byte, it is still whole.
        fits.program = "x".repeat(SLOT - slot.len());
        put(&mut fits, 1, &mut slot).unwrap();
        assert_eq!((slot.len(), fits.msg.umq.added.len()), (SLOT, 10));
        fits.tagged.lengths.us = vec![1];
        put(&mut fits, 1, &mut slot).unwrap();
        assert_eq!((slot.len(), fits.msg.umq.added.len()), (SLOT, 10));
    }

    #[test]
    fn a_report_with_all_its_lengths_fits() {
        let mut full = sample(1);
        for lengths in [&mut full.tagged.lengths, &mut full.msg.lengths] {
            for column in [
                &mut lengths.us,
                &mut lengths.prq_table,
                &mut lengths.prq_host,
                &mut lengths.umq_table,
                &mut lengths.umq_host,
            ] {
                *column = vec![9_999_999_999_999_999_999; 512];
            }
        }
        let mut slot = Vec::new();
        put(&mut full, 1, &mut slot).unwrap();
        assert_eq!(full.msg.lengths.us.len(), 512);
    }
}
