//! Making a decoded file, sample by sample.
//!
//! Samples go straight to the file. Labels and texts, which come after all samples, are kept in unnamed
//! files meanwhile: however many there are, making a set takes no more memory than a few buffers.

use crate::DataError;
use crate::checksums;
use crate::columns::TableSchema;
use crate::content::{self, About};
use crate::dataset::StoredElement;
use crate::labels::{Decided, Labels};
use crate::layout::{ALIGN, DecodedLayout, Extent, Facts, Form, Identity};
use crate::target::TargetKind;
use lockstep_base::fs::AtomicFile;
use sha2::Sha256;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Bytes that are copied at once.
pub(crate) const BLOCK: usize = 64 << 10;

/// A decoded file that is being made.
#[derive(Debug)]
pub(crate) struct Builder {
    file: AtomicFile,
    target: PathBuf,
    form: Option<(StoredElement, [usize; 3])>,
    /// Bytes written to the file.
    written: usize,
    labels: Labels,
    weights: Spill,
    groups: Groups,
    names: SpilledTexts,
    skipped: SpilledTexts,
    /// The columns of a table, as one text; none without.
    columns: Vec<String>,
    /// What makes the numbers of a table stand for something else.
    meaning: Option<String>,
}

impl Builder {
    /// Begins the file `target`, whose folder exists.
    pub(crate) fn new(target: &Path) -> Result<Builder, DataError> {
        let folder = target.parent().unwrap_or(Path::new("."));
        let texts = || {
            Ok::<_, DataError>(SpilledTexts {
                ends: Spill::new(folder)?,
                bytes: Spill::new(folder)?,
            })
        };
        Ok(Builder {
            // Not synced: the trailer tells if it is whole.
            file: AtomicFile::create(target)?,
            target: target.to_owned(),
            form: None,
            written: 0,
            labels: Labels::new(folder)?,
            weights: Spill::new(folder)?,
            groups: Groups::new(folder)?,
            names: texts()?,
            skipped: texts()?,
            columns: Vec::new(),
            meaning: None,
        })
    }

    /// Says what a sample is. Comes before the first of them.
    pub(crate) fn begin(&mut self, element: StoredElement, shape: [usize; 3]) {
        self.form = Some((element, shape));
    }

    /// Says which columns of a table the numbers of a sample come from.
    pub(crate) fn table(&mut self, schema: &TableSchema) {
        self.columns = vec![serde_json::to_string(schema).expect("columns are plain data")];
        self.meaning = schema.meaning();
    }

    /// Takes the next piece of the samples, as they are stored.
    pub(crate) fn samples(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        lockstep_base::progress::advance();
        self.written += bytes.len();
        let written = self.file.write_all(bytes);
        written.map_err(DataError::io("write", &self.target))
    }

    /// Takes the next labels, as native `u32`, of a set whose classes are numbers.
    pub(crate) fn labels(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        let written = self.labels.classes(bytes);
        written.map_err(DataError::io("write", &self.target))
    }

    /// Takes the label of the next sample, in a set whose classes have names. `path` says where the
    /// sample lies, for the error that there are too many classes.
    pub(crate) fn class(
        &mut self,
        class: &str,
        path: &dyn Fn() -> String,
    ) -> Result<(), DataError> {
        let written = self.labels.text(class, path)?;
        written.map_err(DataError::io("write", &self.target))
    }

    /// Says what will be predicted, if that is known, and from which columns it comes. Comes before the first
    /// sample of a set that does not have classes, or where that is to be found out.
    pub(crate) fn expect(&mut self, wanted: Option<TargetKind>, columns: Vec<String>) {
        self.labels.expect(wanted, columns);
    }

    /// Says what will be predicted, and what the classes or the numbers are called, if they have names. Comes before the
    /// first sample of a set whose classes are known by their numbers.
    pub(crate) fn expect_known(&mut self, kind: TargetKind, names: Vec<String>) {
        self.labels.expect_known(kind, names);
    }

    /// Says that it is not known what is to be predicted of the samples, which a model says `kind` of. Comes
    /// before the first of them.
    pub(crate) fn expect_nothing(&mut self, kind: TargetKind) {
        self.labels.expect_nothing(kind);
    }

    /// Takes numbers to predict, as many for each sample as there are columns.
    pub(crate) fn numbers(&mut self, numbers: &[f32]) -> Result<(), DataError> {
        let mut each = numbers.iter();
        let written = each.try_for_each(|&number| self.labels.number(number));
        written.map_err(DataError::io("write", &self.target))
    }

    /// Takes how much the next samples count. All samples have a weight, or none.
    pub(crate) fn weights(&mut self, weights: &[f32]) -> Result<(), DataError> {
        let mut each = weights.iter();
        let written = each.try_for_each(|weight| self.weights.write(&weight.to_ne_bytes()));
        written.map_err(DataError::io("write", &self.target))
    }

    /// Takes the group of the next sample. All samples have one, or none.
    pub(crate) fn group(&mut self, group: &str) -> Result<(), DataError> {
        let written = self.groups.push(group);
        written.map_err(DataError::io("write", &self.target))
    }

    /// Takes the name of the next sample. All samples have one, or none.
    pub(crate) fn name(&mut self, name: &str) -> Result<(), DataError> {
        let written = self.names.push(name);
        written.map_err(DataError::io("write", &self.target))
    }

    /// Notes that `path` was left out, and why.
    pub(crate) fn skip(&mut self, path: &str, reason: &str) -> Result<(), DataError> {
        let written = self
            .skipped
            .push(path)
            .and_then(|()| self.skipped.push(reason));
        written.map_err(DataError::io("write", &self.target))
    }

    /// Writes what comes after the samples, hashes it all and gives the file its name. Of a set whose classes
    /// are numbers, there are `numbered` of them, or as many as the largest label says.
    ///
    /// # Panics
    /// When there are not as many labels, and names if there are any, as samples, or none at all.
    pub(crate) fn finish(
        mut self,
        identity: Identity,
        numbered: Option<usize>,
    ) -> Result<(), DataError> {
        let (element, shape) = self.form.expect("a set has begun");
        let sample = shape.iter().product::<usize>() * element.size();
        let labels = self.labels.decide()?;
        let count = match labels.outputs {
            0 => self.written / sample,
            outputs => labels.spill.length / 4 / outputs,
        };
        assert!(
            count > 0 && self.written == count * sample,
            "one label a sample"
        );
        let names = self.names.extent();
        let weights = self.weights.length / 4;
        assert!(weights == 0 || weights == count, "one weight a sample");
        let groups = self.groups.spill.length / 4;
        assert!(groups == 0 || groups == count, "one group a sample");
        assert!(
            names.texts == 0 || names.texts == count,
            "one name a sample"
        );
        let layout = DecodedLayout::new(Form {
            element,
            count,
            shape,
            target: labels.target,
            outputs: labels.outputs,
            weighted: weights > 0,
            grouped: groups > 0,
            names,
            classes: Extent::of(&labels.names),
            skipped: self.skipped.extent(),
            columns: Extent::of(&self.columns),
        });
        // What is on the disk fits into the address space.
        let layout = layout.expect("a file that was written");
        let target = self.target.clone();
        let failed = DataError::io("write", &target);
        let names = match labels.target {
            TargetKind::Classes => labels.names.clone(),
            TargetKind::Numbers | TargetKind::Labels => Vec::new(),
        };
        let (kind, outputs) = (labels.target, labels.outputs);
        let largest = self.rest(labels).map_err(&failed)?;
        let about = About {
            form: &layout.form,
            classes: match (kind, names.len(), numbered) {
                _ if outputs == 0 => 0,
                (TargetKind::Classes, 0, Some(classes)) => classes,
                (TargetKind::Classes, 0, None) => largest as usize + 1,
                (_, named, _) => named,
            },
            names: &names,
            meaning: self.meaning.as_deref(),
        };
        let begun = about.begin();
        self.seal(&layout, identity, begun).map_err(failed)?;
        Ok(self.file.commit_unsynced()?)
    }

    /// Writes labels and texts; the largest label.
    fn rest(&mut self, labels: Decided) -> io::Result<u32> {
        let Decided {
            mut spill,
            names,
            places,
            ..
        } = labels;
        let mut out = Aligned {
            file: BufWriter::with_capacity(BLOCK, &mut self.file),
            at: self.written,
        };
        out.align()?;
        let mut largest = 0;
        spill.replay(|block| {
            for label in block.as_chunks().0 {
                let label = u32::from_ne_bytes(*label);
                let place = match &places[..] {
                    [] => label,
                    places => places[label as usize],
                };
                largest = largest.max(place);
                out.write(&place.to_ne_bytes())?;
            }
            Ok(())
        })?;
        out.align()?;
        self.weights.replay(|block| out.write(block))?;
        out.align()?;
        self.groups.spill.replay(|block| out.write(block))?;
        self.names.replay(&mut out)?;
        out.texts(&names)?;
        self.skipped.replay(&mut out)?;
        out.texts(&self.columns)?;
        out.file.flush()?;
        self.written = out.at;
        Ok(largest)
    }

    /// Writes the checksums of what was written, and the trailer.
    fn seal(
        &mut self,
        layout: &DecodedLayout,
        identity: Identity,
        begun: Sha256,
    ) -> io::Result<()> {
        let file = File::open(self.file.temporary())?;
        let before = [&layout.labels, &layout.weights, &layout.groups].map(Range::clone);
        let content = content::of_file(begun, &file, before, layout.samples.clone())?;
        let sums = checksums::of_file(&file, layout.summed())?;
        let sums: Vec<u8> = sums.into_iter().flat_map(u64::to_ne_bytes).collect();
        let facts = Facts {
            identity,
            content,
            sums: checksums::checksum(&sums),
        };
        let mut out = Aligned {
            file: BufWriter::with_capacity(BLOCK, &mut self.file),
            at: self.written,
        };
        out.align()?;
        out.write(&sums)?;
        out.align()?;
        let trailer = layout.trailer(&facts).map(u64::to_ne_bytes);
        out.write(trailer.as_flattened())?;
        out.file.flush()
    }
}

/// A file whose parts are aligned.
pub(crate) struct Aligned<'a> {
    pub(crate) file: BufWriter<&'a mut AtomicFile>,
    pub(crate) at: usize,
}

impl Aligned<'_> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len();
        self.file.write_all(bytes)
    }

    pub(crate) fn align(&mut self) -> io::Result<()> {
        self.write(&[0; ALIGN][..self.at.next_multiple_of(ALIGN) - self.at])
    }

    /// Writes a table of texts.
    fn texts(&mut self, texts: &[String]) -> io::Result<()> {
        self.align()?;
        let mut end = 0;
        for text in texts {
            end += text.len() as u64;
            self.write(&end.to_ne_bytes())?;
        }
        self.align()?;
        texts
            .iter()
            .try_for_each(|text| self.write(text.as_bytes()))
    }
}

/// The groups of samples, numbered as they come.
#[derive(Debug)]
struct Groups {
    numbers: HashMap<String, u32>,
    spill: Spill,
}

impl Groups {
    fn new(folder: &Path) -> Result<Self, DataError> {
        Ok(Self {
            numbers: HashMap::new(),
            spill: Spill::new(folder)?,
        })
    }

    fn push(&mut self, group: &str) -> io::Result<()> {
        let next = self.numbers.len() as u32;
        let number = match self.numbers.get(group) {
            Some(&number) => number,
            None => *self.numbers.entry(group.to_owned()).or_insert(next),
        };
        self.spill.write(&number.to_ne_bytes())
    }
}

/// Texts in the form of a table, set aside.
#[derive(Debug)]
struct SpilledTexts {
    ends: Spill,
    bytes: Spill,
}

impl SpilledTexts {
    fn push(&mut self, text: &str) -> io::Result<()> {
        self.bytes.write(text.as_bytes())?;
        let end = self.bytes.length as u64;
        self.ends.write(&end.to_ne_bytes())
    }

    fn extent(&self) -> Extent {
        Extent {
            texts: self.ends.length / 8,
            bytes: self.bytes.length,
        }
    }

    fn replay(&mut self, out: &mut Aligned<'_>) -> io::Result<()> {
        for part in [&mut self.ends, &mut self.bytes] {
            out.align()?;
            part.replay(|block| out.write(block))?;
        }
        Ok(())
    }
}

/// Bytes that are set aside on the disk, in a file without a name.
#[derive(Debug)]
pub(crate) struct Spill {
    file: BufWriter<File>,
    pub(crate) length: usize,
}

impl Spill {
    pub(crate) fn new(folder: &Path) -> Result<Spill, DataError> {
        let file = tempfile::tempfile_in(folder).map_err(DataError::io("write", folder))?;
        Ok(Spill {
            file: BufWriter::new(file),
            length: 0,
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len();
        self.file.write_all(bytes)
    }

    /// Hands all bytes on, in blocks of whole words.
    pub(crate) fn replay(
        &mut self,
        mut sink: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.rewind()?;
        let mut block = vec![0; BLOCK];
        let mut left = self.length;
        while left > 0 {
            let part = left.min(BLOCK);
            file.read_exact(&mut block[..part])?;
            sink(&block[..part])?;
            left -= part;
        }
        Ok(())
    }
}
