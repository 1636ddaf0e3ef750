//! The few Python objects that make up a state dictionary, and what they mean.

use super::Fault;
use super::pickle::{Id, Pickle, Value};
use crate::element::Element;
use crate::file::Place;
use std::collections::HashMap;
use std::ops::Range;

const REBUILD: &str = "torch._utils._rebuild_tensor_v2";
const REBUILD_OLD: &str = "torch._utils._rebuild_tensor";
const PARAMETER: &str = "torch._utils._rebuild_parameter";

/// How deep dictionaries may lie in each other.
const DEPTH: usize = 8;

/// The most entries of all dictionaries together: large models have thousands.
const ENTRIES: usize = 1 << 20;

/// Whether a call of this object is understood.
pub(super) fn is_known(global: &str) -> bool {
    [REBUILD, REBUILD_OLD, PARAMETER].contains(&global)
}

/// What the numbers of a storage are, by the name of its class.
fn element(class: &str) -> Option<Element> {
    Some(match class {
        "torch.FloatStorage" => Element::F32,
        "torch.HalfStorage" => Element::F16,
        "torch.BFloat16Storage" => Element::Bf16,
        "torch.DoubleStorage" => Element::F64,
        "torch.LongStorage" => Element::Other("i64", 8),
        "torch.IntStorage" => Element::Other("i32", 4),
        "torch.ShortStorage" => Element::Other("i16", 2),
        "torch.CharStorage" => Element::Other("i8", 1),
        "torch.ByteStorage" => Element::Other("u8", 1),
        "torch.BoolStorage" => Element::Other("bool", 1),
        _ => return None,
    })
}

/// Some numbers that tensors look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Storage {
    pub(super) key: String,
    pub(super) element: Element,
    /// How many numbers it has.
    pub(super) len: usize,
}

/// A tensor as the pickle tells of it.
struct Tensor {
    storage: Storage,
    /// Numbers before its first.
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

/// All storages that a pickle speaks of, by their keys.
pub(super) fn storages(pickle: &Pickle) -> Result<HashMap<String, Storage>, Fault> {
    let references = pickle.persistent();
    references
        .map(|id| storage(pickle, id).map(|storage| (storage.key.clone(), storage)))
        .collect()
}

/// All tensors of a state dictionary, and of those inside it under `outer.inner`. `find` says which
/// bytes of the file a storage has.
pub(super) fn tensors(
    pickle: &Pickle,
    find: impl Fn(&Storage) -> Option<Range<usize>>,
) -> Result<Vec<(String, Place)>, Fault> {
    let mut found = Vec::new();
    let mut entries = 0;
    let mut open = vec![(String::new(), pickle.root, 0)];
    while let Some((prefix, dict, depth)) = open.pop() {
        let Value::Dict(pairs) = pickle.get(dict) else {
            return Err(Fault::Unsupported(
                "something else than a dictionary of tensors in it".into(),
            ));
        };
        entries += pairs.len();
        if entries > ENTRIES || depth > DEPTH {
            return Err(Fault::Unsupported("dictionaries without end".into()));
        }
        for &(key, value) in pairs {
            let Value::Text(key) = pickle.get(key) else {
                // Optimizers number their tensors; weights have names.
                continue;
            };
            match pickle.get(value) {
                Value::Dict(_) => open.push((format!("{prefix}{key}."), value, depth + 1)),
                Value::Call(..) => {
                    let name = format!("{prefix}{key}");
                    let tensor = tensor(pickle, value, false)?;
                    let place = find(&tensor.storage).and_then(|room| place(tensor, room));
                    let outside =
                        || format!("the tensor {name} does not lie inside of its storage");
                    found.push((
                        name.clone(),
                        place.ok_or_else(|| Fault::damaged(outside()))?,
                    ));
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// Where a tensor lies whose storage has these bytes, if it lies inside of them.
fn place(tensor: Tensor, bytes: Range<usize>) -> Option<Place> {
    let Storage { element, len, .. } = tensor.storage;
    let room = len.min(bytes.len() / element.size());
    let room = room.checked_sub(tensor.offset)?;
    let place = Place {
        part: 0,
        element,
        shape: tensor.shape,
        strides: tensor.strides,
        start: bytes.start + tensor.offset * element.size(),
    };
    place.fits(room * element.size()).then_some(place)
}

/// The tensor that a call would make.
fn tensor(pickle: &Pickle, call: Id, wrapped: bool) -> Result<Tensor, Fault> {
    let damaged = || Fault::damaged("a tensor is not made as PyTorch makes them");
    let Value::Call(called, arguments) = *pickle.get(call) else {
        return Err(damaged());
    };
    let (Value::Global(called), Value::Tuple(arguments)) =
        (pickle.get(called), pickle.get(arguments))
    else {
        return Err(damaged());
    };
    match (called.as_str(), &arguments[..]) {
        (PARAMETER, [data, ..]) if !wrapped => tensor(pickle, *data, true),
        (REBUILD | REBUILD_OLD, [data, offset, shape, strides, ..]) => {
            let (shape, strides) = (sizes(pickle, *shape)?, sizes(pickle, *strides)?);
            if shape.len() != strides.len() {
                return Err(damaged());
            }
            Ok(Tensor {
                storage: storage(pickle, *data)?,
                offset: size(pickle, *offset)?,
                shape,
                strides,
            })
        }
        _ => Err(damaged()),
    }
}

/// The storage that a reference means: `('storage', class, key, device, length)`, and in old files
/// a sixth, for storages inside others.
fn storage(pickle: &Pickle, reference: Id) -> Result<Storage, Fault> {
    let damaged = || Fault::damaged("a storage is not described as PyTorch describes them");
    let Value::Persistent(tuple) = *pickle.get(reference) else {
        return Err(damaged());
    };
    let Value::Tuple(items) = pickle.get(tuple) else {
        return Err(damaged());
    };
    let [kind, class, key, _device, len, rest @ ..] = &items[..] else {
        return Err(damaged());
    };
    if rest.iter().any(|&id| *pickle.get(id) != Value::None) {
        return Err(Fault::Unsupported(
            "storages inside of other storages".into(),
        ));
    }
    match (pickle.get(*kind), pickle.get(*class), pickle.get(*key)) {
        (Value::Text(kind), Value::Global(class), Value::Text(key)) if kind == "storage" => {
            Ok(Storage {
                key: key.clone(),
                element: element(class).ok_or_else(|| Fault::Unknown(class.clone()))?,
                len: size(pickle, *len)?,
            })
        }
        _ => Err(damaged()),
    }
}

fn size(pickle: &Pickle, id: Id) -> Result<usize, Fault> {
    match pickle.get(id) {
        Value::Int(n) => {
            usize::try_from(*n).map_err(|_| Fault::damaged(format!("a length or an offset is {n}")))
        }
        _ => Err(Fault::damaged(
            "a length or an offset is not a whole number",
        )),
    }
}

fn sizes(pickle: &Pickle, id: Id) -> Result<Vec<usize>, Fault> {
    match pickle.get(id) {
        Value::Tuple(items) => items.iter().map(|&id| size(pickle, id)).collect(),
        _ => Err(Fault::damaged("a shape is not a tuple")),
    }
}
