//! A step by its definition, in plain loops.

use super::outcome::{Outcome, bits, questions, sums};
use super::specimen::Specimen;
use crate::batches::Batches;
use crate::device::ReplicaSetup;
use crate::lanes::LaneProgram;
use lockstep_gang::tree;
use lockstep_nn::optimizer::square_sum;
use lockstep_nn::{Collect, LossSum, MarkedPlaces, StatePart, StateVector, Step, add};
use std::ops::Range;

/// Numbers of a summed gradient whose squares are added at a time.
const BLOCK: usize = 2048;

/// The sum of the lanes of a node of the tree, of those that there are.
fn in_tree(lanes: &[Option<Vec<f32>>], node: Range<usize>) -> Option<Vec<f32>> {
    let Some(middle) = tree::split(&node) else {
        return lanes[node.start].clone();
    };
    let left = in_tree(lanes, node.start..middle);
    let right = in_tree(lanes, middle..node.end);
    match (left, right) {
        (Some(mut left), Some(right)) => {
            add(&mut left, &right);
            Some(left)
        }
        (left, right) => left.or(right),
    }
}

/// The same by definition.
pub(super) fn by_definition(specimen: &Specimen) -> Outcome {
    let (mut model, beginning) = specimen.model();
    let (settings, sets) = (&specimen.settings, &specimen.sets);
    let layout = model.layout().clone();
    let setup = ReplicaSetup::of(settings, &sets.facts(), &layout, 0).unwrap();
    let marked = MarkedPlaces::new(&layout);
    let mut state = StateVector::new(&layout, &beginning.state, 2);
    let mut average: Option<Vec<f32>> = None;
    let mut batches = Batches::new(sets, settings, false);
    let mut losses = vec![LossSum::default(); settings.lanes];
    let mut recent = losses.clone();
    let (mut marks, mut norm) = (Vec::new(), None);
    for number in 0..2 * setup.steps_per_epoch {
        let step = number % setup.steps_per_epoch;
        if step == 0 {
            batches.begin((number / setup.steps_per_epoch) as u32 + 1);
            losses.fill(LossSum::default());
        }
        let is_last = step + 1 == setup.steps_per_epoch;
        let program: &LaneProgram = &setup.programs[usize::from(is_last)];
        batches.prepare(sets, program, step);
        let mut lanes = vec![None; settings.lanes];
        let mut first_loss = 0.0;
        for (i, work) in program.work.iter().enumerate() {
            let (batch, samples) = batches.rows(batches.lanes()[i].clone());
            let mut collect = Collect::new(state.values(), &layout);
            let step = Step {
                seed: settings.seed,
                number,
                samples,
                batch: program.batch,
            };
            let sum = model.gradient(&mut collect, batch, step);
            losses[work.lane] += sum;
            recent[work.lane] += sum;
            if work.lane == 0 {
                first_loss = sum.loss;
            }
            lanes[work.lane] = Some(collect.gradient);
        }
        let gradient = in_tree(&lanes, 0..settings.lanes).unwrap();
        let mut update = specimen.update(number);
        if let Some(most) = settings.learner.clip_norm {
            let squares = |chunk: &Range<usize>| -> f64 {
                let blocks = gradient[chunk.clone()].chunks(BLOCK);
                blocks.fold(0.0, |sum, block| sum + square_sum(block))
            };
            let chunks = layout.chunks.iter().enumerate();
            let counted = chunks.filter(|(_, chunk)| chunk.start < layout.parameters);
            let trained = counted.filter(|(number, _)| !layout.is_frozen(*number));
            let length = trained.map(|(_, chunk)| squares(chunk)).sum::<f64>().sqrt();
            norm = Some(length.to_bits());
            let scale = if length > most {
                (most / length) as f32
            } else {
                1.0
            };
            update = update.scaled(scale);
        }
        for (number, chunk) in layout.chunks.iter().enumerate() {
            if !layout.is_frozen(number) {
                let update = update.at_part(layout.rates[number]);
                state.update(chunk.clone(), &gradient[chunk.clone()], &update);
            }
        }
        if let Some(kept) = settings.learner.average {
            let share = (1.0 - kept) as f32;
            match &mut average {
                None => average = Some(state.values().to_vec()),
                Some(average) => {
                    for range in layout.trained() {
                        let values = &state.values()[range.clone()];
                        lockstep_nn::optimizer::average(&mut average[range], values, share);
                    }
                }
            }
        }
        marks.push(MarkedPlaces::of_loss(first_loss));
        marked.look(number + 1, state.values(), &mut marks);
    }
    let rows = questions(specimen, &model);
    let kept = average.clone().unwrap_or(state.values().to_vec());
    let said = bits(model.scores(&kept, &rows));
    let planes = settings.learner.optimizer.planes();
    let plane = |number: usize, state: &mut StateVector| match number < planes {
        true => bits(state.part_mut(StatePart::Plane(number))),
        false => Vec::new(),
    };
    Outcome {
        vectors: [
            bits(state.values()),
            plane(0, &mut state),
            plane(1, &mut state),
            bits(&average.unwrap_or_default()),
            said,
        ],
        losses: sums(&losses),
        recent: sums(&recent),
        marks,
        norm,
    }
}
