//! What is to be predicted, set aside while a set is decoded: classes or numbers, whichever they turn out to be.
//!
//! Where nobody said which, one column is taken for numbers if every value is one, and some value is written as
//! a decimal or there are too many different ones for classes. It is taken for classes otherwise. Several columns are
//! taken for labels if every value is 0 or 1, and for numbers otherwise. That is only known after the last value, so
//! both are kept until then.

use crate::DataError;
use crate::builder::Spill;
use crate::classes::ClassTable;
use crate::convert::MOST_CLASSES;
use crate::target::TargetKind;
use std::io;
use std::path::Path;

/// The targets of a set, as they come.
#[derive(Debug)]
pub(crate) struct Labels {
    /// What they are; `None` if that is to be found out.
    wanted: Option<TargetKind>,
    /// Whether they are not known: none will come.
    unknown: bool,
    /// The columns that they come from, where those have names.
    columns: Vec<String>,
    /// The names of the classes, where they are known before.
    classes_known: Option<Vec<String>>,
    /// Nothing once there were too many.
    classes: Option<Spill>,
    table: ClassTable,
    /// Nothing once a value was none.
    numbers: Option<Spill>,
    /// Whether all numbers so far are written as whole ones, or are 0 and 1.
    whole: bool,
    flags: bool,
    /// How many texts came, how many of them are numbers, and which is the first that is none.
    texts: u64,
    written_numbers: u64,
    no_number: Option<NoNumber>,
}

/// A label that is not a number.
#[derive(Debug)]
struct NoNumber {
    text: String,
    path: String,
    row: u64,
}

/// The most classes that may be numbers but for one of them, which would else be a mistake.
const FEW_CLASSES: usize = 20;

/// The most whole numbers that are classes where nobody said so, unless they are 0 or 1 and all that follow.
pub(crate) const MOST_WHOLE_CLASSES: usize = 256;

/// What the targets came to.
pub(crate) struct Decided {
    pub(crate) target: TargetKind,
    /// Numbers of a sample's target; 0 if that is not known.
    pub(crate) outputs: usize,
    pub(crate) spill: Spill,
    /// Of the classes, if they have names, or of the columns.
    pub(crate) names: Vec<String>,
    /// For each number that was given to a class, its place among them all; empty if it stays.
    pub(crate) places: Vec<u32>,
}

impl Labels {
    /// Of classes, unless [`Labels::expect`] says otherwise.
    pub(crate) fn new(folder: &Path) -> Result<Self, DataError> {
        Ok(Self {
            wanted: Some(TargetKind::Classes),
            unknown: false,
            columns: Vec::new(),
            classes_known: None,
            classes: Some(Spill::new(folder)?),
            table: ClassTable::default(),
            numbers: Some(Spill::new(folder)?),
            whole: true,
            flags: true,
            texts: 0,
            written_numbers: 0,
            no_number: None,
        })
    }

    /// Says what is to come, if that is known, and from which columns. Comes before the first target.
    pub(crate) fn expect(&mut self, wanted: Option<TargetKind>, columns: Vec<String>) {
        self.wanted = wanted;
        self.columns = columns;
    }

    /// Says what is to come, and what the classes or the numbers are called, if they have names: classes come by their
    /// numbers.
    pub(crate) fn expect_known(&mut self, kind: TargetKind, names: Vec<String>) {
        match kind {
            TargetKind::Classes => {
                self.expect(Some(kind), Vec::new());
                self.classes_known = Some(names);
            }
            TargetKind::Numbers | TargetKind::Labels => self.expect(Some(kind), names),
        }
    }

    /// Says that none is to come of samples that a model says `kind` of.
    pub(crate) fn expect_nothing(&mut self, kind: TargetKind) {
        self.expect(Some(kind), Vec::new());
        self.unknown = true;
    }

    /// Takes the next classes, as native `u32`.
    pub(crate) fn classes(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.classes {
            Some(classes) => classes.write(bytes),
            None => Ok(()),
        }
    }

    /// Takes the next target as text: the name of a class, or perhaps a number. `path` says where the sample
    /// lies, for the error that there are too many classes.
    pub(crate) fn text(
        &mut self,
        text: &str,
        path: &dyn Fn() -> String,
    ) -> Result<io::Result<()>, DataError> {
        if self.wanted.is_none() {
            let number = text.trim().parse::<f64>().ok();
            let number = number.filter(|&number| (number as f32).is_finite());
            self.texts += 1;
            match number {
                Some(number) => {
                    self.written_numbers += 1;
                    self.whole &= !text.contains(['.', 'e', 'E']);
                    if let Err(error) = self.number(number as f32) {
                        return Ok(Err(error));
                    }
                }
                None => {
                    self.numbers = None;
                    self.no_number.get_or_insert_with(|| NoNumber {
                        text: text.to_owned(),
                        path: path(),
                        row: self.texts,
                    });
                }
            }
            if self.classes.is_none() && self.numbers.is_none() {
                let error = DataError::TooManyClasses {
                    path: path(),
                    class: text.to_owned(),
                    most: MOST_CLASSES,
                };
                return Err(self.mistake().unwrap_or(error));
            }
        }
        let class = match self.table.label(text, path) {
            Ok(class) => class,
            // More than there can be classes of, but they may be numbers.
            Err(_) if self.wanted.is_none() && self.numbers.is_some() => {
                self.classes = None;
                return Ok(Ok(()));
            }
            Err(error) => return Err(self.mistake().unwrap_or(error)),
        };
        Ok(self.classes(&class.to_ne_bytes()))
    }

    /// The label that is none of the decimals which nearly all others are.
    fn mistake(&mut self) -> Option<DataError> {
        let nearly_all = self.written_numbers * 10 >= self.texts * 9;
        let are_decimals = nearly_all && !self.whole && self.table.len() > FEW_CLASSES;
        let odd = self.no_number.take().filter(|_| are_decimals)?;
        Some(DataError::NoNumber {
            path: odd.path,
            row: odd.row,
            found: odd.text,
        })
    }

    /// Whether numbers in one column are meant as such, and not as names of classes.
    fn are_quantities(&self) -> bool {
        let many = self.table.len() > MOST_WHOLE_CLASSES && !self.table.are_consecutive();
        !self.whole || self.classes.is_none() || many
    }

    /// Takes the next number.
    pub(crate) fn number(&mut self, number: f32) -> io::Result<()> {
        self.flags &= number == 0.0 || number == 1.0;
        match &mut self.numbers {
            Some(numbers) => numbers.write(&number.to_ne_bytes()),
            None => Ok(()),
        }
    }

    /// What they all came to.
    ///
    /// # Errors
    /// When nearly all are decimals, but not all: one that is none is more likely a mistake than a class.
    pub(crate) fn decide(&mut self) -> Result<Decided, DataError> {
        if let Some(mistake) = self.mistake() {
            return Err(mistake);
        }
        let several = self.columns.len() > 1;
        let target = self.wanted.unwrap_or(match self.numbers {
            Some(_) if several && self.flags => TargetKind::Labels,
            Some(_) if several || self.are_quantities() => TargetKind::Numbers,
            _ => TargetKind::Classes,
        });
        let spill = match target {
            TargetKind::Classes => self.classes.take(),
            TargetKind::Numbers | TargetKind::Labels => self.numbers.take(),
        };
        let (names, places) = match target {
            TargetKind::Classes => match self.classes_known.take() {
                Some(names) => (names, Vec::new()),
                None => std::mem::take(&mut self.table).sorted(),
            },
            TargetKind::Numbers | TargetKind::Labels => {
                (std::mem::take(&mut self.columns), Vec::new())
            }
        };
        Ok(Decided {
            target,
            outputs: match target {
                _ if self.unknown => 0,
                TargetKind::Classes => 1,
                TargetKind::Numbers | TargetKind::Labels => names.len(),
            },
            spill: spill.expect("what was decided on was kept"),
            names,
            places,
        })
    }
}
