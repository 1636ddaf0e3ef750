//! The functions of formulas, by their names in NumPy. They have the same bits on every machine.

use lockstep_base::math::{self, exp, ln};
use std::f64::consts::LN_2;

/// Makes a number of the numbers of one sample, or of such as are of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PerSample {
    Abs,
    Exp,
    Log,
    Log1p,
    Sqrt,
    Minimum,
    Maximum,
    Where,
}

impl PerSample {
    pub(super) const ALL: [(&'static str, Self); 8] = [
        ("abs", Self::Abs),
        ("exp", Self::Exp),
        ("log", Self::Log),
        ("log1p", Self::Log1p),
        ("sqrt", Self::Sqrt),
        ("minimum", Self::Minimum),
        ("maximum", Self::Maximum),
        ("where", Self::Where),
    ];

    /// How many numbers it takes.
    pub(super) fn arguments(self) -> usize {
        match self {
            Self::Minimum | Self::Maximum => 2,
            Self::Where => 3,
            _ => 1,
        }
    }

    pub(super) fn of(self, numbers: &[f64]) -> f64 {
        match (self, numbers) {
            (Self::Abs, [x]) => x.abs(),
            (Self::Exp, [x]) => exp(*x),
            (Self::Log, [x]) => log(*x),
            (Self::Log1p, [x]) => log1p(*x),
            (Self::Sqrt, [x]) => x.sqrt(),
            (Self::Minimum, [a, b]) if a.is_nan() || b.is_nan() => f64::NAN,
            (Self::Maximum, [a, b]) if a.is_nan() || b.is_nan() => f64::NAN,
            (Self::Minimum, [a, b]) => a.min(*b),
            (Self::Maximum, [a, b]) => a.max(*b),
            (Self::Where, [condition, a, b]) => {
                if *condition != 0.0 {
                    *a
                } else {
                    *b
                }
            }
            _ => f64::NAN,
        }
    }
}

/// The logarithm, as NumPy has it where there is none.
fn log(x: f64) -> f64 {
    /// A power of two that makes normal numbers of the smallest ones.
    const RAISED: i32 = 54;
    match x {
        f64::INFINITY => x,
        x if x >= f64::MIN_POSITIVE => ln(x),
        x if x > 0.0 => ln(x * 2f64.powi(RAISED)) - f64::from(RAISED) * LN_2,
        0.0 => f64::NEG_INFINITY,
        _ => f64::NAN,
    }
}

/// The logarithm of 1 + x, also where x is lost in that sum.
fn log1p(x: f64) -> f64 {
    let sum = 1.0 + x;
    match sum == 1.0 {
        true => x,
        false => log(sum) * (x / (sum - 1.0)),
    }
}

/// A power, as Python has it for real numbers.
pub(super) fn power(base: f64, power: f64) -> f64 {
    const WHOLE: f64 = 1024.0;
    if power.fract() == 0.0 && power.abs() <= WHOLE {
        let of_size = math::power(base, power.abs() as u64);
        return if power < 0.0 { 1.0 / of_size } else { of_size };
    }
    match base {
        0.0 if power > 0.0 => 0.0,
        0.0 if power < 0.0 => f64::INFINITY,
        base => exp(power * log(base)),
    }
}

/// Makes one number of those of all samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aggregate {
    Mean,
    Sum,
    Std,
    Min,
    Max,
    /// With the share of the samples that are below it.
    Quantile(f64),
}

/// Those that take nothing beside what is of each sample; `median` and `quantile` are read by themselves.
impl Aggregate {
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("mean", Self::Mean),
        ("sum", Self::Sum),
        ("std", Self::Std),
        ("min", Self::Min),
        ("max", Self::Max),
        ("median", Self::Quantile(0.5)),
    ];

    /// Of the numbers of all samples, in their order. Nothing is not a number.
    pub(super) fn of(self, mut numbers: Vec<f64>) -> f64 {
        let count = numbers.len() as f64;
        let sum = |numbers: &[f64]| numbers.iter().sum::<f64>();
        match self {
            Self::Sum => sum(&numbers),
            _ if numbers.is_empty() || numbers.iter().any(|number| number.is_nan()) => f64::NAN,
            Self::Mean => sum(&numbers) / count,
            Self::Std => {
                let mean = sum(&numbers) / count;
                let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
                (squares / count).sqrt()
            }
            Self::Min => numbers.into_iter().fold(f64::INFINITY, f64::min),
            Self::Max => numbers.into_iter().fold(f64::NEG_INFINITY, f64::max),
            Self::Quantile(share) => {
                numbers.sort_unstable_by(f64::total_cmp);
                let at = share * (count - 1.0);
                let (below, above) = (at.floor() as usize, at.ceil() as usize);
                let part = at - at.floor();
                // So that equal ends, also infinite ones, are themselves.
                match numbers[below] == numbers[above] {
                    true => numbers[below],
                    false => numbers[below] + (numbers[above] - numbers[below]) * part,
                }
            }
        }
    }
}
