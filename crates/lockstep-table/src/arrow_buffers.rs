//! The buffers of a message of Arrow's, checked before they are decoded: that they lie in the message, what they unpack to,
//! and that each holds whole numbers. Arrow's own library ends the program where a buffer has half a number.

use arrow_ipc::RecordBatch;
use arrow_schema::{DataType, Fields};
use std::collections::VecDeque;

/// How many bytes the buffers of a batch of columns of these types unpack to; `None` if they are not all there, or hold
/// something else.
pub(crate) fn unpacked<'a>(
    types: impl IntoIterator<Item = &'a DataType>,
    batch: &RecordBatch<'_>,
    body: &[u8],
) -> Option<u64> {
    let counts = batch.variadicBufferCounts();
    let mut views: VecDeque<i64> = counts.iter().flatten().collect();
    let mut widths = Vec::new();
    for data_type in types {
        add_widths(data_type, &mut views, &mut widths)?;
    }
    let buffers = batch.buffers()?;
    if buffers.len() != widths.len() {
        return None;
    }
    let mut sum = 0_u64;
    for (buffer, width) in buffers.iter().zip(widths) {
        let start = usize::try_from(buffer.offset()).ok()?;
        let length = usize::try_from(buffer.length()).ok()?;
        let bytes = body.get(start..start.checked_add(length)?)?;
        let mut holds = length as u64;
        if batch.compression().is_some() && !bytes.is_empty() {
            let said = i64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
            // What is not packed says -1.
            holds = match said {
                -1 => length as u64 - 8,
                _ => u64::try_from(said).ok()?,
            };
            sum = sum.saturating_add(holds);
        }
        if !holds.is_multiple_of(width) {
            return None;
        }
    }
    Some(sum)
}

/// Adds the bytes of a number in each of the buffers that a column of this type has, in their order; `None` for types that
/// are in no table.
fn add_widths(
    data_type: &DataType,
    views: &mut VecDeque<i64>,
    widths: &mut Vec<u64>,
) -> Option<()> {
    // Which values are there, as bits.
    let there = 1;
    let mut add = |more: &[u64]| widths.extend(more);
    match data_type {
        DataType::Null => {}
        DataType::Boolean => add(&[there, 1]),
        DataType::Utf8 | DataType::Binary => add(&[there, 4, 1]),
        DataType::LargeUtf8 | DataType::LargeBinary => add(&[there, 8, 1]),
        DataType::Utf8View | DataType::BinaryView => {
            add(&[there, 16]);
            let buffers = usize::try_from(views.pop_front()?).ok()?;
            // As many as no message has would take memory for nothing.
            if buffers > 1 << 20 {
                return None;
            }
            widths.extend(std::iter::repeat_n(1, buffers));
        }
        DataType::FixedSizeBinary(width) => {
            add(&[there, u64::try_from(*width).ok()?.max(1)]);
        }
        DataType::List(of) | DataType::Map(of, _) => {
            add(&[there, 4]);
            add_widths(of.data_type(), views, widths)?;
        }
        DataType::LargeList(of) => {
            add(&[there, 8]);
            add_widths(of.data_type(), views, widths)?;
        }
        DataType::FixedSizeList(of, _) => {
            add(&[there]);
            add_widths(of.data_type(), views, widths)?;
        }
        DataType::Struct(fields) => {
            add(&[there]);
            for field in fields {
                add_widths(field.data_type(), views, widths)?;
            }
        }
        DataType::Dictionary(keys, _) => add(&[there, keys.primitive_width()? as u64]),
        other => add(&[there, other.primitive_width()? as u64]),
    }
    Some(())
}

/// The types of the columns of a table.
pub(crate) fn types(fields: &Fields) -> impl Iterator<Item = &DataType> {
    fields.iter().map(|field| field.data_type())
}
