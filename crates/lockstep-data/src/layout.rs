//! The form of a decoded file: a header, the labels, then the samples.
//!
//! The header says all of it, so a file that is torn, damaged, of another version or made from other
//! files is told from a good one by its first bytes and its length.

use crate::dataset::Element;
use std::ops::Range;

/// "lockstep" as a number; read in another byte order it is another number.
const MAGIC: u64 = 0x6c6f_636b_7374_6570;
/// Changes whenever the format or the meaning of a decoded file does. 2: channels are innermost.
const VERSION: u64 = 2;
/// Parts begin at multiples of this.
pub(crate) const ALIGN: usize = 64;
/// Numbers of a header.
pub(crate) const FIELDS: usize = 16;
/// Numbers of a pixel: grey or depth, two of anything, colours, colours with transparency.
pub(crate) const MOST_CHANNELS: usize = 4;

/// What tells whether a decoded file was made from the files as they are now.
pub(crate) type Identity = [u64; 4];

/// The form of a decoded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) element: Element,
    pub(crate) count: usize,
    /// Channels, height, width. In the file, the channels of a pixel lie beside each other.
    pub(crate) shape: [usize; 3],
    pub(crate) labels: Range<usize>,
    pub(crate) samples: Range<usize>,
}

impl Layout {
    /// The form for `count` samples of `shape`; `None` if it exceeds the address space.
    pub(crate) fn new(element: Element, count: usize, shape: [usize; 3]) -> Option<Layout> {
        let elements = shape
            .iter()
            .try_fold(count, |all, &dim| all.checked_mul(dim))?;
        let labels_at = FIELDS * 8;
        let labels_end = labels_at.checked_add(count.checked_mul(4)?)?;
        let samples_at = labels_end.checked_next_multiple_of(ALIGN)?;
        let samples_end = samples_at.checked_add(elements.checked_mul(element.size())?)?;
        let (labels, samples) = (labels_at..labels_end, samples_at..samples_end);
        Some(Layout {
            element,
            count,
            shape,
            labels,
            samples,
        })
    }

    pub(crate) fn header(&self, identity: Identity) -> [u64; FIELDS] {
        let [a, b, c, d] = identity;
        let [channels, height, width] = self.shape.map(|dim| dim as u64);
        let (count, end) = (self.count as u64, self.samples.end as u64);
        let element = self.element as u64;
        [
            MAGIC, VERSION, a, b, c, d, element, count, channels, height, width, end, 0, 0, 0, 0,
        ]
    }

    /// The form of the file `bytes`, if it is whole and was made from the files of `identity`.
    pub(crate) fn read(bytes: &[u8], identity: Identity) -> Option<Layout> {
        let fields = bytes.get(..FIELDS * 8)?.as_chunks().0;
        let fields: [u64; FIELDS] = std::array::from_fn(|i| u64::from_ne_bytes(fields[i]));
        let [
            _,
            _,
            _,
            _,
            _,
            _,
            element,
            count,
            channels,
            height,
            width,
            ..,
        ] = fields;
        let element = Element::ALL
            .into_iter()
            .find(|known| *known as u64 == element)?;
        let shape = [channels, height, width].map(|dim| dim as usize);
        let layout = Layout::new(element, count as usize, shape)?;
        let fits = (1..=MOST_CHANNELS).contains(&shape[0])
            && layout.header(identity) == fields
            && layout.samples.end == bytes.len();
        fits.then_some(layout)
    }
}
