//! Safetensors: a header of names, types and places in JSON, then the numbers.

use crate::element::Element;
use crate::error::TensorError;
use crate::file::{TensorLocation, contiguous};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use std::path::Path;

/// The tensors of a file. The crate checks that they lie inside it and fill it.
pub(crate) fn tensors(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<(String, TensorLocation)>, TensorError> {
    let found = SafeTensors::deserialize(bytes).map_err(|error| refused(path, bytes, &error))?;
    let tensors = found.tensors().into_iter().map(|(name, view)| {
        let start = view.data().as_ptr().addr() - bytes.as_ptr().addr();
        let place = TensorLocation {
            part: 0,
            element: element(view.dtype()),
            shape: view.shape().to_vec(),
            strides: contiguous(view.shape()),
            start,
        };
        (name, place)
    });
    Ok(tensors.collect())
}

/// A file without a plausible header is another format; one with a header that does not hold is damaged.
fn refused(path: &Path, bytes: &[u8], error: &SafeTensorError) -> TensorError {
    let path = path.to_path_buf();
    if bytes.get(8) == Some(&b'{') {
        TensorError::Damaged {
            path,
            reason: error.to_string(),
        }
    } else {
        TensorError::Format { path }
    }
}

fn element(dtype: Dtype) -> Element {
    match dtype {
        Dtype::F32 => Element::F32,
        Dtype::F16 => Element::F16,
        Dtype::BF16 => Element::Bf16,
        Dtype::F64 => Element::F64,
        Dtype::I64 => Element::Other("i64", 8),
        Dtype::U64 => Element::Other("u64", 8),
        Dtype::I32 => Element::Other("i32", 4),
        Dtype::U32 => Element::Other("u32", 4),
        Dtype::I16 => Element::Other("i16", 2),
        Dtype::U16 => Element::Other("u16", 2),
        Dtype::I8 => Element::Other("i8", 1),
        Dtype::U8 => Element::Other("u8", 1),
        Dtype::BOOL => Element::Other("bool", 1),
        _ => Element::Other("packed 8-bit or smaller floating-point", 1),
    }
}
