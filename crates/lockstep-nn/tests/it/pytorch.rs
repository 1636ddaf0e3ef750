//! What PyTorch computes, this crate computes: gradients of whole models, running statistics, losses,
//! optimizers, learning rates, and the losses of whole networks over a few steps, to 1e-4. The numbers to
//! compare with are in `reference/`, made by a script beside them.
//!
//! Dropout draws other numbers than PyTorch's, so its gradients are compared with differences of the loss
//! instead: for a given step the mask is given, and the loss a plain function of the parameters.
//!
//! Which instructions compute is settled once a process. The last test runs all others in processes of
//! their own, at every level that this machine has, and wants the same bits from each.

use crate::reference::{Reference, TOLERANCE, assert_agree};
use lockstep_base::simd::{ISA_VARIABLE, Isa};
use lockstep_nn::fixed16::{ENGINE_VARIABLE, Engine};
use lockstep_nn::layers::{Dropout, Linear, Residual};
use lockstep_nn::{
    Batch, Collect, Dims, LayerSpec, LossSum, Model, NamedLayer, Optimizer, Role, STATISTICS_SHARE,
    Step, Targets, optimizer,
};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::Command;

/// How a test begins what it says about its bits.
pub(crate) const MARK: &str = "bits of ";

/// A hash of everything a test computed.
#[derive(Default)]
struct Bits(DefaultHasher);

impl Bits {
    fn add(&mut self, numbers: &[f32]) {
        numbers.iter().for_each(|x| x.to_bits().hash(&mut self.0));
    }

    fn add_loss(&mut self, sum: LossSum) {
        (sum.loss.to_bits(), sum.correct, sum.rows).hash(&mut self.0);
    }

    /// Says it where the process that started this one can read it.
    fn say(&self, what: &str) {
        println!("{MARK}{what}: {:016x}", self.0.finish());
    }
}

/// The loss over some rows with the running statistics and without dropout.
fn evaluate(model: &mut Model, state: &[f32], batch: Batch<'_>) -> LossSum {
    let (loss, outputs) = (model.loss(), model.outputs());
    let scores = model.scores(state, batch.inputs).chunks_exact(outputs);
    let mut sum = LossSum::default();
    for (row, scores) in scores.enumerate() {
        sum += loss.row(scores, batch.targets.of_row(row, outputs));
    }
    sum
}

#[test]
fn models_agree_with_pytorch() {
    let mut bits = Bits::default();
    for case in Reference::load().models {
        let rows = case.labels.len();
        let mut model = Model::new(&case.layers(), case.input(), rows).unwrap();
        let layout = model.layout().clone();
        let state = case.state(&layout);
        let batch = Batch {
            inputs: &case.inputs,
            targets: Targets::Classes(&case.labels),
        };

        let evaluated = evaluate(&mut model, &state, batch);
        let what = format!("{}, evaluated", case.name);
        case.evaluated.assert_agrees(&what, evaluated);

        let samples: Vec<u32> = (0..rows as u32).collect();
        let step = Step {
            seed: 0,
            number: 0,
            samples: &samples,
            batch: case.batch,
        };
        let mut collect = Collect::new(&state, &layout);
        let trained = model.gradient(&mut collect, batch, step);
        let gradient = collect.gradient;
        let what = format!("{}, trained", case.name);
        case.trained.assert_agrees(&what, trained);
        case.assert_tensors_agree(&gradient, &layout, Role::Parameter);

        let mut after = state.clone();
        let statistics = layout.parameters..layout.len();
        let observed = &gradient[statistics.clone()];
        optimizer::blend(&mut after[statistics], observed, STATISTICS_SHARE);
        case.assert_tensors_agree(&after, &layout, Role::Statistic);

        bits.add(&gradient);
        bits.add(&after);
        bits.add_loss(evaluated);
        bits.add_loss(trained);
    }
    bits.say("models");
}

/// The kinds of layers in some networks, and of those inside of them.
fn kinds(layers: &[NamedLayer], found: &mut BTreeSet<&'static str>) {
    for layer in layers {
        found.insert(layer.spec.kind());
        if let LayerSpec::Residual(Residual { body, shortcut }) = &layer.spec {
            kinds(body, found);
            kinds(shortcut, found);
        }
    }
}

#[test]
fn every_kind_of_layer_is_compared_with_pytorch() {
    // Its numbers are others than PyTorch's; the last test but one looks at it.
    let mut found = BTreeSet::from(["dropout"]);
    for case in Reference::load().models {
        kinds(&case.layers(), &mut found);
    }
    let every: BTreeSet<&str> = LayerSpec::KINDS.iter().copied().collect();
    assert_eq!(found, every, "add a case to make_reference.py");
}

#[test]
fn loss_curves_of_whole_networks_agree_with_pytorch() {
    let mut bits = Bits::default();
    for case in Reference::load().curves {
        let mut model = Model::new(&case.layers(), case.input(), case.rows).unwrap();
        let layout = model.layout().clone();
        let mut state = case.state(&layout);
        let inputs = case.inputs();
        let samples: Vec<u32> = (0..case.rows as u32).collect();
        let classes = model.outputs() as u32;
        let labels: Vec<u32> = samples.iter().map(|row| row % classes).collect();
        let batch = Batch {
            inputs: &inputs,
            targets: Targets::Classes(&labels),
        };
        let sgd = Optimizer::Sgd {
            momentum: 0.9,
            nesterov: false,
            weight_decay: 0.01,
        };
        let mut planes = [vec![0.0; layout.parameters], Vec::new()];
        let mut losses = Vec::new();
        for number in 0..case.losses.len() as u64 {
            let step = Step {
                seed: 0,
                number,
                samples: &samples,
                batch: case.rows,
            };
            let mut collect = Collect::new(&state, &layout);
            let sum = model.gradient(&mut collect, batch, step);
            losses.push((sum.loss / sum.rows as f64) as f32);
            let gradient = collect.gradient;
            let (gradient, observed) = gradient.split_at(layout.parameters);
            let (parameters, statistics) = state.split_at_mut(layout.parameters);
            let [momentum, none] = &mut planes;
            sgd.at(number, case.rate)
                .apply(parameters, gradient, [momentum, none]);
            optimizer::blend(statistics, observed, STATISTICS_SHARE);
        }
        assert_agree(&case.name, &losses, &case.losses, TOLERANCE);
        let sum = evaluate(&mut model, &state, batch);
        let what = format!("{}, evaluated", case.name);
        let evaluated = (sum.loss / sum.rows as f64) as f32;
        assert_agree(&what, &[evaluated], &[case.evaluated], TOLERANCE);
        bits.add(&losses);
        bits.add(&state);
    }
    bits.say("curves");
}

#[test]
fn optimizers_agree_with_pytorch() {
    let mut bits = Bits::default();
    for case in Reference::load().optimizers {
        let optimizer = case.optimizer();
        let len = case.start.len();
        let mut parameters = case.start.clone();
        let mut planes = [vec![0.0; len], vec![0.0; len]];
        let steps = case.gradients.chunks(len).zip(case.after.chunks(len));
        assert_eq!(steps.len(), case.rates.len());
        for (number, (gradient, theirs)) in steps.enumerate() {
            let [first, second] = &mut planes;
            optimizer.at(number as u64, case.rates[number]).apply(
                &mut parameters,
                gradient,
                [first, second],
            );
            let what = format!("{} after step {number}", case.name());
            assert_agree(&what, &parameters, theirs, TOLERANCE);
        }
        bits.add(&parameters);
    }
    bits.say("optimizers");
}

#[test]
fn schedules_agree_with_pytorch() {
    let mut bits = Bits::default();
    for case in Reference::load().schedules {
        let schedule = case.schedule();
        let steps = 0..case.rates.len() as u64;
        let ours: Vec<f32> = steps.map(|number| schedule.rate(number)).collect();
        assert_agree(&format!("{schedule:?}"), &ours, &case.rates, TOLERANCE);
        bits.add(&ours);
    }
    bits.say("schedules");
}

/// Numbers in -1..1 without a pattern.
fn numbers(len: usize) -> Vec<f32> {
    let mut x = 1u32;
    let mut next = || {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (x >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn gradients_under_dropout_agree_with_differences_of_the_loss() {
    /// Wide enough for the loss's rounding not to matter, narrow enough for a slope.
    const DELTA: f32 = 1.0 / 128.0;
    /// What single precision leaves of a difference.
    const TOLERANCE: f64 = 1e-3;
    /// Numbers of each tensor that are moved.
    const PLACES: usize = 24;
    const INPUTS: usize = 40;

    use LayerSpec::{BatchNorm, Relu};
    let drop = || LayerSpec::Dropout(Dropout { p: 0.4 });
    let linear = |out| LayerSpec::Linear(Linear { out });
    let stacks = [
        // 40 x 500 weights are more than one chunk.
        vec![linear(500), drop(), linear(3)],
        vec![
            drop(),
            linear(21),
            BatchNorm,
            Relu,
            drop(),
            linear(9),
            drop(),
            linear(3),
        ],
    ];
    let samples: Vec<u32> = (100..116).collect();
    let inputs = numbers(samples.len() * INPUTS);
    let labels: Vec<u32> = samples.iter().map(|i| i * i % 3).collect();
    let batch = Batch {
        inputs: &inputs,
        targets: Targets::Classes(&labels),
    };
    let step = Step {
        seed: 5,
        number: 77,
        samples: &samples,
        batch: samples.len(),
    };
    let mut bits = Bits::default();
    for layers in stacks {
        let mut model = Model::new(
            &NamedLayer::stack(layers.clone()),
            Dims::vector(INPUTS),
            samples.len(),
        )
        .unwrap();
        let layout = model.layout().clone();
        let mut state = model.initial_state(1);
        if let Some(norm) = layers.iter().position(|layer| *layer == BatchNorm) {
            let name = format!("layers.{norm}.bias");
            let shift = layout.tensors.iter().find(|tensor| tensor.name == name);
            let shift = shift.expect("batch-norm has a bias").range.clone();
            // A kink would spoil a difference. No number of 16 normalised ones is beyond 15/4: this
            // keeps every unit on its side of the kink, in turns on and off.
            for (i, shift) in state[shift].iter_mut().enumerate() {
                *shift = if i % 2 == 0 { 4.0 } else { -4.0 };
            }
        }
        let mut pass = |state: &[f32]| {
            let mut collect = Collect::new(state, &layout);
            let sum = model.gradient(&mut collect, batch, step);
            (sum.loss / sum.rows as f64, collect.gradient)
        };
        let (_, gradient) = pass(&state);
        bits.add(&gradient);

        for tensor in &layout.tensors {
            if tensor.role == Role::Statistic {
                continue;
            }
            let stride = tensor.range.len().div_ceil(PLACES);
            let places: Vec<usize> = tensor.range.clone().step_by(stride).collect();
            let mut slope = |&place: &usize| {
                let at = state[place];
                state[place] = at + DELTA;
                let (above, _) = pass(&state);
                state[place] = at - DELTA;
                let (below, _) = pass(&state);
                state[place] = at;
                (above - below) / f64::from(2.0 * DELTA)
            };
            let slopes: Vec<f64> = places.iter().map(&mut slope).collect();
            let ours: Vec<f32> = places.iter().map(|&place| gradient[place]).collect();
            let what = format!("{} of {layers:?}", tensor.name);
            assert_agree(&what, &ours, &slopes, TOLERANCE);
        }
    }
    bits.say("dropout");
}

#[test]
fn every_level_of_instructions_computes_the_same_bits() {
    let this = "every_level_of_instructions_computes_the_same_bits";
    // With the engine that fixed16 uses at the level, or with another one.
    let levels = [
        (Isa::Portable, Engine::Plain),
        (Isa::Avx2, Engine::Avx2),
        (Isa::Avx512, Engine::Vnni),
        (Isa::Avx512, Engine::Amx),
    ];
    let available = levels
        .into_iter()
        .filter(|&(level, engine)| level <= Isa::detect() && engine <= Engine::detected());
    let all_said = available.map(|(level, engine)| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "pytorch::",
                "threads::lanes",
                "--skip",
                this,
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ISA_VARIABLE, level.name())
            .env(ENGINE_VARIABLE, engine.name())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let name = format!("{} with {}", level.name(), engine.name());
        assert!(output.status.success(), "at {name}:\n{text}{errors}");
        let marked = text.lines().filter_map(|line| line.split_once(MARK));
        let said: BTreeSet<String> = marked.map(|(_, said)| said.to_owned()).collect();
        (name, said)
    });
    let all_said: Vec<_> = all_said.collect();
    let (_, first) = &all_said[0];
    assert_eq!(first.len(), 17, "every other test says its bits: {first:?}");
    for (level, said) in &all_said[1..] {
        assert_eq!(first, said, "portable code against {level}");
    }
}
