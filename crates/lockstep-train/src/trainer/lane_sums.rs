//! What all lanes have summed up, brought to every rank; and the loss by step that is told of it.

use crate::TrainError;
use crate::device::DeviceReplica;
use lockstep_gang::SharingCollective;
use lockstep_nn::LossSum;

/// The numbers of a lane's sum.
const NUMBERS: usize = 3;

/// The most steps whose mean is told as the loss by step, and the fewest times an epoch that one is told.
const MOST_STEPS: u64 = 32;
const LEAST_TIMES: u64 = 8;

/// Brings every lane's sum to every rank, in room that is made once.
pub(super) struct LaneExchange {
    mine: Vec<f64>,
    all: Vec<f64>,
}

impl LaneExchange {
    pub(super) fn new(lanes: usize, workers: usize) -> Self {
        Self {
            mine: vec![0.0; NUMBERS * lanes],
            all: vec![0.0; NUMBERS * lanes * workers],
        }
    }

    /// Replaces the sums of the other ranks' lanes by what those have. All ranks come here together.
    pub(super) fn share(
        &mut self,
        sums: &mut [LossSum],
        collective: &mut dyn SharingCollective,
    ) -> Result<(), TrainError> {
        for (numbers, sum) in self.mine.chunks_exact_mut(NUMBERS).zip(&*sums) {
            numbers.copy_from_slice(&[sum.loss, sum.correct as f64, sum.rows as f64]);
        }
        collective.all_gather(&self.mine, &mut self.all)?;
        let lanes = sums.len();
        for rank in 0..collective.plan().workers() {
            for lane in collective.plan().lanes_of(rank) {
                let at = NUMBERS * (rank * lanes + lane);
                sums[lane] = LossSum {
                    loss: self.all[at],
                    correct: self.all[at + 1] as u64,
                    rows: self.all[at + 2] as u64,
                };
            }
        }
        Ok(())
    }
}

/// The sum over all lanes, in their order.
pub(super) fn total(sums: &[LossSum]) -> LossSum {
    let mut total = LossSum::default();
    for &sum in sums {
        total += sum;
    }
    total
}

/// The loss by step: the mean over the few steps up to one whose number is round.
///
/// Which steps these are follows from their numbers alone, and the sums of all lanes are in it. So the loss that is told
/// of a step is the same on any number of workers, whenever they come to tell it. Right after a process has begun, the
/// means are of fewer steps: nobody waits long for the first.
pub(super) struct LossByStep {
    /// Steps of a mean.
    every: u64,
    /// The steps that were done when this process began.
    first: u64,
    /// Room for what each lane has summed up since the last mean.
    sums: Vec<LossSum>,
    /// The newest mean.
    pub(super) mean: f64,
}

impl LossByStep {
    pub(super) fn new(lanes: usize, steps_per_epoch: u64, first: u64) -> Self {
        Self {
            every: (steps_per_epoch / LEAST_TIMES).clamp(1, MOST_STEPS),
            first,
            sums: vec![LossSum::default(); lanes],
            mean: f64::NAN,
        }
    }

    /// Ends the step of this number, counted from 1. All ranks come here together.
    pub(super) fn end_step(
        &mut self,
        step: u64,
        ends_epoch: bool,
        exchange: &mut LaneExchange,
        replica: &mut dyn DeviceReplica,
    ) -> Result<(), TrainError> {
        if !ends_epoch && !self.is_due(step) {
            return Ok(());
        }
        replica.take_recent_losses(&mut self.sums)?;
        exchange.share(&mut self.sums, replica.collective())?;
        let total = total(&self.sums);
        self.mean = total.loss / total.rows.max(1) as f64;
        Ok(())
    }

    fn is_due(&self, step: u64) -> bool {
        let done = step - self.first;
        step.is_multiple_of(self.every) || (done < self.every && done.is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_told_after_the_first_step_and_then_at_round_numbers() {
        let told = |steps_per_epoch, first, until| {
            let loss = LossByStep::new(1, steps_per_epoch, first);
            (first + 1..=until)
                .filter(|&step| loss.is_due(step))
                .collect::<Vec<u64>>()
        };
        assert_eq!(told(1000, 0, 100), [1, 2, 4, 8, 16, 32, 64, 96]);
        assert_eq!(told(1000, 50, 100), [51, 52, 54, 58, 64, 66, 96]);
        assert_eq!(told(4, 0, 5), [1, 2, 3, 4, 5]);
    }
}
