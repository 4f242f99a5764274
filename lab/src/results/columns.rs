// SPDX-License-Identifier: BSD-2-Clause
//! Writes lines of values with named columns for other programs, as JSON, CSV and Parquet.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use rustc_hash::FxBuildHasher;
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::file::NewFile;

/// Number of lines of a Parquet row group. They are kept in memory until the group is written.
const GROUP: usize = 1 << 18;

/// A value of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Cell<'a> {
    Whole(u64),
    Real(f64),
    Bool(bool),
    Text(Cow<'a, str>),
    /// Bits, written in hexadecimal, such as `0x1f`.
    Bits(#[serde(serialize_with = "hexadecimal")] u64),
    /// No value: null in JSON, empty in CSV.
    Missing,
}

fn hexadecimal<S: Serializer>(bits: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{bits:#x}"))
}

macro_rules! cell_from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Cell<'_> {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

cell_from!(u64 => Whole, u32 => Whole, f64 => Real, bool => Bool, String => Text);

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value.into())
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// A line whose values have names. All lines of a file have the same names in the same order.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedValues(Vec<(Cow<'static, str>, Cell<'static>)>);

impl NamedValues {
    /// Adds a value at the end of the line.
    pub(crate) fn put(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        value: impl Into<Cell<'static>>,
    ) {
        self.0.push((name.into(), value.into()));
    }

    /// Replaces a value. Does nothing if the line has no value of this name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Cell<'static>>) {
        if let Some((_, old)) = self.0.iter_mut().find(|(of, _)| of == name) {
            *old = value.into();
        }
    }
}

impl Serialize for NamedValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Returns lines as CSV. If `named` is true, a line with the names comes first.
pub(crate) fn csv<'a>(lines: impl IntoIterator<Item = &'a NamedValues>, named: bool) -> Vec<u8> {
    let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    for (NamedValues(cells), is_first) in
        lines.into_iter().zip(std::iter::once(named).chain(std::iter::repeat(false)))
    {
        let names =
            is_first.then(|| csv.write_record(cells.iter().map(|(name, _)| name.as_bytes())));
        let cells: Vec<_> = cells.iter().map(|(_, cell)| cell).collect();
        names
            .unwrap_or(Ok(()))
            .and_then(|()| csv.serialize(cells))
            .expect("memory takes all cells");
    }
    csv.into_inner().expect("memory takes all cells")
}

/// Type of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnType {
    physical: Physical,
    optional: bool,
}

pub(crate) const WHOLE: ColumnType = ColumnType { physical: Physical::INT64, optional: false };
pub(crate) const REAL: ColumnType = ColumnType { physical: Physical::DOUBLE, optional: false };
pub(crate) const BOOL: ColumnType = ColumnType { physical: Physical::BOOLEAN, optional: false };
pub(crate) const TEXT: ColumnType = ColumnType { physical: Physical::BYTE_ARRAY, optional: false };

impl ColumnType {
    /// Returns this type for a column in which values may be missing.
    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

/// A file of lines, as CSV or Parquet.
pub(crate) struct ColumnFile {
    path: PathBuf,
    to: To,
}

enum To {
    Csv(csv::Writer<NewFile>),
    Parquet(Group),
}

impl ColumnFile {
    /// Begins the file `name.csv` or `name.parquet` with these columns. The file has this name only
    /// after [`Self::end`].
    pub(crate) fn new(
        out: &Path,
        name: &str,
        parquet: bool,
        columns: impl IntoIterator<Item = (impl Into<String>, ColumnType)>,
    ) -> Result<Self, Error> {
        let path = out.join(name).with_extension(if parquet { "parquet" } else { "csv" });
        let file = NewFile::create(&path)?;
        let columns: Vec<(String, _)> =
            columns.into_iter().map(|(name, column)| (name.into(), column)).collect();
        let to = if parquet {
            To::Parquet(Group::new(file, &columns).map_err(failed(&path))?)
        } else {
            let mut csv = csv::Writer::from_writer(file);
            csv.write_record(columns.iter().map(|(name, _)| name)).map_err(failed(&path))?;
            To::Csv(csv)
        };
        Ok(Self { path, to })
    }

    /// Adds a line. `cells` has a cell for each column, of the column's type.
    pub(crate) fn add<'a>(
        &mut self,
        cells: impl IntoIterator<Item = Cell<'a>>,
    ) -> Result<(), Error> {
        match &mut self.to {
            To::Csv(csv) => {
                let cells: Vec<_> = cells.into_iter().collect();
                csv.serialize(cells).map_err(failed(&self.path))
            }
            To::Parquet(group) => group.add(cells).map_err(failed(&self.path)),
        }
    }

    /// Writes the remaining lines, moves the complete file to its name and prints the path.
    pub(crate) fn end(self) -> Result<(), Error> {
        let file = match self.to {
            To::Csv(csv) => {
                csv.into_inner().map_err(|error| Error::io(&self.path)(error.into_error()))?
            }
            To::Parquet(mut group) => {
                group.write().and_then(|()| group.file.into_inner()).map_err(failed(&self.path))?
            }
        };
        file.keep()?;
        println!("{}", self.path.display());
        Ok(())
    }
}

/// Returns a function for `map_err` that makes an error of a file from an error of CSV or Parquet.
pub(crate) fn failed<E: ToString>(path: &Path) -> impl Fn(E) -> Error {
    move |error| Error::file(path, error.to_string())
}

/// Lines that are collected for a row group of a Parquet file.
struct Group {
    file: SerializedFileWriter<NewFile>,
    columns: Vec<Column>,
    lines: usize,
}

/// Values of a column in the row group.
struct Column {
    values: Values,
    /// For an optional column, 1 for each value and 0 for each missing value.
    present: Option<Vec<i16>>,
    /// Texts of this row group, by their hashes.
    met: HashMap<u64, ByteArray, FxBuildHasher>,
}

enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Column {
    fn new(of: ColumnType) -> Self {
        let values = match of.physical {
            Physical::INT64 => Values::Whole(Vec::new()),
            Physical::DOUBLE => Values::Real(Vec::new()),
            Physical::BOOLEAN => Values::Bool(Vec::new()),
            _ => Values::Text(Vec::new()),
        };
        Self { values, present: of.optional.then(Vec::new), met: HashMap::default() }
    }

    fn add(&mut self, cell: &Cell<'_>) {
        if let Some(present) = &mut self.present {
            present.push(i16::from(*cell != Cell::Missing));
        }
        match (&mut self.values, cell) {
            (_, Cell::Missing) => {}
            // Only a number of a forged file exceeds `i64::MAX`.
            (Values::Whole(values), Cell::Whole(value)) => {
                values.push(i64::try_from(*value).unwrap_or(i64::MAX));
            }
            (Values::Real(values), Cell::Real(value)) => values.push(*value),
            (Values::Bool(values), Cell::Bool(value)) => values.push(*value),
            (Values::Text(values), Cell::Text(text)) => {
                values.push(shared(&mut self.met, text.as_bytes()));
            }
            (Values::Text(values), Cell::Bits(bits)) => {
                values.push(shared(&mut self.met, format!("{bits:#x}").as_bytes()));
            }
            (..) => unreachable!("a cell has the type of its column"),
        }
    }
}

/// Returns a copy of a text. If the row group has the same text already, both share memory, because
/// most texts repeat.
fn shared(met: &mut HashMap<u64, ByteArray, FxBuildHasher>, bytes: &[u8]) -> ByteArray {
    let hash = FxBuildHasher.hash_one(bytes);
    let same = met.entry(hash).or_insert_with(|| bytes.to_vec().into());
    if same.data() == bytes { same.clone() } else { bytes.to_vec().into() }
}

/// Writes the values of a column, and removes them.
fn batch<T: DataType>(
    to: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    to.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}

impl Group {
    fn new(file: NewFile, columns: &[(String, ColumnType)]) -> Result<Self, ParquetError> {
        let field = |(name, column): &(String, ColumnType)| {
            let (repetition, converted) = (
                if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED },
                match column.physical {
                    Physical::BYTE_ARRAY => ConvertedType::UTF8,
                    _ => ConvertedType::NONE,
                },
            );
            Type::primitive_type_builder(name, column.physical)
                .with_repetition(repetition)
                .with_converted_type(converted)
                .build()
                .map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("tcam").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let columns = columns.iter().map(|(_, column)| Column::new(*column)).collect();
        Ok(Self { file, columns, lines: 0 })
    }

    fn add<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) -> Result<(), ParquetError> {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.add(&cell));
        self.lines += 1;
        if self.lines == GROUP { self.write() } else { Ok(()) }
    }

    /// Writes the collected lines as a row group.
    fn write(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for Column { values, present, met } in &mut self.columns {
            let Some(mut to) = group.next_column()? else { break };
            let levels = present.as_deref().filter(|levels| !levels.is_empty());
            match values {
                Values::Whole(values) => batch::<Int64Type>(&mut to, values, levels)?,
                Values::Real(values) => batch::<DoubleType>(&mut to, values, levels)?,
                Values::Bool(values) => batch::<BoolType>(&mut to, values, levels)?,
                Values::Text(values) => batch::<ByteArrayType>(&mut to, values, levels)?,
            }
            present.iter_mut().for_each(Vec::clear);
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

    const COLUMNS: [(&str, ColumnType); 5] = [
        ("number", WHOLE),
        ("real", REAL),
        ("name", TEXT),
        ("bits", TEXT.optional()),
        ("found", BOOL.optional()),
    ];

    #[test]
    fn both_formats_have_the_same_lines() {
        let directory = tempfile::tempdir().unwrap();
        let lines = GROUP as u64 + 3;
        for parquet in [false, true] {
            let mut file = ColumnFile::new(directory.path(), "sample", parquet, COLUMNS).unwrap();
            for number in 0..lines {
                let odd = number % 2 == 1;
                file.add([
                    number.into(),
                    (number as f64 / 2.0).into(),
                    if odd { "odd" } else { "even" }.into(),
                    odd.then_some(Cell::Bits(number << 40 | number)).into(),
                    (number % 3 == 0).then_some(odd).into(),
                ])
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
    fn a_file_without_lines_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        ColumnFile::new(directory.path(), "empty", true, COLUMNS).unwrap().end().unwrap();
        let file = File::open(directory.path().join("empty.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.get_row_iter(None).unwrap().count(), 0);
        ColumnFile::new(directory.path(), "empty", false, COLUMNS).unwrap().end().unwrap();
        let text = std::fs::read_to_string(directory.path().join("empty.csv")).unwrap();
        assert_eq!(text, "number,real,name,bits,found\n");
    }

    #[test]
    fn records_have_the_same_names_and_values_in_csv_and_json() {
        let mut record = NamedValues::default();
        record.put("what", "a,b".to_owned());
        record.put("ns", None::<f64>);
        record.put("share", 50.0);
        record.set("ns", 2_u32);
        let csv = String::from_utf8(csv([&record, &record], true)).unwrap();
        assert_eq!(csv, "what,ns,share\n\"a,b\",2,50.0\n\"a,b\",2,50.0\n");
        let json = serde_json::to_string(&record).unwrap();
        assert_eq!(json, r#"{"what":"a,b","ns":2,"share":50.0}"#);
    }
}
