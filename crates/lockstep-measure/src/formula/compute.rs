//! A bound formula at work.

use super::bind::FormulaSample;
use super::expression::Operator;
use super::function::{Aggregate, PerSample, power};

/// What is taken of a sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column {
    /// The number of its class.
    Label,
    /// The number of the class that was predicted.
    Predicted,
    /// The numbers that these are called by, class by class.
    LabelAs(Vec<f64>),
    PredictedAs(Vec<f64>),
    /// How probable the predicted class is.
    Probability,
    /// How probable this one of two classes is.
    ProbabilityOf(usize),
    /// What is right of an output.
    OutputLabel(usize),
    /// What was predicted of it.
    Output(usize),
    /// Whether it is more probable than not.
    OutputIsSaid(usize),
}

impl Column {
    fn of(&self, sample: FormulaSample<'_>) -> f64 {
        match sample {
            FormulaSample::Class {
                label,
                predicted,
                probability,
            } => {
                let named =
                    |numbers: &[f64], class: usize| numbers.get(class).copied().unwrap_or(f64::NAN);
                let probability = f64::from(probability);
                match self {
                    Self::Label => label as f64,
                    Self::Predicted => predicted as f64,
                    Self::LabelAs(numbers) => named(numbers, label),
                    Self::PredictedAs(numbers) => named(numbers, predicted),
                    Self::ProbabilityOf(class) if *class != predicted => 1.0 - probability,
                    _ => probability,
                }
            }
            FormulaSample::Numbers { label, predicted } => {
                let of = |numbers: &[f32], at: usize| {
                    numbers.get(at).copied().map_or(f64::NAN, f64::from)
                };
                match self {
                    Self::OutputLabel(at) => of(label, *at),
                    Self::Output(at) => of(predicted, *at),
                    Self::OutputIsSaid(at) => truth(of(predicted, *at) >= 0.5),
                    _ => f64::NAN,
                }
            }
        }
    }
}

/// A part of a bound formula.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Number(f64),
    Column(Column),
    Negative(Box<Step>),
    Not(Box<Step>),
    Binary(Operator, Box<Step>, Box<Step>),
    PerSample(PerSample, Vec<Step>),
    /// The number of all samples with this place.
    Aggregate(usize),
}

impl Step {
    /// Of a sample, or of the numbers of all samples.
    fn of(&self, sample: Option<FormulaSample<'_>>, wholes: &[f64]) -> f64 {
        let of = |step: &Step| step.of(sample, wholes);
        match self {
            Self::Number(number) => *number,
            Self::Column(column) => sample.map_or(f64::NAN, |sample| column.of(sample)),
            Self::Negative(step) => -of(step),
            Self::Not(step) => truth(of(step) == 0.0),
            Self::Binary(operator, left, right) => binary(*operator, of(left), of(right)),
            Self::PerSample(function, steps) => {
                let mut numbers = [0.0; 3];
                for (number, step) in numbers.iter_mut().zip(steps) {
                    *number = of(step);
                }
                function.of(&numbers[..steps.len().min(3)])
            }
            Self::Aggregate(at) => wholes.get(*at).copied().unwrap_or(f64::NAN),
        }
    }
}

fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

fn binary(operator: Operator, a: f64, b: f64) -> f64 {
    use Operator::*;
    match operator {
        Or => truth(a != 0.0 || b != 0.0),
        And => truth(a != 0.0 && b != 0.0),
        Equal => truth(a == b),
        NotEqual => truth(a != b),
        Less => truth(a < b),
        LessOrEqual => truth(a <= b),
        Greater => truth(a > b),
        GreaterOrEqual => truth(a >= b),
        Plus => a + b,
        Minus => a - b,
        Times => a * b,
        Over => a / b,
        // The sign of the result is that of the divisor, as in Python.
        Modulo => a - b * (a / b).floor(),
        Power => power(a, b),
    }
}

/// A formula that takes in the samples of a set, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundFormula {
    /// What is made of the numbers of all samples, from which steps.
    aggregates: Vec<(Aggregate, Step)>,
    whole: Step,
    /// What each of those steps came to, sample after sample.
    numbers: Vec<Vec<f64>>,
}

impl BoundFormula {
    pub(super) fn new(aggregates: Vec<(Aggregate, Step)>, whole: Step) -> Self {
        Self {
            numbers: vec![Vec::new(); aggregates.len()],
            aggregates,
            whole,
        }
    }

    /// Takes in the next sample.
    pub fn add(&mut self, sample: FormulaSample<'_>) {
        for ((_, step), numbers) in self.aggregates.iter().zip(&mut self.numbers) {
            numbers.push(step.of(Some(sample), &[]));
        }
    }

    /// What it all comes to; nothing if that is no finite number, such as the mean of no samples.
    pub fn finish(self) -> Option<f64> {
        let aggregates = self.aggregates.iter().zip(self.numbers);
        let wholes: Vec<f64> = aggregates
            .map(|((aggregate, _), numbers)| aggregate.of(numbers))
            .collect();
        Some(self.whole.of(None, &wholes)).filter(|value| value.is_finite())
    }
}
