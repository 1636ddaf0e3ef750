//! Small files that ask for gigabytes are refused, in little memory.

use lockstep_tensors::TensorFile;
use lockstep_testkit::peak;
use std::fs;

/// What reading a file of about a megabyte may take: some hundred bytes for each byte of its pickle, which is
/// what its smallest values take.
const MOST: usize = 512 << 20;

/// A file of PyTorch's until 1.5, whose object is made by `program`.
fn legacy(program: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.".to_vec();
    bytes.extend(b"\x80\x02}(X\x0d\x00\x00\x00little_endian\x88u.\x80\x02");
    bytes.extend(program);
    bytes.extend(b".\x80\x02].");
    bytes
}

/// A text, kept in the memo under a number.
fn text(text: &[u8], key: u8) -> Vec<u8> {
    [
        b"X",
        &(text.len() as u32).to_le_bytes()[..],
        text,
        b"q",
        &[key],
    ]
    .concat()
}

/// Opens a file with these bytes; what it says, and the most memory that it took.
fn open(bytes: &[u8]) -> (Result<usize, String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.pth");
    fs::write(&path, bytes).unwrap();
    peak(|| match TensorFile::open(&path) {
        Ok(file) => Ok(file.names().count()),
        Err(error) => Err(error.to_string()),
    })
}

#[track_caller]
fn takes_little(program: &[u8]) -> Result<usize, String> {
    let (result, peak) = open(&legacy(program));
    assert!(
        peak < MOST,
        "{peak} bytes for a file of {}: {result:?}",
        program.len()
    );
    result
}

#[test]
fn a_long_name_that_is_made_again_and_again_takes_no_memory() {
    // A module and a name of 300 kB each, joined 120 000 times.
    let long = vec![b'x'; 300 << 10];
    let mut program = [text(&long, 0), text(&long, 1)].concat();
    program.extend(b"h\x00h\x01\x93".repeat(120_000));
    assert!(takes_little(&program).is_err());
}

/// A call that makes a tensor whose storage has no numbers, with this shape and these strides.
fn tensor(shape: &[u8]) -> Vec<u8> {
    let mut call = b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage".to_vec();
    call.extend(b"ctorch\nFloatStorage\nX\x01\x00\x00\x007X\x03\x00\x00\x00cpuK\x00NtQK\x00");
    call.extend([shape, shape, b"\x89NtR"].concat());
    call
}

#[test]
fn a_long_key_of_many_tensors_is_refused() {
    let mut program = [
        text(&vec![b'x'; 600 << 10], 0),
        tensor(b")"),
        b"q\x01".to_vec(),
    ]
    .concat();
    program.extend(b"}(");
    program.extend(b"h\x00h\x01".repeat(100_000));
    program.extend(b"u");
    let error = takes_little(&program).unwrap_err();
    assert!(
        error.contains("bomb.pth has a name of 614400 bytes"),
        "{error}"
    );
}

#[test]
fn dictionaries_in_each_other_with_long_keys_are_refused() {
    let mut program = [text(&[b'x'; 120], 0), b"}q\x01".to_vec()].concat();
    for level in 1..8u8 {
        // Each holds the one before it a hundred times.
        program.extend(b"}(");
        program.extend([&b"h\x00h"[..], &[level]].concat().repeat(100));
        program.extend([&b"uq"[..], &[level + 1]].concat());
    }
    let error = takes_little(&program).unwrap_err();
    assert!(error.contains("longer than the file"), "{error}");
}

#[test]
fn a_shape_of_many_dimensions_is_refused() {
    let mut shape = b"(".to_vec();
    shape.extend(b"K\x00".repeat(200_000));
    shape.extend(b"tq\x05");
    let mut program = shape.clone();
    program.extend(b"}(");
    program.extend(text(b"a", 0));
    program.extend(tensor(b"h\x05"));
    program.extend(b"u");
    let error = takes_little(&program).unwrap_err();
    assert!(error.contains("200000 dimensions"), "{error}");
}

#[test]
fn many_values_of_a_byte_each_are_bounded() {
    for byte in [b'N', b')', b'(', b']', b'}'] {
        let _ = takes_little(&vec![byte; 1_200_000]);
    }
    let mut program = b")".to_vec();
    program.extend(vec![0x85; 1_200_000]);
    let _ = takes_little(&program);
}
