//! Weights that a run begins with: a safetensors file or one of PyTorch's, under the names and in the layout of
//! a PyTorch `state_dict`, such as [`write_model`](crate::weights::write_model) and PyTorch write.
//!
//! Every tensor of the model must be in the file, in its shape, and nothing else; what PyTorch counts in
//! `num_batches_tracked` nobody needs. One exception makes fine-tuning easy: a last layer for another
//! number of classes is left as it was drawn.

use crate::TrainError;
use lockstep_nn::{Model, Tensor};
use lockstep_tensors::{TensorError, TensorFile};
use std::path::Path;

/// What hashes are of, where a person reads them.
const PREFIX: &str = "sha256:";

/// What a run begins with.
pub(crate) struct Pretrained {
    /// The state vector.
    pub(crate) state: Vec<f32>,
    /// SHA-256 of the file, written as [`sha256_of`] does.
    pub(crate) sha256: String,
    /// What a person should know about how the file was used.
    pub(crate) note: Option<String>,
}

/// Reads the file at `path` for a model whose other weights are drawn from `seed`. If it is known what the
/// file was when the job was checked, it must still be that: workers that read it one after the other, and
/// those that replace a lost one, all begin alike.
pub(crate) fn read(
    path: &Path,
    model: &Model,
    seed: u64,
    known: Option<&str>,
) -> Result<Pretrained, TrainError> {
    let refused = |reason: String| TrainError::Pretrained {
        path: path.to_owned(),
        reason,
    };
    check_regular(path).map_err(&refused)?;
    let file = TensorFile::open(path).map_err(|error| refused(unreadable(error)))?;
    let sha256 = format!("{PREFIX}{}", file.sha256());
    if known.is_some_and(|known| known != sha256) {
        let reason = "it has changed since the job was checked; put it back, or run the job anew";
        return Err(refused(reason.to_owned()));
    }
    let tensors = &model.layout().tensors;
    check_names(&file, tensors).map_err(&refused)?;
    let head = model.summary().last().map_or("", |layer| &layer.name);
    let other_classes = classes_of_other_head(&file, tensors, head);
    let mut state = model.initial_state(seed);
    for tensor in tensors {
        if other_classes.is_some() && belongs_to(tensor, head) {
            continue;
        }
        let of_tensor = |reason: String| refused(format!("`{}` {reason}", tensor.name));
        // Every name was found above.
        let (found, expected) = (file.shape(&tensor.name).unwrap_or_default(), &tensor.shape);
        if found != expected {
            return Err(of_tensor(format!(
                "has the shape {found:?}, and the model's has {expected:?}"
            )));
        }
        let numbers = file.read(&tensor.name).map_err(|error| match error {
            TensorError::Element { found, .. } => {
                of_tensor(format!("is of {found}; f32, f16, bf16 and f64 can be read"))
            }
            error => refused(unreadable(error)),
        })?;
        state[tensor.range.clone()].copy_from_slice(&tensor.from_torch(&numbers));
    }
    let note = other_classes.map(|classes| {
        format!(
            "{} is of {classes} classes, this model of {}: its last layer, `{head}`, begins anew",
            path.display(),
            model.outputs()
        )
    });
    Ok(Pretrained {
        state,
        sha256,
        note,
    })
}

/// SHA-256 of the file at `path`, as `sha256:` and digits, if it is there.
pub(crate) fn sha256_of(path: &Path) -> Option<String> {
    check_regular(path).ok()?;
    let (_, hash) = lockstep_base::fs::sha256_of_file(path).ok()?;
    Some(format!("{PREFIX}{hash}"))
}

/// What the file is comes first: merely opening a FIFO would wait for its writer.
fn check_regular(path: &Path) -> Result<(), String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    match found.is_file() {
        true => Ok(()),
        false => Err("it is not a regular file".to_owned()),
    }
}

/// Why a file whose path is already named cannot be used.
fn unreadable(error: TensorError) -> String {
    match error {
        TensorError::Read { source, .. } => source.to_string(),
        TensorError::Format { .. } => {
            "it is neither a safetensors file nor one of PyTorch's (.pth, .pt, .bin)".to_owned()
        }
        TensorError::Damaged { reason, .. } => format!("it is damaged: {reason}"),
        error => error.to_string(),
    }
}

/// Both must have the same tensors, except for what nobody needs.
fn check_names(file: &TensorFile, tensors: &[Tensor]) -> Result<(), String> {
    let found: Vec<&str> = file.names().collect();
    let missing = tensors.iter().map(|tensor| tensor.name.as_str());
    let missing: Vec<&str> = missing.filter(|name| !found.contains(name)).collect();
    if let Some(first) = missing.first() {
        let more = and_more(&missing);
        return Err(format!(
            "there is no tensor `{first}`{more} in it, which the model has"
        ));
    }
    let known = |name: &str| tensors.iter().any(|tensor| tensor.name == name);
    let mut unknown = found;
    unknown.retain(|name| !known(name) && !name.ends_with("num_batches_tracked"));
    match unknown.first() {
        None => Ok(()),
        Some(first) => {
            let more = and_more(&unknown);
            Err(format!(
                "there is a tensor `{first}`{more} in it, which the model has not"
            ))
        }
    }
}

fn and_more(names: &[&str]) -> String {
    match names.len() {
        0 | 1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    }
}

/// The number of classes that the file's last layer is for, if it is another one and nothing else differs.
fn classes_of_other_head(file: &TensorFile, tensors: &[Tensor], head: &str) -> Option<usize> {
    let mut classes = None;
    for tensor in tensors.iter().filter(|tensor| belongs_to(tensor, head)) {
        let (found, expected) = (file.shape(&tensor.name)?, &tensor.shape[..]);
        let (count, rest) = found.split_first()?;
        if *count == expected[0] || *rest != expected[1..] {
            return None;
        }
        if classes.is_some_and(|classes| classes != *count) {
            return None;
        }
        classes = Some(*count);
    }
    classes
}

fn belongs_to(tensor: &Tensor, layer: &str) -> bool {
    let rest = tensor.name.strip_prefix(layer);
    rest.is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_nn::{Dims, LayerSpec, NamedLayer, layers};
    use safetensors::tensor::{Dtype, TensorView};
    use std::collections::HashMap;
    use std::path::PathBuf;
    use std::process::Command;
    use tempfile::TempDir;

    type Named = (String, Dtype, Vec<usize>, Vec<u8>);

    fn model(classes: usize) -> Model {
        let layers = [
            LayerSpec::Linear(layers::Linear { out: 3 }),
            LayerSpec::BatchNorm,
            LayerSpec::Relu,
            LayerSpec::Linear(layers::Linear { out: classes }),
        ];
        Model::new(&NamedLayer::stack(layers), Dims::vector(2), 1).unwrap()
    }

    /// A model's tensors, whose numbers are drawn from a seed, and what PyTorch adds to them.
    fn tensors(model: &Model, seed: u64) -> Vec<Named> {
        let state = model.initial_state(seed);
        let mut tensors: Vec<Named> = model
            .layout()
            .tensors
            .iter()
            .map(|tensor| {
                let numbers = tensor.to_torch(&state[tensor.range.clone()]);
                let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
                (tensor.name.clone(), Dtype::F32, tensor.shape.clone(), bytes)
            })
            .collect();
        let counter = "layers.1.num_batches_tracked".to_owned();
        tensors.push((counter, Dtype::I64, vec![], vec![7; 8]));
        tensors
    }

    fn write(folder: &TempDir, tensors: &[Named]) -> PathBuf {
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            let view = TensorView::new(*dtype, shape.clone(), bytes).unwrap();
            (name.as_str(), view)
        });
        let bytes = safetensors::serialize(views, None::<HashMap<_, _>>).unwrap();
        let path = folder.path().join("weights.safetensors");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn refusal(change: impl FnOnce(&mut Vec<Named>)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut tensors = tensors(&model(4), 1);
        change(&mut tensors);
        let path = write(&folder, &tensors);
        match read(&path, &model(4), 0, None) {
            Ok(_) => panic!("this was accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_number_is_taken_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let model = model(4);
        let path = write(&folder, &tensors(&model, 1));
        let begin = read(&path, &model, 0, None).unwrap();
        assert_eq!(begin.state, model.initial_state(1));
        assert_eq!(begin.note, None);
        assert_eq!(begin.sha256.len(), "sha256:".len() + 64);
    }

    #[test]
    fn a_file_that_has_changed_since_it_was_checked_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let model = model(4);
        let path = write(&folder, &tensors(&model, 1));
        let known = sha256_of(&path).unwrap();
        assert!(read(&path, &model, 0, Some(&known)).is_ok());
        write(&folder, &tensors(&model, 2));
        let error = read(&path, &model, 0, Some(&known)).err().unwrap();
        assert!(error.to_string().contains("has changed"), "{error}");
    }

    #[test]
    fn a_last_layer_for_other_classes_begins_anew_and_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(&folder, &tensors(&model(7), 1));
        let model = model(4);
        let begin = read(&path, &model, 2, None).unwrap();
        let (before, drawn) = (self::model(7).initial_state(1), model.initial_state(2));
        let head = 3 * 2 + 3 + 3 + 3..3 * 2 + 3 + 3 + 3 + 4 * 3 + 4;
        assert_eq!(begin.state[..head.start], before[..head.start]);
        assert_eq!(begin.state[head.clone()], drawn[head]);
        let note = begin.note.unwrap();
        assert!(note.contains("of 7 classes, this model of 4"), "{note}");
        assert!(note.contains("`layers.3`"), "{note}");
    }

    #[test]
    fn every_other_difference_is_refused_with_the_tensors_name() {
        let missing = refusal(|tensors| tensors.retain(|(name, ..)| !name.ends_with("bias")));
        assert!(
            missing.contains("no tensor `layers.0.bias` (and 2 more)"),
            "{missing}"
        );
        let unknown = refusal(|tensors| {
            tensors.push(("layers.9.weight".into(), Dtype::F32, vec![1], vec![0; 4]));
        });
        assert!(
            unknown.contains("a tensor `layers.9.weight` in it"),
            "{unknown}"
        );
        let shape = refusal(|tensors| tensors[0].2 = vec![2, 3]);
        assert!(
            shape.contains("`layers.0.weight` has the shape [2, 3], and the model's has [3, 2]"),
            "{shape}"
        );
        let half_a_head = refusal(|tensors| {
            let bias = tensors
                .iter_mut()
                .find(|tensor| tensor.0 == "layers.3.bias");
            let bias = bias.unwrap();
            (bias.2, bias.3) = (vec![7], vec![0; 28]);
        });
        assert!(
            half_a_head.contains("`layers.3.bias` has the shape [7]"),
            "{half_a_head}"
        );
        let dtype = refusal(|tensors| tensors[0].1 = Dtype::I32);
        assert!(dtype.contains("`layers.0.weight` is of i32"), "{dtype}");
    }

    #[test]
    fn what_is_no_safetensors_file_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        let shown = |path: &Path| read(path, &model(4), 0, None).err().unwrap().to_string();
        assert!(shown(&path).contains("No such file"), "{}", shown(&path));
        std::fs::write(&path, b"PK\x03\x04rest of a zip archive").unwrap();
        assert!(shown(&path).contains("damaged"), "{}", shown(&path));
        std::fs::write(&path, b"anything else").unwrap();
        let other = shown(&path);
        assert!(other.contains("neither a safetensors file"), "{other}");
        assert!(other.contains(&path.display().to_string()), "{other}");
        assert!(shown(folder.path()).contains("not a regular file"));
    }

    /// What `torch.save` writes of a `state_dict`, in both of its formats.
    const SAVE: &str = include_str!("../tests/save_like_torch.py");

    #[test]
    fn files_of_pytorch_begin_a_run_as_safetensors_do() {
        let folder = tempfile::tempdir().unwrap();
        let model = model(4);
        let plain = write(&folder, &tensors(&model, 1));
        for name in ["weights.pt", "weights.pth"] {
            let path = folder.path().join(name);
            let made = Command::new("python3")
                .args(["-c", SAVE])
                .args([&plain, &path])
                .status();
            assert!(made.unwrap().success());
            let begin = read(&path, &model, 0, None).unwrap();
            assert_eq!(begin.state, model.initial_state(1), "{name}");
            assert_eq!(Some(begin.sha256), sha256_of(&path));
        }
    }
}
