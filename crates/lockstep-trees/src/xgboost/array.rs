//! Arrays as XGBoost is told of them: JSON that says where the numbers lie (NumPy's array interface).

use std::ffi::CString;

/// The description of `values` as an array of this shape.
///
/// It holds the address alone: who makes a call with it keeps the numbers in place until the call returned.
pub(crate) fn interface(values: &[f32], shape: &[usize]) -> CString {
    debug_assert_eq!(values.len(), shape.iter().product::<usize>());
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    // XGBoost ends the process over an array without elements whose address is null.
    static NOTHING: f32 = 0.0;
    let address = match values.is_empty() {
        true => &raw const NOTHING,
        false => values.as_ptr(),
    } as usize;
    let text = format!(
        r#"{{"data":[{address},true],"shape":[{}],"typestr":"<f4","version":3}}"#,
        shape.join(",")
    );
    CString::new(text).expect("numbers have no zero bytes")
}
