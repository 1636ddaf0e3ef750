//! The few Python objects that make up a state dictionary, and what they mean.

use super::Fault;
use super::pickle::{Id, Pickle, Value};
use crate::element::Element;
use crate::file::TensorLocation;
use std::collections::HashMap;
use std::ops::Range;

/// The module of those that make a tensor, and their names.
const UTILS: &str = "torch._utils";
const REBUILD: &str = "_rebuild_tensor_v2";
const REBUILD_OLD: &str = "_rebuild_tensor";
const PARAMETER: &str = "_rebuild_parameter";

/// Under which keys training scripts keep the weights, beside what else they save.
const WEIGHTS: [&str; 3] = ["state_dict", "model_state_dict", "model"];

/// What PyTorch's `DataParallel` and `DistributedDataParallel` put before every name.
const PARALLEL: &str = "module.";

/// How deep dictionaries may lie in each other.
const DEPTH: usize = 8;

/// The most entries of all dictionaries together: large models have thousands.
const ENTRIES: usize = 1 << 20;

/// The most dimensions of a tensor: PyTorch and NumPy have no more.
const DIMENSIONS: usize = 64;

/// The longest name of a storage: PyTorch numbers them.
const LONGEST_KEY: usize = 256;

/// The longest name of a tensor.
const LONGEST_NAME: usize = 1024;

/// How many times its own size the names of a file's tensors may take: those of nested dictionaries are
/// longer than what the file says.
const NAMES: usize = 16;

/// Whether a call of this object is understood.
pub(super) fn is_known(module: &str, name: &str) -> bool {
    module == UTILS && [REBUILD, REBUILD_OLD, PARAMETER].contains(&name)
}

/// What the numbers of a storage are, by the name of its class.
fn element(module: &str, class: &str) -> Option<Element> {
    if module != "torch" {
        return None;
    }
    Some(match class {
        "FloatStorage" => Element::F32,
        "HalfStorage" => Element::F16,
        "BFloat16Storage" => Element::Bf16,
        "DoubleStorage" => Element::F64,
        "LongStorage" => Element::Other("i64", 8),
        "IntStorage" => Element::Other("i32", 4),
        "ShortStorage" => Element::Other("i16", 2),
        "CharStorage" => Element::Other("i8", 1),
        "ByteStorage" => Element::Other("u8", 1),
        "BoolStorage" => Element::Other("bool", 1),
        _ => return None,
    })
}

/// Some numbers that tensors look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Storage<'a> {
    pub(super) key: &'a str,
    pub(super) element: Element,
    /// How many numbers it has.
    pub(super) len: usize,
}

/// A tensor as the pickle tells of it.
struct Tensor<'a> {
    storage: Storage<'a>,
    /// Numbers before its first.
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

/// All storages that a pickle speaks of, by their keys.
pub(super) fn storages<'a>(pickle: &Pickle<'a>) -> Result<HashMap<&'a str, Storage<'a>>, Fault> {
    let references = pickle.persistent();
    references
        .map(|id| storage(pickle, id).map(|storage| (storage.key, storage)))
        .collect()
}

/// All tensors of a state dictionary, and of those inside it under `outer.inner`. Of the checkpoint of a training script,
/// those are its weights alone. `find` says which bytes of the file a storage has.
pub(super) fn tensors(
    pickle: &Pickle<'_>,
    find: impl Fn(&Storage<'_>) -> Option<Range<usize>>,
) -> Result<Vec<(String, TensorLocation)>, Fault> {
    let mut found = Vec::new();
    let mut entries = 0;
    let mut letters = pickle.len.saturating_mul(NAMES);
    let mut open = vec![(String::new(), weights(pickle), 0)];
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
            let length = prefix.len() + key.len();
            if length > LONGEST_NAME {
                return Err(Fault::Unsupported(format!("a name of {length} bytes")));
            }
            letters = letters
                .checked_sub(length)
                .ok_or_else(|| Fault::Unsupported("names that are longer than the file".into()))?;
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
    Ok(named_alone(found))
}

/// The dictionary of the weights: the one that a training script saved under a key of its own, else all that was saved.
fn weights(pickle: &Pickle<'_>) -> Id {
    let Value::Dict(pairs) = pickle.get(pickle.root) else {
        return pickle.root;
    };
    let under = |wanted: &&str| {
        let is_it = |&&(key, value): &&(Id, Id)| {
            *pickle.get(key) == Value::Text(wanted) && matches!(pickle.get(value), Value::Dict(_))
        };
        pairs.iter().find(is_it).map(|&(_, value)| value)
    };
    WEIGHTS.iter().find_map(under).unwrap_or(pickle.root)
}

/// The tensors under the names that they have without the wrapper for several processors, if all are in it.
fn named_alone(mut tensors: Vec<(String, TensorLocation)>) -> Vec<(String, TensorLocation)> {
    if tensors.iter().all(|(name, _)| name.starts_with(PARALLEL)) {
        for (name, _) in &mut tensors {
            name.drain(..PARALLEL.len());
        }
    }
    tensors
}

/// Where a tensor lies whose storage has these bytes, if it lies inside of them.
fn place(tensor: Tensor<'_>, bytes: Range<usize>) -> Option<TensorLocation> {
    let Storage { element, len, .. } = tensor.storage;
    let room = len.min(bytes.len() / element.size());
    let room = room.checked_sub(tensor.offset)?;
    let place = TensorLocation {
        part: 0,
        element,
        shape: tensor.shape,
        strides: tensor.strides,
        start: bytes.start + tensor.offset * element.size(),
    };
    place.fits(room * element.size()).then_some(place)
}

/// The tensor that a call would make.
fn tensor<'a>(pickle: &Pickle<'a>, call: Id, wrapped: bool) -> Result<Tensor<'a>, Fault> {
    let damaged = || Fault::damaged("a tensor is not made as PyTorch makes them");
    let Value::Call(called, arguments) = *pickle.get(call) else {
        return Err(damaged());
    };
    let (Value::Global(_, called), Value::Tuple(arguments)) =
        (pickle.get(called), pickle.get(arguments))
    else {
        return Err(damaged());
    };
    // Its module was looked at when the call was noted.
    match (*called, &arguments[..]) {
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
fn storage<'a>(pickle: &Pickle<'a>, reference: Id) -> Result<Storage<'a>, Fault> {
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
    let (Value::Text("storage"), Value::Global(module, class), Value::Text(key)) =
        (pickle.get(*kind), pickle.get(*class), pickle.get(*key))
    else {
        return Err(damaged());
    };
    if key.len() > LONGEST_KEY {
        return Err(damaged());
    }
    Ok(Storage {
        key,
        element: element(module, class).ok_or_else(|| Fault::unknown(module, class))?,
        len: size(pickle, *len)?,
    })
}

fn size(pickle: &Pickle<'_>, id: Id) -> Result<usize, Fault> {
    match pickle.get(id) {
        Value::Int(n) => {
            usize::try_from(*n).map_err(|_| Fault::damaged(format!("a length or an offset is {n}")))
        }
        _ => Err(Fault::damaged(
            "a length or an offset is not a whole number",
        )),
    }
}

fn sizes(pickle: &Pickle<'_>, id: Id) -> Result<Vec<usize>, Fault> {
    match pickle.get(id) {
        Value::Tuple(items) if items.len() > DIMENSIONS => Err(Fault::damaged(format!(
            "a shape has {} dimensions",
            items.len()
        ))),
        Value::Tuple(items) => items.iter().map(|&id| size(pickle, id)).collect(),
        _ => Err(Fault::damaged("a shape is not a tuple")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_wrapper_for_several_processors_is_left_out_if_all_tensors_have_it() {
        let tensor = TensorLocation {
            part: 0,
            element: Element::F32,
            shape: Vec::new(),
            strides: Vec::new(),
            start: 0,
        };
        let names = |names: &[&str]| -> Vec<String> {
            let tensors = names.iter().map(|&name| (name.to_owned(), tensor.clone()));
            let found = named_alone(tensors.collect()).into_iter();
            found.map(|(name, _)| name).collect()
        };
        assert_eq!(
            names(&["module.fc.weight", "module.fc.bias"]),
            ["fc.weight", "fc.bias"]
        );
        let some = ["module.fc.weight", "head.bias"];
        assert_eq!(names(&some), some);
    }
}
