//! Files that PyTorch and safetensors wrote (`make_files.py`) give their tensors; damaged ones give errors.

use lockstep_tensors::{Element, TensorError, TensorFile};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/files")
        .join(name)
}

/// The matrix that all tensors of the files are made of.
fn matrix() -> Vec<f32> {
    (0..12).map(|i| i as f32 / 4.0 - 1.0).collect()
}

fn check(file: &TensorFile) {
    let matrix = matrix();
    let turned: Vec<f32> = (0..12).map(|i| matrix[i % 3 * 4 + i / 3]).collect();
    let expected: [(&str, &[usize], Vec<f32>); 9] = [
        ("matrix", &[3, 4], matrix.clone()),
        ("turned", &[4, 3], turned),
        ("column", &[3], vec![-0.75, 0.25, 1.25]),
        ("scalar", &[], vec![2.5]),
        ("empty", &[0, 3], vec![]),
        ("half", &[3, 4], matrix.clone()),
        ("brain", &[3, 4], matrix.clone()),
        ("double", &[3, 4], matrix.clone()),
        ("parameter", &[4], matrix[4..8].to_vec()),
    ];
    for (name, shape, numbers) in expected {
        assert_eq!(file.shape(name), Some(shape), "{name}");
        assert_eq!(file.read(name).unwrap(), numbers, "{name}");
    }
    assert_eq!(file.element("count"), Some(Element::Other("i64", 8)));
    let error = file.read("count").unwrap_err().to_string();
    assert!(error.contains("count") && error.contains("i64"), "{error}");
}

#[test]
fn every_format_gives_every_tensor() {
    for name in ["plain.safetensors", "plain.pt", "legacy.pth"] {
        let file = TensorFile::open(file(name)).unwrap();
        assert_eq!(file.names().count(), 10, "{name}");
        check(&file);
    }
}

#[test]
fn of_the_checkpoint_of_a_script_the_weights_are_taken_under_their_own_names() {
    for name in ["checkpoint.pt", "checkpoint.pth"] {
        let file = TensorFile::open(file(name)).unwrap();
        assert_eq!(file.names().count(), 10, "{name}");
        check(&file);
    }
}

#[test]
fn a_whole_module_is_refused_by_the_name_of_its_class() {
    let error = TensorFile::open(file("module.pt")).unwrap_err();
    assert!(
        matches!(
            error,
            TensorError::Unknown { .. } | TensorError::Unsupported { .. }
        ),
        "{error}"
    );
    let said = error.to_string();
    assert!(said.contains("torch.nn.modules.linear.Linear"), "{said}");
    assert!(said.contains("state_dict()"), "{said}");
}

#[test]
fn a_missing_tensor_is_named_with_the_nearest() {
    let error = TensorFile::open(file("plain.pt"))
        .unwrap()
        .read("matrx")
        .unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("matrx") && said.contains("nearest is matrix"),
        "{said}"
    );
}

#[test]
fn folders_are_opened_as_hugging_face_lays_them_out() {
    let folder = tempfile::tempdir().unwrap();
    let error = TensorFile::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("model.safetensors"), "{error}");

    std::fs::copy(file("plain.pt"), folder.path().join("pytorch_model.bin")).unwrap();
    check(&TensorFile::open(folder.path()).unwrap());

    let index = folder.path().join("model.safetensors.index.json");
    std::fs::copy(
        file("plain.safetensors"),
        folder.path().join("part-1.safetensors"),
    )
    .unwrap();
    std::fs::write(
        &index,
        r#"{"weight_map": {"matrix": "part-1.safetensors"}}"#,
    )
    .unwrap();
    let parts = TensorFile::open(folder.path()).unwrap();
    check(&parts);
    let whole = TensorFile::open(file("plain.safetensors")).unwrap();
    assert_eq!(parts.sha256(), whole.sha256());

    std::fs::write(&index, r#"{"weight_map": {"matrix": "../../etc/passwd"}}"#).unwrap();
    let error = TensorFile::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("not a file beside it"), "{error}");
}

#[test]
fn other_files_are_refused_with_their_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    for contents in ["", "hello, this is not a tensor at all", "PK\x03\x04"] {
        std::fs::write(&path, contents).unwrap();
        let error = TensorFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("notes.txt"), "{error}");
    }
    let error = TensorFile::open(folder.path().join("nowhere.pt")).unwrap_err();
    assert!(matches!(error, TensorError::Read { .. }), "{error}");
}

const FILES: [&str; 5] = [
    "plain.safetensors",
    "plain.pt",
    "legacy.pth",
    "checkpoint.pt",
    "checkpoint.pth",
];

/// Opens changed bytes, and reads what they still have: errors are welcome, panics are not.
fn open_all(bytes: &[u8]) -> Result<(), TensorError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights");
    std::fs::write(&path, bytes).unwrap();
    let file = TensorFile::open(&path)?;
    for name in file.names() {
        let _ = file.read(name);
    }
    Ok(())
}

#[test]
fn a_truncated_file_is_refused() {
    for name in FILES {
        let bytes = std::fs::read(file(name)).unwrap();
        // Of an archive a few bytes at the end may be missing for nothing but a comment's sake.
        for len in (0..bytes.len() - 1).step_by(7) {
            assert!(open_all(&bytes[..len]).is_err(), "{name} cut at {len}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn changed_bytes_never_panic(
        which in 0..FILES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = std::fs::read(file(FILES[which])).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = open_all(&bytes);
    }
}
