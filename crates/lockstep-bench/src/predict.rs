//! What more workers than there are here would gain, from what was measured and the model of `docs/scale.md`.
//!
//! A step of one worker takes a fixed time and a time for each sample. Two measurements give both: one worker with the
//! whole batch, and workers apart with a part of it. The exchange goes on during the backward pass and costs only what is
//! longer than that, and a delay. What its bytes take is the model's: the busiest worker posts the chunks of others, and
//! sends its own to everyone. Held against what was measured here, on shared memory, the forecast says how far it is off.

use crate::comparison::SettingRow;
use crate::{BenchError, Comparison, How};
use serde::Serialize;
use std::str::FromStr;

/// Numbers in a chunk.
const CHUNK: u64 = 16 * 1024;
/// Bytes before a chunk's numbers.
const HEADER: f64 = 32.0;
/// What is left of a packet for data, after Ethernet, IP and TCP.
const PAYLOAD: f64 = 1448.0 / 1514.0;
/// From one host of a data centre to another, one way, where nobody says otherwise.
const USUAL_DELAY_S: f64 = 50e-6;

/// A network between workers, each with a card of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// Bits a second.
    pub bits_per_s: f64,
    /// Seconds from one worker to another.
    pub delay_s: f64,
}

impl FromStr for Network {
    type Err = BenchError;

    /// Understands `10gbit`, `400mbit`, and `10gbit/50us` or `10gbit,50us` with a delay.
    fn from_str(text: &str) -> Result<Network, BenchError> {
        let wrong = || BenchError::Network {
            found: text.to_owned(),
        };
        let (rate, delay) = match text.split_once(['/', ',']) {
            Some((rate, delay)) => (rate, Some(delay)),
            None => (text, None),
        };
        let amount = |text: &str, units: &[(&str, f64)]| {
            let (unit, scale) = units.iter().find(|(unit, _)| text.ends_with(unit))?;
            let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            (number.is_finite() && number > 0.0).then_some(number * scale)
        };
        let rate = amount(rate, &[("gbit", 1e9), ("mbit", 1e6)]).ok_or_else(wrong)?;
        let delay =
            delay.map(|delay| amount(delay, &[("us", 1e-6), ("ms", 1e-3)]).ok_or_else(wrong));
        Ok(Network {
            bits_per_s: rate,
            delay_s: delay.transpose()?.unwrap_or(USUAL_DELAY_S),
        })
    }
}

impl Network {
    /// Seconds that the exchange of so many numbers takes among so many workers.
    pub(crate) fn exchange_s(&self, numbers: u64, workers: u64) -> f64 {
        if workers < 2 {
            return 0.0;
        }
        let chunks = numbers.div_ceil(CHUNK).max(1);
        let chunk = 4.0 * numbers as f64 / chunks as f64 + HEADER;
        let own = chunks.div_ceil(workers);
        let busiest = (chunks - own) + own * (workers - 1);
        let bytes = busiest as f64 * chunk + (workers - 1) as f64 * HEADER;
        let wire = self.wire_s(bytes);
        wire + self.delay_s + (self.delay_s - wire / 2.0).max(0.0)
    }

    /// Seconds that each of so many workers takes to send its share of so many numbers to one other.
    pub(crate) fn copy_s(&self, numbers: u64, workers: u64) -> f64 {
        self.wire_s(4.0 * numbers as f64 / workers as f64) + self.delay_s
    }

    fn wire_s(&self, bytes: f64) -> f64 {
        8.0 * bytes / PAYLOAD / self.bits_per_s
    }
}

/// What so many workers are expected to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Workers.
    pub workers: usize,
    /// Samples of a step.
    pub batch: u64,
    /// Milliseconds of a step.
    pub step_ms: f64,
    /// Milliseconds of the exchange, most of it during the backward pass.
    pub exchange_ms: f64,
    /// How many times more samples a second than one worker.
    pub speedup: f64,
    /// By the number of workers.
    pub efficiency: f64,
    /// Where it was measured here: what was, in samples a second.
    pub measured_speedup: Option<f64>,
    /// The forecast less what was measured, by what was measured.
    pub error: Option<f64>,
}

/// What a step of one worker is made of.
struct StepModel {
    batch: f64,
    fixed_s: f64,
    sample_s: f64,
    /// The share of it that is backward pass.
    backward: f64,
    parameters: u64,
    weak: bool,
}

impl StepModel {
    /// From the first group of what was measured.
    fn of(comparison: &Comparison) -> Option<(StepModel, &SettingRow)> {
        let mut gangs = comparison
            .settings
            .iter()
            .filter(|row| row.how == How::Together);
        let base = gangs.next().filter(|base| base.workers == 1)?;
        let batch = base.batch? as f64;
        let whole_s = batch / base.samples_per_second;
        let apart = comparison
            .settings
            .iter()
            .find(|row| row.how == How::Apart && row.group == base.group);
        let sample_s = match apart {
            Some(apart) if !comparison.is_weak() => {
                // Each takes a step of its part in the time of all their samples at their common rate.
                let part_s = apart.batch? as f64 / apart.samples_per_second;
                let rest = batch - batch / apart.workers as f64;
                ((whole_s - part_s) / rest).clamp(0.0, whole_s / batch)
            }
            _ => whole_s / batch,
        };
        let step = comparison
            .steps
            .iter()
            .find(|row| row.setting == base.setting);
        let model = StepModel {
            batch,
            sample_s,
            fixed_s: whole_s - sample_s * batch,
            backward: step.map_or(0.5, |step| step.backward),
            parameters: comparison.parameters?,
            weak: comparison.is_weak(),
        };
        Some((model, base))
    }

    fn predict(&self, workers: usize, network: Option<&Network>) -> Prediction {
        let n = workers as f64;
        let own = if self.weak {
            self.batch
        } else {
            self.batch / n
        };
        let computing = self.fixed_s + self.sample_s * own;
        let numbers = self.parameters;
        let exchange = network.map_or(0.0, |network| network.exchange_s(numbers, workers as u64));
        let backward = computing * self.backward;
        let step_s = computing - backward + backward.max(exchange);
        let one = self.fixed_s + self.sample_s * self.batch;
        let speedup = one / step_s * (own * n / self.batch);
        Prediction {
            workers,
            batch: (own * n).round() as u64,
            step_ms: 1e3 * step_s,
            exchange_ms: 1e3 * exchange,
            speedup,
            efficiency: speedup / n,
            measured_speedup: None,
            error: None,
        }
    }
}

impl Comparison {
    /// Adds forecasts for `workers` on `network`, and for the numbers of workers that were measured here, without one.
    pub(crate) fn add_predictions(&mut self, workers: &[usize], network: &Network) {
        let Some((model, base)) = StepModel::of(self) else {
            return;
        };
        let gangs = self
            .settings
            .iter()
            .filter(|row| row.how == How::Together && row.group == base.group && row.workers > 1);
        let mut predictions: Vec<Prediction> = gangs
            .map(|row| {
                let predicted = model.predict(row.workers, None);
                let measured = row.samples_per_second / base.samples_per_second;
                Prediction {
                    measured_speedup: Some(measured),
                    error: Some(predicted.speedup / measured - 1.0),
                    ..predicted
                }
            })
            .collect();
        predictions.extend(workers.iter().map(|n| model.predict(*n, Some(network))));
        self.predictions = predictions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::{bench, steady};
    use crate::{Measured, Setting};

    #[test]
    fn a_network_is_understood_or_refused_with_what_would_be_right() {
        let network: Network = "10gbit".parse().unwrap();
        assert_eq!((network.bits_per_s, network.delay_s), (1e10, 50e-6));
        let same = ["10gbit,50us", "10gbit/50us"].map(|text| text.parse::<Network>().unwrap());
        assert_eq!(same[0], same[1]);
        let slow: Network = "400mbit/20ms".parse().unwrap();
        assert_eq!((slow.bits_per_s, slow.delay_s), (4e8, 0.02));
        for wrong in ["", "10", "gbit", "10gbit/x", "-1gbit", "0mbit"] {
            let error = wrong.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains("such as 10gbit"), "{wrong}: {error}");
        }
    }

    #[test]
    fn the_exchange_takes_what_the_model_of_the_documents_says() {
        // docs/scale.md, 10 Gbit/s: the MLP of 0.67 M among 8 workers, and among 512; ResNet-18 among 64.
        let network: Network = "10gbit".parse().unwrap();
        let ms = |numbers, workers| 1e3 * network.exchange_s(numbers, workers);
        assert!((ms(669_706, 8) - 4.26).abs() < 0.01, "{}", ms(669_706, 8));
        assert!(
            (ms(669_706, 512) - 30.19).abs() < 0.02,
            "{}",
            ms(669_706, 512)
        );
        assert!(
            (ms(11_689_512, 64) - 79.96).abs() < 0.05,
            "{}",
            ms(11_689_512, 64)
        );
    }

    #[test]
    fn on_an_infinite_network_more_workers_gain_what_computing_does() {
        let mut bench = bench(&[1, 2], 1);
        bench.predict = Some((vec![4], "100000gbit/0.001us".parse().unwrap()));
        // A step of 32 samples takes 8 ms and 1 ms a sample; apart, of 16 samples, 8 ms and 16 ms.
        let mut one = |_, setting: &Setting| {
            Ok::<_, String>(Some(Measured {
                samples_per_s: match setting.workers {
                    1 => 32.0 / 0.040,
                    _ => 32.0 / 0.024,
                },
                parameters: 1000,
                ..steady(setting)
            }))
        };
        let found = bench.measure(&mut one, &mut |_| Ok(())).unwrap().0;
        let [here, there] = found.predictions.as_slice() else {
            panic!("{:?}", found.predictions);
        };
        assert!((here.speedup - 40.0 / 24.0).abs() < 1e-9, "{here:?}");
        assert!(here.error.unwrap().abs() < 1e-9, "{here:?}");
        assert!((there.speedup - 40.0 / 16.0).abs() < 1e-3, "{there:?}");
    }
}
