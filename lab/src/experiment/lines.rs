// SPDX-License-Identifier: BSD-2-Clause
//! Files of lines with named columns, as CSV or Parquet.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use rustc_hash::FxBuildHasher;
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::file::NewFile;

/// Lines of a Parquet row group, which are kept until they are written.
const GROUP: usize = 1 << 18;

/// A kind of line: a struct whose fields are the columns. [`row!`] makes it.
pub(crate) trait Row: Serialize {
    /// Names and kinds of the columns.
    const COLUMNS: &'static [(&'static str, Kind)];

    /// Appends the values to the columns.
    fn put(&self, columns: &mut [Column]);
}

/// Defines a struct that is a [`Row`].
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident<$life:lifetime> {
        $($(#[$of_field:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Serialize)]
        $vis struct $name<$life> {
            $($(#[$of_field])* $vis $field: $type,)*
        }

        impl<$life> $crate::experiment::lines::Row for $name<$life> {
            const COLUMNS: &'static [(&'static str, $crate::experiment::lines::Kind)] = &[
                $((stringify!($field), <$type as $crate::experiment::lines::Value>::KIND),)*
            ];

            fn put(&self, columns: &mut [$crate::experiment::lines::Column]) {
                let mut columns = columns.iter_mut();
                $(if let Some(column) = columns.next() {
                    $crate::experiment::lines::Value::put(&self.$field, column);
                })*
            }
        }
    };
}
pub(crate) use row;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    physical: Physical,
    optional: bool,
}

const fn kind(physical: Physical) -> Kind {
    Kind { physical, optional: false }
}

/// Values of a column.
#[derive(Debug)]
pub(crate) struct Column {
    values: Values,
    /// 1 for a value and 0 for none. Empty if the column always has a value.
    present: Vec<i16>,
    /// Texts of this row group, by hash.
    met: HashMap<u64, ByteArray, FxBuildHasher>,
}

#[derive(Debug)]
enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

/// Bits, written as 0x1f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hex(pub(crate) u64);

impl Hex {
    /// Length of the longest text.
    const MOST: usize = 18;

    /// Writes the bits as text into `to`.
    fn text(self, to: &mut [u8; Self::MOST]) -> &str {
        let mut at = to.len();
        let mut rest = self.0;
        loop {
            at -= 1;
            to[at] = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
            if rest == 0 {
                break;
            }
        }
        at -= 2;
        to[at..at + 2].copy_from_slice(b"0x");
        std::str::from_utf8(&to[at..]).expect("digits are text")
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.text(&mut [0; Self::MOST]))
    }
}

/// A value of a column.
pub(crate) trait Value {
    const KIND: Kind;

    fn put(&self, column: &mut Column);
}

impl Value for u64 {
    const KIND: Kind = kind(Physical::INT64);

    fn put(&self, column: &mut Column) {
        if let Values::Whole(values) = &mut column.values {
            // No count exceeds this.
            values.push(i64::try_from(*self).unwrap_or(i64::MAX));
        }
    }
}

impl Value for u32 {
    const KIND: Kind = u64::KIND;

    fn put(&self, column: &mut Column) {
        u64::from(*self).put(column);
    }
}

impl Value for f64 {
    const KIND: Kind = kind(Physical::DOUBLE);

    fn put(&self, column: &mut Column) {
        if let Values::Real(values) = &mut column.values {
            values.push(*self);
        }
    }
}

impl Value for bool {
    const KIND: Kind = kind(Physical::BOOLEAN);

    fn put(&self, column: &mut Column) {
        if let Values::Bool(values) = &mut column.values {
            values.push(*self);
        }
    }
}

impl Value for &str {
    const KIND: Kind = kind(Physical::BYTE_ARRAY);

    fn put(&self, column: &mut Column) {
        if let Values::Text(values) = &mut column.values {
            let bytes = self.as_bytes();
            let same = column.met.entry(hash(bytes)).or_insert_with(|| bytes.to_vec().into());
            // Texts repeat. A text that was met before shares its memory.
            let text = if same.data() == bytes { same.clone() } else { bytes.to_vec().into() };
            values.push(text);
        }
    }
}

impl Value for Hex {
    const KIND: Kind = <&str>::KIND;

    fn put(&self, column: &mut Column) {
        self.text(&mut [0; Self::MOST]).put(column);
    }
}

fn hash(bytes: &[u8]) -> u64 {
    FxBuildHasher.hash_one(bytes)
}

impl Value for String {
    const KIND: Kind = <&str>::KIND;

    fn put(&self, column: &mut Column) {
        self.as_str().put(column);
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = Kind { optional: true, ..T::KIND };

    fn put(&self, column: &mut Column) {
        column.present.push(i16::from(self.is_some()));
        if let Some(value) = self {
            value.put(column);
        }
    }
}

/// An open file.
pub(crate) struct Lines {
    path: PathBuf,
    to: To,
}

enum To {
    Csv(csv::Writer<NewFile>),
    Parquet(Group),
}

/// Lines that are collected for a row group of a Parquet file.
struct Group {
    file: SerializedFileWriter<NewFile>,
    columns: Vec<Column>,
    lines: usize,
}

impl Lines {
    /// Makes `name.csv`, or `name.parquet` with the columns of `R`.
    pub(crate) fn new<R: Row>(out: &Path, name: &str, parquet: bool) -> Result<Self, Error> {
        let path = out.join(name).with_extension(if parquet { "parquet" } else { "csv" });
        let file = NewFile::create(&path)?;
        let to = if parquet {
            To::Parquet(Group::new(file, R::COLUMNS).map_err(|error| failed(&path, error))?)
        } else {
            To::Csv(csv::Writer::from_writer(file))
        };
        Ok(Self { path, to })
    }

    pub(crate) fn add<R: Row>(&mut self, row: &R) -> Result<(), Error> {
        match &mut self.to {
            To::Csv(writer) => {
                writer.serialize(row).map_err(|error| Error::Csv { path: self.path.clone(), error })
            }
            To::Parquet(group) => {
                row.put(&mut group.columns);
                group.lines += 1;
                if group.lines == GROUP {
                    group.write().map_err(|error| failed(&self.path, error))?;
                }
                Ok(())
            }
        }
    }

    /// Writes the remaining lines and prints the path.
    pub(crate) fn end(self) -> Result<(), Error> {
        let file = match self.to {
            To::Csv(writer) => {
                writer.into_inner().map_err(|error| Error::io(&self.path)(error.into_error()))?
            }
            To::Parquet(mut group) => group
                .write()
                .and_then(|()| group.file.into_inner())
                .map_err(|error| failed(&self.path, error))?,
        };
        file.keep()?;
        println!("{}", self.path.display());
        Ok(())
    }
}

fn failed(path: &Path, error: ParquetError) -> Error {
    Error::Parquet { path: path.to_owned(), error }
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind.physical {
            Physical::INT64 => Values::Whole(Vec::new()),
            Physical::DOUBLE => Values::Real(Vec::new()),
            Physical::BOOLEAN => Values::Bool(Vec::new()),
            _ => Values::Text(Vec::new()),
        };
        Self { values, present: Vec::new(), met: HashMap::default() }
    }
}

impl Group {
    fn new(file: NewFile, columns: &[(&str, Kind)]) -> Result<Self, ParquetError> {
        let fields: Result<Vec<_>, _> = columns
            .iter()
            .map(|(name, kind)| {
                let repetition =
                    if kind.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
                let text = kind.physical == Physical::BYTE_ARRAY;
                Type::primitive_type_builder(name, kind.physical)
                    .with_repetition(repetition)
                    .with_converted_type(if text {
                        ConvertedType::UTF8
                    } else {
                        ConvertedType::NONE
                    })
                    .build()
                    .map(Arc::new)
            })
            .collect();
        let schema = Type::group_type_builder("tcam").with_fields(fields?).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let columns = columns.iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(Self { file, columns, lines: 0 })
    }

    /// Writes the collected lines as a row group.
    fn write(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for Column { values, present, met } in &mut self.columns {
            let Some(mut to) = group.next_column()? else { break };
            let levels = (!present.is_empty()).then_some(present.as_slice());
            match values {
                Values::Whole(values) => {
                    to.typed::<Int64Type>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Real(values) => {
                    to.typed::<DoubleType>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Bool(values) => {
                    to.typed::<BoolType>().write_batch(values, levels, None)?;
                    values.clear();
                }
                Values::Text(values) => {
                    to.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                    values.clear();
                }
            }
            present.clear();
            met.clear();
            to.close()?;
        }
        group.close()?;
        self.lines = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    row! {
        /// A line with every kind of value.
        struct Sample<'a> {
            number: u64,
            real: f64,
            name: &'a str,
            hex: Option<Hex>,
            found: Option<bool>,
        }
    }

    #[test]
    fn both_formats_have_the_same_lines() {
        let directory = tempfile::tempdir().unwrap();
        let lines = GROUP as u64 + 3;
        for parquet in [false, true] {
            let mut file = Lines::new::<Sample<'_>>(directory.path(), "sample", parquet).unwrap();
            for number in 0..lines {
                let odd = number % 2 == 1;
                file.add(&Sample {
                    number,
                    real: number as f64 / 2.0,
                    name: if odd { "odd" } else { "even" },
                    hex: odd.then_some(Hex(number << 40 | number)),
                    found: (number % 3 == 0).then_some(odd),
                })
                .unwrap();
            }
            file.end().unwrap();
        }
        let file = File::open(directory.path().join("sample.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let mut csv = csv::Reader::from_path(directory.path().join("sample.csv")).unwrap();
        let names = csv.headers().unwrap().clone();
        let mut count = 0;
        for (row, line) in reader.get_row_iter(None).unwrap().zip(csv.records()) {
            let (row, line) = (row.unwrap(), line.unwrap());
            for (at, (name, field)) in row.get_column_iter().enumerate() {
                assert_eq!(name, &names[at]);
                let text = match field {
                    Field::Null => String::new(),
                    Field::Str(text) => text.clone(),
                    Field::Double(real) => format!("{real:?}"),
                    other => other.to_string(),
                };
                assert_eq!(text, line[at]);
            }
            count += 1;
        }
        assert_eq!(count, lines);
    }

    #[test]
    fn bits_are_written_as_the_standard_library_does() {
        for bits in [0, 1, 15, 16, 0xdead_beef, u64::MAX, 1 << 60] {
            assert_eq!(Hex(bits).text(&mut [0; Hex::MOST]), format!("{bits:#x}"));
        }
    }

    #[test]
    fn a_file_without_lines_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        Lines::new::<Sample<'_>>(directory.path(), "empty", true).unwrap().end().unwrap();
        let file = File::open(directory.path().join("empty.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.get_row_iter(None).unwrap().count(), 0);
    }
}
