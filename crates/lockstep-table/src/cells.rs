//! The cells of a Parquet file's columns as what a sample is made of: numbers and text.
//!
//! Whatever type numbers are stored in, they are `f32` here, and finite. Lists are checked to have one
//! length. An error says what is wrong with which row; the caller knows the file and the column.

use crate::Gaps;
use crate::columns::shown;
use crate::kind::ColumnKind;
use crate::time::{Moment, TimeForm};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, DecimalType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowNativeTypeOp};
use arrow_schema::{DataType, TimeUnit};
use lockstep_base::calendar::DAY;

/// What is wrong with a row, counted from the batch's first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) row: usize,
    pub(crate) found: String,
}

/// Whether a column of this type can be numbers of a sample, as lists or one by one.
pub(crate) fn numeric(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(element) => single(element.data_type()),
        data_type => single(data_type),
    }
}

/// Whether a column of this type can be numbers one by one.
pub(crate) fn single(data_type: &DataType) -> bool {
    use DataType::{
        Boolean, Decimal128, Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16,
        UInt32, UInt64,
    };
    matches!(
        data_type,
        Boolean
            | Decimal128(..)
            | Float16
            | Float32
            | Float64
            | Int8
            | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
    )
}

/// Whether a column of this type can be text: strings, and what old writers did not mark as such.
pub(crate) fn textual(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Binary)
}

/// Whether a column of this type can be labels.
pub(crate) fn labels(data_type: &DataType) -> bool {
    single(data_type) || textual(data_type)
}

/// What a column of this type says of days and times, if it holds these.
pub(crate) fn temporal(data_type: &DataType) -> Option<TimeForm> {
    match data_type {
        DataType::Date32 => Some(TimeForm::Day),
        DataType::Timestamp(..) => Some(TimeForm::Both),
        DataType::Time32(_) | DataType::Time64(_) => Some(TimeForm::Clock),
        _ => None,
    }
}

/// Whether a column of this type can be read as this kind, and what would be right.
pub(crate) fn readable(data_type: &DataType, kind: &ColumnKind) -> (bool, &'static str) {
    let fits = match kind {
        ColumnKind::Date { form, .. } => textual(data_type) || temporal(data_type) == Some(*form),
        _ => labels(data_type),
    };
    let right = match kind {
        ColumnKind::Number => "it must hold numbers",
        ColumnKind::Boolean => "it must hold what is true or false",
        ColumnKind::Category { .. } => "categories must be text, numbers or booleans",
        ColumnKind::Date { .. } => "it must hold dates or times",
    };
    (fits, right)
}

/// How many numbers the first row of a column has.
pub(crate) fn width(column: &dyn Array) -> usize {
    match column.data_type() {
        DataType::List(_) if !column.is_empty() => column.as_list::<i32>().value_length(0) as usize,
        _ => 1,
    }
}

/// Writes the numbers of `column`, `width` a row, to the rows of `out`, which are `stride` numbers apart,
/// from `at` on in each.
pub(crate) fn numbers(
    column: &dyn Array,
    (at, width, stride): (usize, usize, usize),
    gaps: Gaps,
    out: &mut [f32],
) -> Result<(), Wrong> {
    let is_list = matches!(column.data_type(), DataType::List(_));
    // A list that is not there does not even say how long it is.
    if let Some(row) = first_null(column).filter(|_| is_list || gaps == Gaps::Refuse) {
        let found = "is null; every sample needs its numbers".to_owned();
        return Err(Wrong { row, found });
    }
    if !is_list {
        return spread(column, 0, 1, gaps, out, (at, stride));
    }
    let lists = column.as_list::<i32>();
    for row in 0..lists.len() {
        let length = lists.value_length(row) as usize;
        if length != width {
            let found =
                format!("has a list of {length} numbers, where the rows before it have {width}");
            return Err(Wrong { row, found });
        }
    }
    let first = lists.value_offsets()[0] as usize;
    spread(lists.values(), first, width, gaps, out, (at, stride))
}

/// Copies `width` numbers of `values` for each row of `out`, beginning with number `first`.
fn spread(
    values: &dyn Array,
    first: usize,
    width: usize,
    gaps: Gaps,
    out: &mut [f32],
    to: (usize, usize),
) -> Result<(), Wrong> {
    if width == 0 || out.is_empty() {
        return Ok(());
    }
    let used = values.slice(first, out.len() / to.1 * width);
    if let Some(at) = first_null(&used).filter(|_| gaps == Gaps::Refuse) {
        let found = format!("holds a null as number {} of its list", at % width);
        return Err(Wrong {
            row: at / width,
            found,
        });
    }
    match values.data_type() {
        DataType::Boolean => {
            let bits = used.as_boolean().values().iter();
            let numbers = bits.map(|bit| f64::from(u8::from(bit)));
            copy(numbers, &used, width, gaps, out, to)
        }
        DataType::Float16 => primitive::<Float16Type>(&used, width, gaps, out, to, |x| x.to_f64()),
        DataType::Float32 => primitive::<Float32Type>(&used, width, gaps, out, to, f64::from),
        DataType::Float64 => primitive::<Float64Type>(&used, width, gaps, out, to, |x| x),
        DataType::Int8 => primitive::<Int8Type>(&used, width, gaps, out, to, f64::from),
        DataType::Int16 => primitive::<Int16Type>(&used, width, gaps, out, to, f64::from),
        DataType::Int32 => primitive::<Int32Type>(&used, width, gaps, out, to, f64::from),
        DataType::Int64 => primitive::<Int64Type>(&used, width, gaps, out, to, |x| x as f64),
        DataType::UInt8 => primitive::<UInt8Type>(&used, width, gaps, out, to, f64::from),
        DataType::UInt16 => primitive::<UInt16Type>(&used, width, gaps, out, to, f64::from),
        DataType::UInt32 => primitive::<UInt32Type>(&used, width, gaps, out, to, f64::from),
        DataType::UInt64 => primitive::<UInt64Type>(&used, width, gaps, out, to, |x| x as f64),
        DataType::Decimal128(_, scale) => {
            let unit = 10_f64.powi(i32::from(*scale));
            primitive::<Decimal128Type>(&used, width, gaps, out, to, |x| x as f64 / unit)
        }
        other => unreachable!("{other} was refused when the file was opened"),
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: &dyn Array,
    width: usize,
    gaps: Gaps,
    out: &mut [f32],
    to: (usize, usize),
    number: impl Fn(T::Native) -> f64,
) -> Result<(), Wrong>
where
    T::Native: ArrowNativeTypeOp,
{
    let numbers = values.as_primitive::<T>().values().iter();
    let numbers = numbers.map(|&value| number(value));
    copy(numbers, values, width, gaps, out, to)
}

/// A number as it is used: `None` if it is not finite then.
pub(crate) fn used(number: f64) -> Option<f32> {
    Some(number as f32).filter(|number| number.is_finite())
}

/// What is said of a weight that is none, if it is not.
pub(crate) fn no_weight(number: f32) -> Option<String> {
    (number < 0.0).then(|| format!("holds {number}; a weight must be 0 or more"))
}

/// What is said of a number that is not [`used`].
pub(crate) fn refused(number: f64) -> String {
    match number.is_finite() {
        true => format!("holds {number:e}, which is too large for single precision"),
        false => format!("holds {number}; every value must be a finite number"),
    }
}

fn copy(
    values: impl Iterator<Item = f64>,
    array: &dyn Array,
    width: usize,
    gaps: Gaps,
    out: &mut [f32],
    (at, stride): (usize, usize),
) -> Result<(), Wrong> {
    let mut values = values.enumerate();
    for (row, out) in out.chunks_exact_mut(stride).enumerate() {
        for (number, (place, value)) in out[at..at + width].iter_mut().zip(&mut values) {
            let is_null = array.is_null(place);
            if gaps == Gaps::Keep && (is_null || value.is_nan()) {
                *number = f32::NAN;
                continue;
            }
            let Some(value) = used(value) else {
                return Err(Wrong {
                    row,
                    found: refused(value),
                });
            };
            *number = value;
        }
    }
    Ok(())
}

/// Writes the parts of the days and times of `column` to the rows of `out`, which are `stride` numbers apart, from `at`
/// on in each; NaN where there is none.
pub(crate) fn dates(
    column: &dyn Array,
    (at, form, stride): (usize, TimeForm, usize),
    out: &mut [f32],
) {
    let width = form.parts().len();
    for (row, out) in out.chunks_exact_mut(stride).enumerate() {
        let out = &mut out[at..at + width];
        match moment(column, row).filter(|_| !column.is_null(row)) {
            Some(moment) => form.write(moment, out),
            None => out.fill(f32::NAN),
        }
    }
}

/// The day and time of a row.
fn moment(column: &dyn Array, row: usize) -> Option<Moment> {
    fn of<T: ArrowPrimitiveType<Native: Into<i64>>>(
        column: &dyn Array,
        row: usize,
        unit: i64,
    ) -> i64 {
        let value: i64 = column.as_primitive::<T>().value(row).into();
        value.div_euclid(unit)
    }
    use DataType::{Date32, Time32, Time64, Timestamp};
    Some(match column.data_type() {
        Date32 => Moment::at(of::<Date32Type>(column, row, 1) * DAY),
        Timestamp(TimeUnit::Second, _) => Moment::at(of::<TimestampSecondType>(column, row, 1)),
        Timestamp(TimeUnit::Millisecond, _) => {
            Moment::at(of::<TimestampMillisecondType>(column, row, 1000))
        }
        Timestamp(TimeUnit::Microsecond, _) => {
            Moment::at(of::<TimestampMicrosecondType>(column, row, 1_000_000))
        }
        Timestamp(TimeUnit::Nanosecond, _) => {
            Moment::at(of::<TimestampNanosecondType>(column, row, 1_000_000_000))
        }
        Time32(TimeUnit::Second) => Moment::of_day(of::<Time32SecondType>(column, row, 1)),
        Time32(_) => Moment::of_day(of::<Time32MillisecondType>(column, row, 1000)),
        Time64(TimeUnit::Microsecond) => {
            Moment::of_day(of::<Time64MicrosecondType>(column, row, 1_000_000))
        }
        Time64(_) => Moment::of_day(of::<Time64NanosecondType>(column, row, 1_000_000_000)),
        _ => return None,
    })
}

/// The cells of a column as text: strings as they are, whole numbers in decimal, floats with a
/// decimal point or an exponent, `false` and `true`. Where gaps are kept, they are empty texts.
pub(crate) fn texts(column: &dyn Array, gaps: Gaps) -> Result<Vec<String>, Wrong> {
    let mut texts = all_texts(column, gaps)?;
    if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
        for (row, text) in texts.iter_mut().enumerate() {
            if nulls.is_null(row) {
                text.clear();
            }
        }
    }
    Ok(texts)
}

fn all_texts(column: &dyn Array, gaps: Gaps) -> Result<Vec<String>, Wrong> {
    if let Some(row) = first_null(column).filter(|_| gaps == Gaps::Refuse) {
        let found = "is null; every sample needs one".to_owned();
        return Err(Wrong { row, found });
    }
    fn whole<T: ArrowPrimitiveType>(column: &dyn Array) -> Vec<String>
    where
        T::Native: ToString,
    {
        let values = column.as_primitive::<T>().values();
        values.iter().map(|value| value.to_string()).collect()
    }
    fn decimal<T: ArrowPrimitiveType>(
        column: &dyn Array,
        gaps: Gaps,
        number: impl Fn(T::Native) -> f64,
    ) -> Result<Vec<String>, Wrong>
    where
        T::Native: std::fmt::Debug,
    {
        let values = column.as_primitive::<T>().values().iter().enumerate();
        let text = |(row, &value): (usize, &T::Native)| match used(number(value)) {
            // Whole ones too have a decimal point then.
            Some(_) => Ok(format!("{value:?}")),
            None if gaps == Gaps::Keep && number(value).is_nan() => Ok(String::new()),
            None => Err(Wrong {
                row,
                found: refused(number(value)),
            }),
        };
        values.map(text).collect()
    }
    Ok(match column.data_type() {
        DataType::Utf8 => {
            let strings = column.as_string::<i32>();
            (0..strings.len())
                .map(|row| strings.value(row).to_owned())
                .collect()
        }
        DataType::Binary => {
            let bytes = column.as_binary::<i32>();
            let text = |row| match std::str::from_utf8(bytes.value(row)) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => {
                    let found = shown(&String::from_utf8_lossy(bytes.value(row)));
                    Err(Wrong {
                        row,
                        found: format!("holds `{found}`, which is not UTF-8 text"),
                    })
                }
            };
            (0..bytes.len()).map(text).collect::<Result<_, _>>()?
        }
        DataType::Boolean => {
            let bits = column.as_boolean().values().iter();
            bits.map(|bit| bit.to_string()).collect()
        }
        DataType::Int8 => whole::<Int8Type>(column),
        DataType::Int16 => whole::<Int16Type>(column),
        DataType::Int32 => whole::<Int32Type>(column),
        DataType::Int64 => whole::<Int64Type>(column),
        DataType::UInt8 => whole::<UInt8Type>(column),
        DataType::UInt16 => whole::<UInt16Type>(column),
        DataType::UInt32 => whole::<UInt32Type>(column),
        DataType::UInt64 => whole::<UInt64Type>(column),
        DataType::Float16 => decimal::<Float16Type>(column, gaps, |x| x.to_f64())?,
        DataType::Float32 => decimal::<Float32Type>(column, gaps, f64::from)?,
        DataType::Float64 => decimal::<Float64Type>(column, gaps, |x| x)?,
        DataType::Decimal128(precision, scale) => {
            let values = column.as_primitive::<Decimal128Type>().values().iter();
            let text = |&value| Decimal128Type::format_decimal(value, *precision, *scale);
            values.map(text).collect()
        }
        other => unreachable!("{other} was refused when the file was opened"),
    })
}

fn first_null(column: &dyn Array) -> Option<usize> {
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0)?;
    (0..column.len()).find(|&row| nulls.is_null(row))
}
