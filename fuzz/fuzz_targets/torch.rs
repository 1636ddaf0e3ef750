//! Whatever the bytes, as a file of PyTorch's or of safetensors: nothing panics, and every tensor that is found can be
//! read, or says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockstep_tensors::TensorFile;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("weights.pt");
    std::fs::write(&path, bytes).expect("a file");
    let Ok(file) = TensorFile::open(&path) else {
        return;
    };
    for name in file.names() {
        let values = file.read(name);
        if let (Ok(values), Some(shape)) = (values, file.shape(name)) {
            assert_eq!(values.len(), shape.iter().product::<usize>());
        }
    }
});
