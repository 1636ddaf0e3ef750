//! A set as a pair of IDX files: one of samples, one of labels.
//!
//! Samples are numbers (`[n]`), rows (`[n, length]`), grey images (`[n, height, width]`) or images
//! with channels (`[n, height, width, channels]`), which is also how they lie in the decoded cache.

use crate::DataError;
use crate::builder::Builder;
use crate::convert::Converter;
use crate::dataset::StoredElement;
use crate::decoded::Recipe;
use crate::idx::{IdxReader, IdxType};
use crate::layout::MOST_CHANNELS;
use crate::stamp::{Stamp, whole};
use std::path::{Path, PathBuf};

/// The two files of a set.
#[derive(Debug)]
pub(crate) struct IdxPair {
    pub(crate) images: PathBuf,
    pub(crate) labels: PathBuf,
}

impl Recipe for IdxPair {
    fn reader(&self) -> &'static str {
        "idx"
    }

    fn roots(&self) -> Result<Vec<Vec<u8>>, DataError> {
        Ok(vec![whole(&self.images)?, whole(&self.labels)?])
    }

    fn stamp(&self, stamp: &mut Stamp) -> Result<(), DataError> {
        stamp.file(&self.images)?;
        stamp.file(&self.labels)
    }

    fn labels_file(&self) -> &Path {
        &self.labels
    }

    fn decode(&self, out: &mut Builder) -> Result<(), DataError> {
        let (images, labels) = (
            IdxReader::open(&self.images)?,
            IdxReader::open(&self.labels)?,
        );
        let (element, shape) = form_of(&images, &labels)?;
        out.begin(element, shape);
        let mut converter = Converter::new(&self.labels, labels.header().element, 1);
        labels.for_each_block(|block| out.labels(converter.labels(block)?))?;
        let sample_len = shape.iter().product();
        let mut converter = Converter::new(&self.images, images.header().element, sample_len);
        images.for_each_block(|block| out.samples(converter.samples(block)?))
    }
}

/// What a sample is by a pair of headers, if they fit each other.
fn form_of(
    images: &IdxReader,
    labels: &IdxReader,
) -> Result<(StoredElement, [usize; 3]), DataError> {
    let unfit = |reader: &IdxReader, role, reason: &str| DataError::Unfit {
        path: reader.path().to_owned(),
        role,
        reason: match reader.header().dims.len() {
            1 => format!("it has 1 dimension; {reason}"),
            dims => format!("it has {dims} dimensions; {reason}"),
        },
    };
    let (count, labels_count) = (images.header().count(), labels.header().count());
    if labels.header().dims.len() != 1 {
        return Err(unfit(labels, "labels", "labels have 1, one label a sample"));
    }
    if let float @ (IdxType::F32 | IdxType::F64) = labels.header().element {
        return Err(DataError::Unfit {
            path: labels.path().to_owned(),
            role: "labels",
            reason: format!("labels must be integers, found {float:?}"),
        });
    }
    let shape = match images.header().dims[1..] {
        [] => [1, 1, 1],
        [length] => [1, 1, length],
        [height, width] => [1, height, width],
        [height, width, channels] if channels <= MOST_CHANNELS => [channels, height, width],
        [a, b, c] => {
            return Err(DataError::Unfit {
                path: images.path().to_owned(),
                role: "images",
                reason: format!(
                    "its images are {a} x {b} x {c}; they must be height x width x channels, with 1 to \
                     {MOST_CHANNELS} channels"
                ),
            });
        }
        _ => {
            return Err(unfit(
                images,
                "images",
                "images have at most 4: samples, height, width, channels",
            ));
        }
    };
    if count != labels_count {
        let (images, labels) = (images.path().to_owned(), labels.path().to_owned());
        return Err(DataError::CountMismatch {
            images,
            images_count: count,
            labels,
            labels_count,
        });
    }
    if count == 0 || shape.contains(&0) {
        return Err(unfit(images, "images", "none of them may be 0"));
    }
    let element = if images.header().element == IdxType::U8 {
        StoredElement::U8
    } else {
        StoredElement::F32
    };
    let elements = shape
        .iter()
        .try_fold(count, |all, &dim| all.checked_mul(dim));
    match elements.and_then(|elements| elements.checked_mul(element.size())) {
        Some(_) => Ok((element, shape)),
        None => Err(DataError::TooLarge {
            path: images.path().to_owned(),
            dims: images.header().dims.clone(),
            stored: images.stored(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn shape(images: PathBuf, labels: PathBuf) -> Result<[usize; 3], DataError> {
        let (images, labels) = (IdxReader::open(&images)?, IdxReader::open(&labels)?);
        Ok(form_of(&images, &labels)?.1)
    }

    #[test]
    fn samples_may_have_up_to_three_dimensions_with_channels_last() {
        let folder = Folder::new();
        for (dims, expected) in [
            (&[12][..], [1, 1, 1]),
            (&[2, 6], [1, 1, 6]),
            (&[2, 3, 2], [1, 3, 2]),
            (&[2, 3, 1, 2], [2, 3, 1]),
            (&[1, 1, 3, 4], [4, 1, 3]),
        ] {
            let labels = folder.labels(&vec![0; dims[0] as usize]);
            let found = shape(folder.idx(8, dims, &[0; 12]), labels).unwrap();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn images_with_channels_first_are_refused_with_what_would_be_right() {
        let folder = Folder::new();
        let images = folder.idx(8, &[2, 3, 5, 6], &[0; 180]);
        let error = shape(images, folder.labels(&[0, 1])).unwrap_err();
        let expected = "its images are 3 x 5 x 6; they must be height x width x channels, with 1 to 4 channels";
        assert!(error.to_string().ends_with(expected), "{error}");
    }

    #[test]
    fn files_that_do_not_fit_their_role_or_each_other_are_refused() {
        let folder = Folder::new();
        let refusal = |images: &Path, labels: &Path| {
            shape(images.to_owned(), labels.to_owned())
                .unwrap_err()
                .to_string()
        };
        let (images, labels) = (folder.idx(8, &[2, 1], &[0; 2]), folder.labels(&[0, 1]));
        let swapped = refusal(&labels, &images);
        assert!(
            swapped.contains("as labels") && swapped.contains("2 dimensions"),
            "{swapped}"
        );
        let floats = refusal(&images, &folder.idx(0x0d, &[2], &[0; 8]));
        assert!(
            floats.ends_with("labels must be integers, found F32"),
            "{floats}"
        );
        let deep = refusal(&folder.idx(8, &[2, 1, 1, 1, 1], &[0; 2]), &labels);
        assert!(deep.contains("5 dimensions"), "{deep}");
        let none = refusal(&folder.idx(8, &[0, 28, 28], &[]), &folder.labels(&[]));
        assert!(none.contains("none of them may be 0"), "{none}");
        let no_channels = refusal(&folder.idx(8, &[2, 3, 3, 0], &[]), &labels);
        assert!(
            no_channels.contains("none of them may be 0"),
            "{no_channels}"
        );
        let fewer = refusal(&images, &folder.labels(&[0, 1, 0]));
        assert!(
            fewer.contains("2 images") && fewer.contains("3 labels"),
            "{fewer}"
        );
    }
}
