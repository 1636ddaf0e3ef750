//! The form of a decoded file: the samples, the labels, four tables of texts, the checksums of all that, then
//! a trailer with the checksum of these and the hash of the set's content.
//!
//! The trailer says all of it, so a file that is torn, damaged, of another version or made from other
//! files is told from a good one by its last bytes and its length. It comes last because how many
//! samples there are may only be known when all have been decoded.

use crate::checksums;
use crate::content::ContentHash;
use crate::dataset::StoredElement;
use crate::target::TargetKind;
use sha2::{Digest, Sha256};
use std::ops::Range;

/// "lockstep" as a number; read in another byte order it is another number.
const MAGIC: u64 = 0x6c6f_636b_7374_6570;
/// Changes whenever the format or the meaning of a decoded file does. 2: channels are innermost.
/// 3: the samples come first, and there are names, classes and what was left out. 4: what is to be predicted
/// may be numbers or labels instead of a class. 5: checksums of all blocks, and the hash of the content. 6: the
/// columns of a table. 7: what these hold, and weights. 8: groups. 9: days and
/// months are in the order of their column, and labels have no gaps. 10: one wrong cell does not make a column of dates a
/// category, and many whole numbers are numbers to predict.
const VERSION: u64 = 10;
/// Parts begin at multiples of this.
pub(crate) const ALIGN: usize = 64;
/// Numbers of a trailer.
pub(crate) const FIELDS: usize = 34;
/// Numbers of a pixel: grey or depth, two of anything, colours, colours with transparency. Vectors, which
/// are one pixel of many channels, may have more.
pub(crate) const MOST_CHANNELS: usize = 4;

/// What tells whether a decoded file was made from the files as they are now.
pub(crate) type Identity = [u64; 4];

/// What a decoded file holds, in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) element: StoredElement,
    pub(crate) count: usize,
    /// Channels, height, width. In the file, the channels of a pixel lie beside each other.
    pub(crate) shape: [usize; 3],
    pub(crate) target: TargetKind,
    /// Numbers that a sample's target has: 1 if it is a class, 0 if it is not known.
    pub(crate) outputs: usize,
    /// Whether samples have weights.
    pub(crate) weighted: bool,
    /// Whether samples belong to groups.
    pub(crate) grouped: bool,
    pub(crate) names: Extent,
    /// The classes, or the columns of what is to be predicted instead.
    pub(crate) classes: Extent,
    /// Path and reason in turn.
    pub(crate) skipped: Extent,
    /// The columns of a table that a sample's numbers come from, as one text.
    pub(crate) columns: Extent,
}

/// The size of a table of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Extent {
    pub(crate) texts: usize,
    /// Bytes of all of them.
    pub(crate) bytes: usize,
}

impl Extent {
    pub(crate) fn of(texts: &[String]) -> Extent {
        Extent {
            texts: texts.len(),
            bytes: texts.iter().map(String::len).sum(),
        }
    }
}

/// Where the parts of a decoded file lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodedLayout {
    pub(crate) form: Form,
    pub(crate) samples: Range<usize>,
    pub(crate) labels: Range<usize>,
    /// How much each sample counts; nothing if all do alike.
    pub(crate) weights: Range<usize>,
    /// The group of each sample; nothing if there are none.
    pub(crate) groups: Range<usize>,
    pub(crate) names: Texts,
    pub(crate) classes: Texts,
    pub(crate) skipped: Texts,
    pub(crate) columns: Texts,
    /// The checksums of all that comes before them.
    pub(crate) sums: Range<usize>,
    trailer: Range<usize>,
}

/// What a decoded file knows of itself beside its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// What it was made from.
    pub(crate) identity: Identity,
    pub(crate) content: ContentHash,
    /// The checksum of the table of checksums.
    pub(crate) sums: u64,
}

/// Where a table of texts lies: where each ends, then their bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) ends: Range<usize>,
    pub(crate) bytes: Range<usize>,
}

impl DecodedLayout {
    /// Where the parts of a file of this form lie; `None` if it exceeds the address space.
    pub(crate) fn new(form: Form) -> Option<DecodedLayout> {
        let elements = form
            .shape
            .iter()
            .try_fold(form.count, |all, &dim| all.checked_mul(dim))?;
        let mut end = 0usize;
        let mut part = |items: usize, size: usize| {
            let begin = end.checked_next_multiple_of(ALIGN)?;
            end = begin.checked_add(items.checked_mul(size)?)?;
            Some(begin..end)
        };
        let samples = part(elements, form.element.size())?;
        let labels = part(form.count.checked_mul(form.outputs)?, 4)?;
        let weights = part(form.count * usize::from(form.weighted), 4)?;
        let groups = part(form.count * usize::from(form.grouped), 4)?;
        let mut texts = |extent: Extent| {
            Some(Texts {
                ends: part(extent.texts, 8)?,
                bytes: part(extent.bytes, 1)?,
            })
        };
        let (names, classes) = (texts(form.names)?, texts(form.classes)?);
        let (skipped, columns) = (texts(form.skipped)?, texts(form.columns)?);
        let sums = part(checksums::blocks(columns.bytes.end), 8)?;
        Some(DecodedLayout {
            samples,
            labels,
            weights,
            groups,
            names,
            classes,
            skipped,
            columns,
            sums,
            trailer: part(FIELDS, 8)?,
            form,
        })
    }

    /// The bytes that have checksums: all parts but the checksums themselves and the trailer.
    pub(crate) fn summed(&self) -> usize {
        self.columns.bytes.end
    }

    pub(crate) fn trailer(&self, facts: &Facts) -> [u64; FIELDS] {
        let Form {
            element,
            count,
            shape: [channels, height, width],
            target,
            outputs,
            weighted,
            grouped,
            names,
            classes,
            skipped,
            columns,
        } = self.form;
        let numbers = [
            count,
            channels,
            height,
            width,
            names.texts,
            names.bytes,
            classes.texts,
            classes.bytes,
            skipped.texts,
            skipped.bytes,
            self.trailer.end,
            target as usize,
            outputs,
        ];
        let mut fields = [0; FIELDS];
        fields[..2].copy_from_slice(&[MAGIC, VERSION]);
        fields[2..6].copy_from_slice(&facts.identity);
        fields[6] = element as u64;
        fields[7..20].copy_from_slice(&numbers.map(|number| number as u64));
        fields[20..24].copy_from_slice(&words(&facts.content.head));
        fields[24..28].copy_from_slice(&words(&facts.content.whole));
        fields[28] = facts.sums;
        fields[29..31].copy_from_slice(&[columns.texts as u64, columns.bytes as u64]);
        fields[31..33].copy_from_slice(&[u64::from(weighted), u64::from(grouped)]);
        fields[FIELDS - 1] = checksum(&fields);
        fields
    }

    /// The layout of the file `bytes`, if it is whole, and what it says of itself.
    pub(crate) fn read(bytes: &[u8]) -> Option<(DecodedLayout, Facts)> {
        let at = bytes.len().checked_sub(FIELDS * 8)?;
        let fields = bytes[at..].as_chunks().0;
        let fields: [u64; FIELDS] = std::array::from_fn(|i| u64::from_ne_bytes(fields[i]));
        let number = |i: usize| fields[i] as usize;
        let extent = |i| Extent {
            texts: number(i),
            bytes: number(i + 1),
        };
        let layout = DecodedLayout::new(Form {
            element: StoredElement::ALL
                .into_iter()
                .find(|known| *known as u64 == fields[6])?,
            count: number(7),
            shape: [number(8), number(9), number(10)],
            target: TargetKind::ALL
                .into_iter()
                .find(|known| *known as u64 == fields[18])?,
            outputs: number(19),
            weighted: fields[31] == 1,
            grouped: fields[32] == 1,
            names: extent(11),
            classes: extent(13),
            skipped: extent(15),
            columns: extent(29),
        })?;
        let facts = Facts {
            identity: std::array::from_fn(|i| fields[2 + i]),
            content: ContentHash {
                head: hash_of(&fields[20..24]),
                whole: hash_of(&fields[24..28]),
            },
            sums: fields[28],
        };
        let [channels, height, width] = layout.form.shape;
        let pixels = channels <= MOST_CHANNELS || (height, width) == (1, 1);
        let fits = channels > 0
            && pixels
            && layout.form.count > 0
            && layout.trailer(&facts) == fields
            && layout.trailer.end == bytes.len()
            && checksums::checksum(bytes.get(layout.sums.clone())?) == facts.sums;
        fits.then_some((layout, facts))
    }

    /// The last number of the trailer, which no other file's is.
    pub(crate) fn version(&self, facts: &Facts) -> u64 {
        self.trailer(facts)[FIELDS - 1]
    }
}

/// A hash as numbers.
pub(crate) fn words(hash: &[u8; 32]) -> [u64; 4] {
    let words = hash.as_chunks().0;
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// The hash that [`words`] are of.
fn hash_of(words: &[u64]) -> [u8; 32] {
    std::array::from_fn(|i| words[i / 8].to_le_bytes()[i % 8])
}

/// A sum of all fields but the last, which is for it: parts are aligned, so that not every wrong number
/// would make the file another length.
fn checksum(fields: &[u64; FIELDS]) -> u64 {
    let mut sum = Sha256::new();
    for field in &fields[..FIELDS - 1] {
        sum.update(field.to_le_bytes());
    }
    let sum = sum.finalize();
    u64::from_le_bytes(std::array::from_fn(|i| sum[i]))
}

impl Texts {
    /// Text `index` of the table in the file `bytes`; `None` if there is none or it is damaged.
    pub(crate) fn get<'a>(&self, bytes: &'a [u8], index: usize) -> Option<&'a str> {
        let ends = bytes.get(self.ends.clone())?.as_chunks().0;
        let end = |index: usize| Some(u64::from_ne_bytes(*ends.get(index)?) as usize);
        let begin = index.checked_sub(1).map_or(Some(0), end)?;
        let text = bytes.get(self.bytes.clone())?.get(begin..end(index)?)?;
        std::str::from_utf8(text).ok()
    }

    /// All texts, if none is damaged.
    pub(crate) fn all(&self, bytes: &[u8]) -> Option<Vec<String>> {
        let texts = 0..self.ends.len() / 8;
        texts
            .map(|i| self.get(bytes, i).map(str::to_owned))
            .collect()
    }
}
