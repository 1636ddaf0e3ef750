//! An open file of tensors: a map from names to places in mapped memory.

use crate::element::Element;
use crate::error::TensorError;
use crate::{folder, safe, torch};
use memmap2::Mmap;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where a tensor lies in its file. Its last number lies inside the file, and it has no more numbers
/// than the file has room for: `check` has seen to that.
#[derive(Debug, Clone)]
pub(crate) struct TensorLocation {
    /// Which of the mapped files.
    pub(crate) part: usize,
    pub(crate) element: Element,
    pub(crate) shape: Vec<usize>,
    /// Numbers from one index of each dimension to the next.
    pub(crate) strides: Vec<usize>,
    /// The first number's first byte.
    pub(crate) start: usize,
}

impl TensorLocation {
    /// How many numbers it has, if that can be said at all.
    fn len(&self) -> Option<usize> {
        self.shape
            .iter()
            .try_fold(1usize, |all, &n| all.checked_mul(n))
    }

    /// Whether its numbers lie one after the other.
    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&n, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if n != 1 && stride != expected {
                return false;
            }
            expected *= n;
        }
        true
    }

    /// Whether all of it lies in `room` bytes from its start on, and has no more numbers than fit there.
    pub(crate) fn fits(&self, room: usize) -> bool {
        let Some(len) = self.len() else {
            return false;
        };
        if len == 0 {
            return true;
        }
        let last = self
            .shape
            .iter()
            .zip(&self.strides)
            .try_fold(0usize, |at, (&n, &stride)| {
                at.checked_add((n - 1).checked_mul(stride)?)
            });
        let numbers = room / self.element.size();
        last.is_some_and(|last| last < numbers) && len <= numbers
    }
}

/// The strides of a tensor whose numbers lie one after the other.
pub(crate) fn contiguous(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d].saturating_mul(shape[d]);
    }
    strides
}

/// The tensors of a file, or of a folder with a model's files.
///
/// The files are mapped, not read: they must not be cut short while this is in use.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    parts: Vec<(PathBuf, Mmap)>,
    tensors: BTreeMap<String, TensorLocation>,
}

impl TensorFile {
    /// Opens a file, or a folder that holds a model as Hugging Face lays it out.
    ///
    /// # Errors
    /// When there is none, when it is none of the formats, when it is damaged, or when it is a pickle of
    /// more than tensors.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TensorError> {
        let path = path.as_ref();
        let mut file = Self {
            path: path.to_path_buf(),
            parts: Vec::new(),
            tensors: BTreeMap::new(),
        };
        if path.is_dir() {
            for part in folder::files(path)? {
                file.add(part)?;
            }
        } else {
            file.add(path.to_path_buf())?;
        }
        Ok(file)
    }

    /// Maps one more file and takes in its tensors.
    fn add(&mut self, path: PathBuf) -> Result<(), TensorError> {
        let bytes = map(&path)?;
        let found = if torch::is_torch(&bytes) {
            torch::tensors(&path, &bytes)?
        } else {
            safe::tensors(&path, &bytes)?
        };
        let part = self.parts.len();
        let places = found
            .into_iter()
            .map(|(name, place)| (name, TensorLocation { part, ..place }));
        self.tensors.extend(places);
        self.parts.push((path, bytes));
        Ok(())
    }

    /// The name it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tensors' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The shape of a tensor, outermost dimension first; `None` when there is none of this name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        Some(&self.tensors.get(name)?.shape)
    }

    /// What a tensor's numbers are in the file; `None` when there is none of this name.
    pub fn element(&self, name: &str) -> Option<Element> {
        Some(self.tensors.get(name)?.element)
    }

    /// A tensor's numbers, the last index running fastest whatever their order in the file.
    ///
    /// # Errors
    /// When there is no tensor of this name, or it does not hold floating-point numbers.
    pub fn read(&self, name: &str) -> Result<Vec<f32>, TensorError> {
        let place = self.tensors.get(name).ok_or_else(|| TensorError::Missing {
            path: self.path.clone(),
            name: name.to_owned(),
            nearest: self.nearest(name),
        })?;
        let read = place.element.reader().ok_or_else(|| TensorError::Element {
            path: self.path.clone(),
            name: name.to_owned(),
            found: place.element,
        })?;
        let len = place.len().unwrap_or(0);
        if len == 0 {
            return Ok(Vec::new());
        }
        let size = place.element.size();
        let bytes = &self.parts[place.part].1[place.start..];
        if place.is_contiguous() {
            return Ok(bytes[..len * size].chunks_exact(size).map(read).collect());
        }
        let mut numbers = Vec::with_capacity(len);
        let mut index = vec![0; place.shape.len()];
        let mut at = 0;
        loop {
            numbers.push(read(&bytes[at * size..]));
            // The next index, as an odometer turns.
            let mut d = index.len();
            loop {
                if d == 0 {
                    return Ok(numbers);
                }
                d -= 1;
                index[d] += 1;
                at += place.strides[d];
                if index[d] < place.shape[d] {
                    break;
                }
                at -= place.shape[d] * place.strides[d];
                index[d] = 0;
            }
        }
    }

    /// The SHA-256 of the file's bytes, as 64 hexadecimal digits; of a folder, that of its parts' bytes
    /// one after the other, in the order of their names.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for (_, bytes) in &self.parts {
            hash.update(&bytes[..]);
        }
        lockstep_base::fs::hex::encode(hash.finalize())
    }

    /// The name that begins or ends most like this one.
    fn nearest(&self, name: &str) -> Option<String> {
        let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        let back = |text: &str| text.chars().rev().collect::<String>();
        let likeness = |other: &&String| same(name, other) + same(&back(name), &back(other));
        self.tensors.keys().max_by_key(likeness).cloned()
    }
}

/// Maps a file for reading.
fn map(path: &Path) -> Result<Mmap, TensorError> {
    let failed = |source| TensorError::Read {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    // SAFETY: the mapping is read-only and private to this value. Another process that cuts the file
    // short while it is read ends this one with SIGBUS, which `TensorFile`'s documentation says.
    unsafe { Mmap::map(&file) }.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(shape: &[usize], strides: &[usize]) -> TensorLocation {
        TensorLocation {
            part: 0,
            element: Element::F32,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            start: 0,
        }
    }

    #[test]
    fn a_place_fits_only_when_its_last_number_does() {
        assert!(place(&[2, 3], &[3, 1]).fits(24));
        assert!(!place(&[2, 3], &[3, 1]).fits(23));
        assert!(place(&[2, 3], &[1, 2]).fits(24));
        assert!(!place(&[2, 3], &[10, 1]).fits(24));
        assert!(place(&[0, 3], &[3, 1]).fits(0));
        assert!(place(&[], &[]).fits(4) && !place(&[], &[]).fits(3));
    }

    #[test]
    fn wild_shapes_and_repetition_do_not_fit() {
        let huge = usize::MAX / 2;
        assert!(!place(&[huge, huge], &[1, 1]).fits(1 << 20));
        assert!(!place(&[2, 2], &[huge, huge]).fits(1 << 20));
        // One number a million times over: would take more memory than the file has bytes.
        assert!(!place(&[1_000_000], &[0]).fits(4));
    }
}
