//! The definition: a case trained by lockstep-nn, lane after lane, as `lockstep-train` does it.

use super::Outcome;
use super::cases::Case;
use lockstep_cuda::WorkerBatch;
use lockstep_nn::{Batch, Collect, LossSum, Model, StateVector, Step, Targets, Update, add};

/// A network on the processor.
pub(crate) struct Processor {
    model: Model,
    state: StateVector,
}

impl Processor {
    pub(crate) fn new(case: &Case) -> Self {
        let model = case.model(case.batch.max(case.scored_rows()));
        let state = StateVector::new(model.layout(), &case.values, case.optimizer.planes());
        Self { model, state }
    }

    /// Trains an epoch.
    pub(crate) fn epoch(&mut self, case: &Case, epoch: usize) -> Outcome {
        let order = case.order(epoch);
        let mut sums = vec![LossSum::default(); case.lanes()];
        let mut diverged = None;
        for in_epoch in 0..case.steps() {
            let batch = match in_epoch + 1 == case.steps() {
                true => case.last(),
                false => case.full(),
            };
            let samples = &order[in_epoch * case.batch + batch.first..][..batch.rows()];
            let number = case.step(epoch, in_epoch);
            let update = case.update(epoch, in_epoch);
            let losses = self.step(case, &batch, samples, number, update);
            for (lane, loss) in batch.lanes.iter().zip(losses) {
                sums[lane.lane] += loss;
                if !loss.loss.is_finite() {
                    diverged.get_or_insert(number);
                }
            }
        }
        let scores = self.score(case).to_vec();
        let [values, first, second] = self.state.vectors();
        let planes = [first, second].into_iter().take(case.optimizer.planes());
        Outcome {
            values: values.to_vec(),
            planes: planes.map(<[f32]>::to_vec).collect(),
            sums,
            diverged,
            scores,
        }
    }

    /// What the network says of some samples.
    pub(crate) fn score(&mut self, case: &Case) -> &[f32] {
        self.model.scores(self.state.values(), case.scored())
    }

    /// One step; what each lane of the batch came to.
    fn step(
        &mut self,
        case: &Case,
        batch: &WorkerBatch,
        samples: &[u32],
        number: u64,
        update: Update,
    ) -> Vec<LossSum> {
        let layout = self.model.layout().clone();
        let width = case.input.len();
        let mut gradients = Vec::new();
        let mut losses = Vec::new();
        let mut first = 0;
        for lane in &batch.lanes {
            let samples = &samples[first..first + lane.rows];
            first += lane.rows;
            let rows = samples.iter().map(|&sample| sample as usize);
            let inputs = rows
                .clone()
                .flat_map(|row| &case.inputs[row * width..][..width]);
            let inputs: Vec<f32> = inputs.copied().collect();
            let classes: Vec<u32> = rows.map(|row| case.classes[row]).collect();
            let mut collect = Collect::new(self.state.values(), &layout);
            let step = Step {
                seed: case.seed,
                number,
                samples,
                batch: batch.samples,
            };
            let batch = Batch {
                inputs: &inputs,
                targets: Targets::Classes(&classes),
            };
            losses.push(self.model.gradient(&mut collect, batch, step));
            gradients.push(collect.gradient);
        }
        for &(into, from) in &batch.adds {
            let [into, from] = gradients.get_disjoint_mut([into, from]).expect("two lanes");
            add(into, from);
        }
        // A worker may have no rows of a short batch.
        let Some(&sum) = batch.partials.first() else {
            return losses;
        };
        let gradient = &gradients[sum];
        for (chunk, range) in layout.chunks.iter().enumerate() {
            if !layout.is_frozen(chunk) {
                let update = update.at_part(layout.rates[chunk]);
                self.state
                    .update(range.clone(), &gradient[range.clone()], &update);
            }
        }
        losses
    }
}
