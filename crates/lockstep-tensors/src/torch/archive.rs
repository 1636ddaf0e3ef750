//! PyTorch's files since 1.6: a zip archive with the pickle `data.pkl` and a file a storage.
//!
//! PyTorch stores without compression, so that storages can be mapped. Only such archives are read here.

use super::Fault;
use super::{objects, pickle};
use crate::file::TensorLocation;
use lockstep_base::zip;
use std::collections::HashMap;
use std::ops::Range;

pub(super) fn tensors(bytes: &[u8]) -> Result<Vec<(String, TensorLocation)>, Fault> {
    let files = directory(bytes)?;
    let pickle_name = files
        .keys()
        .find(|name| name.ends_with("/data.pkl") || *name == "data.pkl")
        .ok_or_else(|| Fault::Unsupported("no data.pkl; it is another kind of archive".into()))?;
    let folder = pickle_name.trim_end_matches("data.pkl");
    if let Some(order) = files.get(&format!("{folder}byteorder"))
        && &bytes[order.clone()] != b"little"
    {
        return Err(Fault::Unsupported(
            "numbers whose high bytes come first".into(),
        ));
    }
    let object = pickle::load(&bytes[files[pickle_name].clone()])?;
    objects::tensors(&object, |storage| {
        files.get(&format!("{folder}data/{}", storage.key)).cloned()
    })
}

/// Where the contents of each file lie.
fn directory(bytes: &[u8]) -> Result<HashMap<String, Range<usize>>, Fault> {
    let entries = zip::entries(bytes).map_err(Fault::Damaged)?;
    let place = |entry: zip::Entry<'_>| {
        let name = String::from_utf8_lossy(entry.name).into_owned();
        match entry.deflated {
            true => Err(Fault::Unsupported(format!("the compressed file {name}"))),
            false => Ok((name, entry.content)),
        }
    };
    entries.into_iter().map(place).collect()
}
