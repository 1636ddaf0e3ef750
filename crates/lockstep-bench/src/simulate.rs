//! What a job would do on many hosts that are lost now and then, from a step that was measured here.
//!
//! Every host computes what this machine has computed in a step, so that the batch grows with the hosts. Hosts exchange
//! gradients as the model of `docs/scale.md` says, most of it during the backward pass. A host that is lost costs the time
//! until that is known and another one has taken its place, and the steps since the last copy of the state at other hosts,
//! or since the last checkpoint: on average half of those between two.
//!
//! The model is of the exchange alone; what was measured of that took up to [`MOST_OFF`] times as long. So a step and all
//! that follows from it has two bounds: as the model says, and with an exchange that takes so much longer, of which
//! nothing goes on during the backward pass.

use crate::{BenchError, Network};
use serde::Serialize;
use std::str::FromStr;

/// How many times as long as its model the exchange took where it was measured (`docs/scale.md`), at the most.
const MOST_OFF: f64 = 1.44;

/// How often a host is lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Failures {
    /// Losses of each host in a second.
    pub per_host_s: f64,
}

impl FromStr for Failures {
    type Err = BenchError;

    /// Understands `1/h`, `2/d`, `1/30d`: losses of each host in a time.
    fn from_str(text: &str) -> Result<Self, BenchError> {
        let wrong = || BenchError::Failures {
            found: text.to_owned(),
        };
        let (number, time) = text.split_once('/').ok_or_else(wrong)?;
        let units = [("s", 1.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];
        let unit = units.iter().find(|(unit, _)| {
            let before = time.strip_suffix(unit);
            before.is_some_and(|before| before.bytes().all(|c| c.is_ascii_digit() || c == b'.'))
        });
        let (unit, seconds) = unit.ok_or_else(wrong)?;
        let often = match time.strip_suffix(unit) {
            Some("") | None => 1.0,
            Some(often) => often.parse().map_err(|_| wrong())?,
        };
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let per_host_s = number / (often * seconds);
        match per_host_s.is_finite() && per_host_s >= 0.0 {
            true => Ok(Self { per_host_s }),
            false => Err(wrong()),
        }
    }
}

/// Of the time, copies take this share at the most, unless there is one of every step (`docs/decisions/0059`).
const COPIES_SHARE: f64 = 0.01;

/// How often hosts keep copies of the state for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCopies {
    /// Never.
    Off,
    /// As often as they take next to no time.
    Auto,
    /// After every step.
    EveryStep,
}

/// What is known of a job on one host.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HostStep {
    /// Seconds of a step.
    pub step_s: f64,
    /// The share of it that is backward pass.
    pub backward: f64,
    /// Samples of it.
    pub batch: u64,
    /// Numbers of the network's state.
    pub numbers: u64,
    /// As many numbers as the state has, the optimizer's vectors have together this many times.
    pub vectors: u64,
    /// Copies of all of that at other hosts.
    pub copies: HostCopies,
    /// Steps between two checkpoints; none if there are none.
    pub checkpoint_steps: Option<f64>,
    /// Seconds from the loss of a host to the first step without it: until it is known, and until a process has started.
    pub recovery_s: f64,
}

/// What so many hosts are expected to do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Simulated {
    /// Hosts.
    pub hosts: u64,
    /// Samples of a step.
    pub batch: u64,
    /// Milliseconds that the exchange takes by its model.
    pub exchange_ms: f64,
    /// By the model, and at the worst.
    pub step_ms: [f64; 2],
    /// Samples a second without losses, by the number of hosts and that of one.
    pub efficiency: [f64; 2],
    /// Losses in an hour, of all hosts.
    pub losses_per_hour: f64,
    /// Steps between two states that a loss can go on from, at the worst.
    pub steps_between: Option<f64>,
    /// Seconds that each of them costs; without checkpoints and copies nothing says.
    pub lost_s: Option<f64>,
    /// The share of the time that goes into steps that count.
    pub goodput: Option<f64>,
    /// Samples a second that count.
    pub samples_per_s: [Option<f64>; 2],
}

impl HostStep {
    /// What so many hosts would do on a network, each lost so often.
    pub fn on(&self, hosts: u64, network: &Network, failures: Failures) -> Simulated {
        let exchange_s = network.exchange_s(self.numbers, hosts);
        let backward_s = self.step_s * self.backward;
        let forward_s = self.step_s - backward_s;
        let alone_s = [
            forward_s + backward_s.max(exchange_s),
            self.step_s + MOST_OFF * exchange_s,
        ];
        // One host alone has nobody who would keep copies.
        let copies = if hosts < 2 {
            HostCopies::Off
        } else {
            self.copies
        };
        let copy_s = network.copy_s(self.numbers * self.vectors, hosts);
        let copy_s = [copy_s, MOST_OFF * copy_s];
        let copied = |place: usize| alone_s[place] + copy_s[place];
        let often = (copy_s[1] / (COPIES_SHARE * alone_s[1])).max(1.0);
        let (step_s, steps_between) = match copies {
            HostCopies::Off => (alone_s, self.checkpoint_steps),
            HostCopies::EveryStep => ([copied(0), copied(1)], Some(1.0)),
            HostCopies::Auto => {
                let step_s = [0, 1].map(|place| alone_s[place] + copy_s[place] / often);
                let newest = self
                    .checkpoint_steps
                    .map_or(often, |steps| steps.min(often));
                (step_s, Some(newest))
            }
        };
        let batch = self.batch * hosts;
        let losses = failures.per_host_s * hosts as f64;
        let repeated = steps_between.map(|steps| steps / 2.0 * step_s[1]);
        let lost_s = repeated.map(|repeated| self.recovery_s + repeated);
        // Between two losses there is time that counts, and what the loss costs.
        let goodput = match lost_s {
            Some(lost_s) => Some(1.0 / (1.0 + losses * lost_s)),
            None => (losses == 0.0).then_some(1.0),
        };
        Simulated {
            hosts,
            batch,
            exchange_ms: 1e3 * exchange_s,
            step_ms: step_s.map(|step_s| 1e3 * step_s),
            efficiency: step_s.map(|step_s| self.step_s / step_s),
            losses_per_hour: 3600.0 * losses,
            steps_between,
            lost_s,
            goodput,
            samples_per_s: step_s
                .map(|step_s| goodput.map(|goodput| goodput * batch as f64 / step_s)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> HostStep {
        HostStep {
            step_s: 0.1,
            backward: 0.5,
            batch: 32,
            numbers: 11_689_512,
            vectors: 2,
            copies: HostCopies::Off,
            checkpoint_steps: Some(100.0),
            recovery_s: 20.0,
        }
    }

    fn failures(text: &str) -> Failures {
        text.parse().unwrap()
    }

    #[test]
    fn rates_of_failures_are_understood_or_refused_with_what_would_be_right() {
        assert_eq!(failures("1/h").per_host_s, 1.0 / 3600.0);
        assert_eq!(failures("2/30d").per_host_s, 2.0 / 30.0 / 86_400.0);
        assert_eq!(failures("3/10min").per_host_s, 0.005);
        assert_eq!(failures("0/h").per_host_s, 0.0);
        for wrong in ["", "1", "h", "1/", "1/x", "-1/h", "1/0h", "x/h"] {
            let error = wrong.parse::<Failures>().unwrap_err().to_string();
            assert!(error.contains("such as 1/h"), "{wrong}: {error}");
        }
    }

    #[test]
    fn one_host_that_is_never_lost_does_what_was_measured() {
        let network = "10gbit".parse().unwrap();
        let one = host().on(1, &network, failures("0/h"));
        assert_eq!((one.step_ms, one.efficiency), ([100.0; 2], [1.0; 2]));
        assert_eq!((one.goodput, one.losses_per_hour), (Some(1.0), 0.0));
        let [Some(best), Some(worst)] = one.samples_per_s else {
            panic!("{one:?}");
        };
        assert!((best - 320.0).abs() < 1e-9 && best == worst);
    }

    #[test]
    fn an_exchange_costs_what_is_longer_than_the_backward_pass_or_at_the_worst_all_of_it() {
        let network = "10gbit".parse().unwrap();
        // docs/scale.md: ResNet-18 among 64 takes 79.96 ms.
        let many = host().on(64, &network, failures("0/h"));
        assert!((many.exchange_ms - 79.96).abs() < 0.05, "{many:?}");
        assert!((many.step_ms[0] - 129.96).abs() < 0.05, "{many:?}");
        assert!(
            (many.step_ms[1] - (100.0 + 1.44 * 79.96)).abs() < 0.1,
            "{many:?}"
        );
        assert_eq!(many.batch, 64 * 32);
    }

    #[test]
    fn a_loss_costs_its_recovery_and_half_of_the_steps_between_checkpoints() {
        let network = "100000gbit/0.001us".parse().unwrap();
        let lost = host().on(2, &network, failures("1/h"));
        assert_eq!(lost.losses_per_hour, 2.0);
        assert!((lost.lost_s.unwrap() - 25.0).abs() < 1e-3, "{lost:?}");
        let expected = 1.0 / (1.0 + 2.0 * 25.0 / 3600.0);
        assert!((lost.goodput.unwrap() - expected).abs() < 1e-6, "{lost:?}");
        let never = HostStep {
            checkpoint_steps: None,
            ..host()
        };
        let never = never.on(2, &network, failures("1/h"));
        assert_eq!((never.lost_s, never.goodput), (None, None));
    }

    #[test]
    fn with_copies_of_every_step_a_loss_costs_half_of_a_step_and_each_step_its_copy() {
        let network = "10gbit".parse().unwrap();
        let on = |copies, hosts| {
            let host = HostStep { copies, ..host() };
            host.on(hosts, &network, failures("1/h"))
        };
        let (off, every) = (on(HostCopies::Off, 8), on(HostCopies::EveryStep, 8));
        // Two vectors of 46.8 MB, an eighth of each: 9.8 ms on the wire, and the delay.
        assert!(
            (every.step_ms[0] - off.step_ms[0] - 9.83).abs() < 0.1,
            "{every:?}"
        );
        assert_eq!(every.steps_between, Some(1.0));
        let lost_s = every.lost_s.unwrap() - 20.0;
        assert!((lost_s - every.step_ms[1] / 2e3).abs() < 1e-9, "{every:?}");
        let auto = on(HostCopies::Auto, 8);
        assert!(auto.step_ms[1] <= 1.0101 * off.step_ms[1], "{auto:?}");
        assert!(
            auto.steps_between.unwrap() > 1.0 && auto.lost_s < off.lost_s,
            "{auto:?}"
        );
        // Nobody is there who would keep them.
        assert_eq!(on(HostCopies::EveryStep, 1).steps_between, Some(100.0));
    }
}
