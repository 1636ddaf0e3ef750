//! The definition: a case trained by lockstep-nn, lane after lane, as `lockstep-train` does it.

use super::Outcome;
use super::cases::Case;
use lockstep_cuda::WorkerBatch;
use lockstep_nn::{
    Batch, Collect, Layout, LossSum, MarkedPlaces, Model, StateVector, Step, Update, add, optimizer,
};
use std::ops::Range;

/// A network on the processor.
pub(crate) struct Processor {
    model: Model,
    state: StateVector,
    average: Option<Vec<f32>>,
    norm: Option<f64>,
    marks: Vec<u32>,
}

impl Processor {
    pub(crate) fn new(case: &Case) -> Self {
        let model = case.model(case.batch.max(case.scored_rows()));
        let state = StateVector::new(model.layout(), &case.values, case.optimizer.planes());
        Self {
            model,
            state,
            average: None,
            norm: None,
            marks: Vec::new(),
        }
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
            let losses = self.step(case, &batch, samples, (number, in_epoch), update);
            let mut first = 0.0;
            for (lane, loss) in batch.lanes.iter().zip(losses) {
                if lane.lane == 0 {
                    first = loss.loss;
                }
                sums[lane.lane] += loss;
                if !loss.loss.is_finite() {
                    diverged.get_or_insert(number);
                }
            }
            self.marks.push(MarkedPlaces::of_loss(first));
            let marked = MarkedPlaces::new(self.model.layout());
            marked.look(number + 1, self.state.values(), &mut self.marks);
        }
        let scores = self.score(case).to_vec();
        let marks = std::mem::take(&mut self.marks);
        let [values, first, second] = self.state.vectors();
        let planes = [first, second].into_iter().take(case.optimizer.planes());
        Outcome {
            values: values.to_vec(),
            planes: planes.map(<[f32]>::to_vec).collect(),
            sums,
            diverged,
            scores,
            average: self.average.clone(),
            norm: self.norm,
            marks,
        }
    }

    /// What the network says of some samples.
    pub(crate) fn score(&mut self, case: &Case) -> &[f32] {
        let values = self.average.as_deref().unwrap_or(self.state.values());
        self.model.scores(values, case.scored())
    }

    /// One step; what each lane of the batch came to.
    fn step(
        &mut self,
        case: &Case,
        batch: &WorkerBatch,
        samples: &[u32],
        (number, in_epoch): (u64, usize),
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
            let inputs = rows.flat_map(|row| &case.inputs[row * width..][..width]);
            let inputs: Vec<f32> = inputs.copied().collect();
            let targets = case.targets.rows(samples, in_epoch);
            let mut collect = Collect::new(self.state.values(), &layout);
            let step = Step {
                seed: case.seed,
                number,
                samples,
                batch: batch.samples,
            };
            let batch = Batch {
                inputs: &inputs,
                targets: targets.targets(&case.targets),
            };
            losses.push(self.model.gradient(&mut collect, batch, step));
            gradients.push(collect.gradient);
        }
        for &(into, from) in &batch.adds {
            let [into, from] = gradients.get_disjoint_mut([into, from]).expect("two lanes");
            add(into, from);
        }
        // A worker may have no rows of a short batch.
        let mut partials = batch.partials.iter();
        let Some(&sum) = partials.next() else {
            return losses;
        };
        for &other in partials {
            let [into, from] = gradients.get_disjoint_mut([sum, other]).expect("two sums");
            add(into, from);
        }
        let gradient = &gradients[sum];
        let update = match case.clip_norm {
            None => update,
            Some(longest) => {
                let norm = norm(&layout, gradient);
                self.norm = Some(norm);
                let scale = (longest / norm) as f32;
                update.scaled(if norm > longest { scale } else { 1.0 })
            }
        };
        for (chunk, range) in layout.chunks.iter().enumerate() {
            if !layout.is_frozen(chunk) {
                let update = update.at_part(layout.rates[chunk]);
                self.state
                    .update(range.clone(), &gradient[range.clone()], &update);
            }
        }
        if let Some(kept) = case.average {
            let present = self.state.values();
            match &mut self.average {
                None => self.average = Some(present.to_vec()),
                Some(average) => {
                    for range in layout.trained() {
                        let present = &present[range.clone()];
                        optimizer::average(&mut average[range], present, (1.0 - kept) as f32);
                    }
                }
            }
        }
        losses
    }
}

/// The norm of the gradient of all parameters that learn.
fn norm(layout: &Layout, gradient: &[f32]) -> f64 {
    let of_chunk = |(chunk, range): (usize, &Range<usize>)| {
        let is_counted = !layout.is_frozen(chunk) && range.start < layout.parameters;
        let blocks = gradient[range.clone()].chunks(optimizer::SQUARED_BLOCK);
        let mut sum = 0.0;
        for block in blocks.filter(|_| is_counted) {
            sum += optimizer::square_sum(block);
        }
        sum
    };
    let chunks = layout.chunks.iter().enumerate();
    chunks.map(of_chunk).sum::<f64>().sqrt()
}
