// SPDX-License-Identifier: BSD-2-Clause
//! Reads and writes the results of a run: reports, their sum, and the sum as text and JSON.

pub(crate) mod columns;
pub(crate) mod counters;
pub(crate) mod json;
pub(crate) mod origin;
pub(crate) mod output_directory;
pub(crate) mod ranks;
pub(crate) mod reports;
pub(crate) mod runs;
pub(crate) mod summary;
pub(crate) mod summary_text;

pub(crate) use self::columns::{Cell, ColumnFile, ColumnType, NamedValues};
pub(crate) use self::json::{Destination, Json, Kind};
pub(crate) use self::origin::ReportHead;
pub(crate) use self::output_directory::{DirectoryLock, EarlierFiles, ListFiles, StagingDirectory};
pub(crate) use self::ranks::{Completeness, Ranks};
pub(crate) use self::reports::Endpoint;
pub(crate) use self::runs::{RecordedPlacement, RunRecord};
pub(crate) use self::summary::{Adding, Peak, ProcessOrigin, Sum, Summary};
