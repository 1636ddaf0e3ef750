//! What the columns of a table hold, found out by looking at every cell once.
//!
//! Parquet says the types of its columns, but for text, which may be anything; in a CSV file all cells are text. A
//! column of text holds numbers, truths or dates if all its cells are such; else categories if it has few values; else
//! it is text that no model here can use, and is left out. The answer depends on the table alone.

use crate::TableError;
use crate::batches::{self, Batches, ColumnFormat};
use crate::columns::shown;
use crate::csv_file;
use crate::files::{TableFile, TableFormat, TableLayout};
use crate::kind::{ColumnKind, ColumnType, LeftOut};
use crate::lines::{LineFormat, Lines};
use crate::parquet_file::{self, FEATURES};
use crate::seen::{ColumnContent, ColumnScan};
use crate::{ColumnNames, Gaps, cells};
use arrow_schema::{DataType, Schema};
use csv::StringRecord;

/// What the columns of a table hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// The columns of the input.
    pub features: Vec<String>,
    /// What each of them holds; nothing if lists are among them, which are numbers all.
    pub kinds: Vec<ColumnKind>,
    /// The columns that are left out.
    pub left_out: Vec<LeftOut>,
}

/// Looks at a table of which `columns` says what is known. Takes about `memory` bytes.
///
/// # Errors
/// When a file cannot be read, its columns are not those of the others, or a column is not what it is said to be.
pub fn look(
    files: &[TableFile],
    format: TableFormat,
    columns: &ColumnNames,
    memory: u64,
) -> Result<Looked, TableError> {
    match format.layout() {
        TableLayout::Lines(lines) => look_lines(files, lines, columns, memory),
        TableLayout::Columns(format) => look_columns(files, format, columns, memory),
    }
}

/// The columns of the first file, which those of all others must be.
struct First {
    file: String,
    features: Vec<String>,
    seen: Vec<ColumnScan>,
    left_out: Vec<LeftOut>,
}

impl First {
    fn new(file: &str, all: &[String], columns: &ColumnNames) -> Result<Self, TableError> {
        if let Some(name) = columns.mentioned().find(|name| !all.contains(name)) {
            let all = all.iter().map(String::as_str);
            return Err(TableError::no_column(file, name, all));
        }
        let (features, left_out) = columns.choose(all);
        let seen = |name| ColumnScan::new(columns.types.get(name).copied(), &columns.form);
        Ok(Self {
            file: file.to_owned(),
            seen: features.iter().map(seen).collect(),
            features,
            left_out,
        })
    }

    /// Refuses a further file that has more columns.
    fn check(&self, file: &str, all: &[String], columns: &ColumnNames) -> Result<(), TableError> {
        let own = columns.choose(all).0;
        match own.iter().find(|name| !self.features.contains(name)) {
            None => Ok(()),
            Some(more) => Err(TableError::one_more(file, more, &self.file)),
        }
    }

    /// What was found. Columns that are named must be of use.
    fn decide(self, columns: &ColumnNames) -> Result<Looked, TableError> {
        let mut looked = Looked {
            left_out: self.left_out,
            ..Looked::default()
        };
        for (name, seen) in self.features.into_iter().zip(self.seen) {
            match seen.decide() {
                ColumnContent::Kind(kind) => {
                    looked.features.push(name);
                    looked.kinds.push(kind);
                }
                ColumnContent::OfNoUse(reason) => looked.left_out.push(LeftOut { name, reason }),
            }
        }
        let named = |left: &&LeftOut| columns.features.contains(&left.name);
        if let Some(left) = looked.left_out.iter().find(named) {
            let (name, reason) = (shown(&left.name), &left.reason);
            let reason = format!("`features` names the column `{name}`, but {reason}");
            return Err(TableError::columns(&self.file, reason));
        }
        if looked.features.is_empty() {
            let of = looked
                .left_out
                .iter()
                .map(|left| format!("; `{}` is left out: {}", shown(&left.name), left.reason));
            let of: String = of.collect();
            let reason = format!("no column is left for the numbers of a sample{of}");
            return Err(TableError::columns(&self.file, reason));
        }
        Ok(looked)
    }
}

fn look_lines(
    files: &[TableFile],
    format: LineFormat,
    columns: &ColumnNames,
    memory: u64,
) -> Result<Looked, TableError> {
    let mut first: Option<First> = None;
    for file in files {
        let name = file.place.to_string();
        let mut lines = Lines::open(file, format, memory)?;
        let header = lines.names();
        let first = match &mut first {
            Some(first) => {
                first.check(&name, &header, columns)?;
                first
            }
            none => none.insert(First::new(&name, &header, columns)?),
        };
        let find = |column: &String| csv_file::find(&name, &lines.header, column);
        let places: Vec<usize> = first.features.iter().map(find).collect::<Result<_, _>>()?;
        let mut record = StringRecord::new();
        while lines.next(&mut record)? {
            for (seen, &at) in first.seen.iter_mut().zip(&places) {
                seen.cell(&record[at]);
            }
        }
        file.check_unchanged()?;
    }
    first.map_or_else(|| Ok(Looked::default()), |first| first.decide(columns))
}

fn look_columns(
    files: &[TableFile],
    format: ColumnFormat,
    columns: &ColumnNames,
    memory: u64,
) -> Result<Looked, TableError> {
    let mut columns = columns.clone();
    let mut first: Option<First> = None;
    let mut has_lists = false;
    for file in files {
        let name = file.place.to_string();
        let schema = batches::schema(file, format, memory)?;
        let all: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        if first.is_none() && columns.features.is_empty() && all.iter().any(|name| name == FEATURES)
        {
            columns.features.push(FEATURES.to_owned());
        }
        let first = match &mut first {
            Some(first) => {
                first.check(&name, &all, &columns)?;
                first
            }
            none => none.insert(First::new(&name, &all, &columns)?),
        };
        let mut scanned = Vec::new();
        for (feature, column) in first.features.iter().enumerate() {
            let root = parquet_file::find(&name, &schema, column, |_| (true, ""))?;
            let data_type = schema.field(root).data_type();
            has_lists |= matches!(data_type, DataType::List(_)) && cells::numeric(data_type);
            let wanted = columns.types.get(column).copied();
            let seen = &mut first.seen[feature];
            match base(data_type, wanted) {
                Base::Known(kind) => seen.of_type(kind),
                Base::Useless => seen.of_no_use(&shown(&data_type.to_string())),
                Base::Cells => scanned.push((feature, root)),
                Base::Text => {}
            }
        }
        if !scanned.is_empty() && !has_lists {
            scan((file, format), &schema, &scanned, &mut first.seen, memory)?;
        }
    }
    let Some(first) = first else {
        return Ok(Looked::default());
    };
    match has_lists {
        true => Ok(Looked {
            features: first.features,
            kinds: Vec::new(),
            left_out: first.left_out,
        }),
        false => first.decide(&columns),
    }
}

/// What the type of a stored column says of it.
enum Base {
    Known(ColumnKind),
    /// The cells must be looked at.
    Cells,
    /// It is said to be text, and left out, whatever it holds.
    Text,
    Useless,
}

fn base(data_type: &DataType, wanted: Option<ColumnType>) -> Base {
    let is_bool = *data_type == DataType::Boolean;
    match (wanted, cells::temporal(data_type)) {
        (Some(ColumnType::Text), _) => Base::Text,
        (Some(ColumnType::Date) | None, Some(form)) => Base::Known(ColumnKind::Date {
            form,
            day_first: false,
        }),
        (_, Some(_)) => Base::Useless,
        (Some(ColumnType::Number), _) if cells::labels(data_type) => {
            Base::Known(ColumnKind::Number)
        }
        (Some(ColumnType::Boolean), _) if cells::labels(data_type) => {
            Base::Known(ColumnKind::Boolean)
        }
        (None, _) if is_bool => Base::Known(ColumnKind::Boolean),
        (None, _) if cells::numeric(data_type) => Base::Known(ColumnKind::Number),
        _ if cells::labels(data_type) => Base::Cells,
        _ => Base::Useless,
    }
}

/// Looks at the cells of some columns of a file that stores columns.
fn scan(
    (file, format): (&TableFile, ColumnFormat),
    schema: &Schema,
    scanned: &[(usize, usize)],
    seen: &mut [ColumnScan],
    memory: u64,
) -> Result<(), TableError> {
    let name = file.place.to_string();
    let roots: Vec<usize> = scanned.iter().map(|&(_, root)| root).collect();
    let mut batches = Batches::open(file, format, roots.len(), memory, |_| Ok(roots))?;
    let mut rows = 0;
    while let Some(batch) = batches.next()? {
        for &(feature, root) in scanned {
            let column = schema.field(root).name();
            let Some(array) = batches::column(&batch, &file.partitions, column) else {
                return Err(TableError::changed(name));
            };
            let texts = cells::texts(&array, Gaps::Keep).map_err(|wrong| {
                TableError::in_row(&name, rows + wrong.row as u64, column, wrong.found)
            })?;
            texts.iter().for_each(|text| seen[feature].cell(text));
        }
        rows += batch.num_rows() as u64;
    }
    file.check_unchanged()
}
