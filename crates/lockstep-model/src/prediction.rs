//! What a model says of samples.

use lockstep_base::math::Softmax;
use lockstep_data::TargetKind;

/// How many of the most probable classes are looked at for top-5 accuracy.
const TOP: usize = 5;

/// What a model says of one sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The number of the most probable class; of equally probable ones the first.
    pub class: u32,
    /// Its probability.
    pub probability: f32,
    /// Whether the sample's own class is among the five most probable.
    pub in_top5: bool,
}

impl Prediction {
    /// From the scores of one row and what they have in common. A `label` that is not a class of the model
    /// is never among the most probable.
    pub fn of(scores: &[f32], softmax: &Softmax, label: u32) -> Self {
        let label = label as usize;
        let in_top5 = scores.get(label).is_some_and(|own| {
            let before =
                |(class, score): (usize, &f32)| score > own || (score == own && class < label);
            let better = scores.iter().enumerate();
            better.filter(|&class| before(class)).count() < TOP
        });
        Self {
            class: softmax.best as u32,
            probability: softmax.probability(scores[softmax.best]) as f32,
            in_top5,
        }
    }

    /// As numbers that a collective carries.
    fn pack(self) -> [f64; 2] {
        let class = f64::from(self.class) * 2.0 + f64::from(u8::from(self.in_top5));
        [class, f64::from(self.probability)]
    }

    /// From such numbers.
    fn unpack([class, probability]: [f64; 2]) -> Self {
        let class = class as u64;
        Self {
            class: (class / 2) as u32,
            probability: probability as f32,
            in_top5: class % 2 == 1,
        }
    }
}

/// What a model says of some samples, in their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Predictions {
    /// The class of each.
    Classes(Vec<Prediction>),
    /// The numbers of each, in the units of the set; of labels, how probable each is.
    Numbers {
        /// How many a sample has.
        width: usize,
        /// Sample after sample.
        values: Vec<f32>,
    },
}

/// What comes out of a model for one sample.
#[derive(Clone, Copy)]
pub enum RowOutput<'a> {
    /// The scores of its classes, what they have in common, and its own class.
    Class(&'a [f32], &'a Softmax, u32),
    /// Numbers, as [`Predictions::Numbers`] has them.
    Numbers(&'a [f32]),
}

impl Predictions {
    /// None yet, of a model with so many outputs of this kind.
    pub fn new(kind: TargetKind, outputs: usize) -> Self {
        match kind {
            TargetKind::Classes => Self::Classes(Vec::new()),
            TargetKind::Numbers | TargetKind::Labels => Self::Numbers {
                width: outputs,
                values: Vec::new(),
            },
        }
    }

    /// None, of the same kind.
    pub fn empty(&self) -> Self {
        match self {
            Self::Classes(_) => Self::Classes(Vec::new()),
            Self::Numbers { width, .. } => Self::Numbers {
                width: *width,
                values: Vec::new(),
            },
        }
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.len(),
            Self::Numbers { width, values } => values.len() / width,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in what is said of the next sample.
    ///
    /// # Panics
    /// When it is of another kind than what was said before.
    pub fn push(&mut self, said: RowOutput<'_>) {
        match (self, said) {
            (Self::Classes(classes), RowOutput::Class(scores, softmax, label)) => {
                classes.push(Prediction::of(scores, softmax, label));
            }
            (Self::Numbers { values, .. }, RowOutput::Numbers(numbers)) => values.extend(numbers),
            _ => unreachable!("a model says one kind of thing"),
        }
    }

    /// How many numbers a collective carries of a sample.
    pub fn width(&self) -> usize {
        match self {
            Self::Classes(_) => 2,
            Self::Numbers { width, .. } => *width,
        }
    }

    /// As numbers that a collective carries.
    pub fn pack(&self) -> Vec<f64> {
        match self {
            Self::Classes(classes) => classes.iter().flat_map(|class| class.pack()).collect(),
            Self::Numbers { values, .. } => values.iter().map(|&x| f64::from(x)).collect(),
        }
    }

    /// Takes in the next sample from such numbers.
    pub fn unpack(&mut self, numbers: &[f64]) {
        match self {
            Self::Classes(classes) => {
                classes.push(Prediction::unpack([numbers[0], numbers[1]]));
            }
            Self::Numbers { values, .. } => values.extend(numbers.iter().map(|&x| x as f32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scores: &[f32], label: u32) -> Prediction {
        Prediction::of(scores, &Softmax::of(scores), label)
    }

    #[test]
    fn the_first_of_the_most_probable_classes_is_predicted() {
        let prediction = of(&[0.0, 2.0, 2.0, -1.0], 3);
        assert_eq!(prediction.class, 1);
        let e = std::f64::consts::E;
        let expected = e * e / (1.0 + 2.0 * e * e + 1.0 / e);
        assert!((f64::from(prediction.probability) - expected).abs() < 1e-7);
    }

    #[test]
    fn five_classes_count_and_the_sixth_does_not() {
        let scores = [6.0, 5.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let in_top5: Vec<bool> = (0..8).map(|label| of(&scores, label).in_top5).collect();
        let expected = [true, true, true, true, true, false, false, false];
        assert_eq!(in_top5, expected);
    }

    #[test]
    fn a_prediction_survives_the_exchange() {
        for in_top5 in [true, false] {
            let prediction = Prediction {
                class: 65_535,
                probability: 0.123_456_79,
                in_top5,
            };
            assert_eq!(Prediction::unpack(prediction.pack()), prediction);
        }
    }
}
