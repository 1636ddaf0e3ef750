//! Specimens trained on devices: alone, from one to another, and in gangs.

use super::outcome::{Outcome, bits, questions, sums};
use super::specimen::Specimen;
use crate::device::{Device, DeviceReplica, EpochPlan, ReplicaSetup, StateVectors};
use crate::prepare::exchange_plan;
use crate::snapshot::Snapshot;
use crate::{copies, peers};
use lockstep_gang::{
    AbortSwitch, CollectiveExt, Deadline, KeptShape, KeptState, KeptStep, Membership, Plan,
    Segment, SharingCollective, ShmCollective, ShmControl, Solo,
};
use lockstep_nn::LossSum;
use lockstep_resolve::TrainingSettings;
use std::ops::Range;
use std::thread;

/// Two epochs on a device, alone.
pub(super) fn on_device(specimen: &Specimen, device: &mut dyn Device) -> Outcome {
    let solo = |plan| Solo::new(plan, AbortSwitch::default()).unwrap();
    let part = Part::all(specimen);
    trained(specimen, &part, device, 0, |plan| Box::new(solo(plan)))
}

/// An epoch on each of two devices: the second goes on with what the first has come to.
pub(super) fn moved(
    specimen: &Specimen,
    first: &mut dyn Device,
    second: &mut dyn Device,
) -> Outcome {
    let solo = |plan: Plan| -> Box<dyn SharingCollective> {
        Box::new(Solo::new(plan, AbortSwitch::default()).unwrap())
    };
    let all = Part::all(specimen);
    let begun = Part {
        epochs: 0..1,
        ..all.clone()
    };
    let [values, first_plane, second_plane, average, _] =
        trained(specimen, &begun, first, 0, solo).vectors;
    let numbers = |bits: &[u32]| bits.iter().map(|&bits| f32::from_bits(bits)).collect();
    let rest = Part {
        epochs: 1..2,
        beginning: Snapshot {
            state: numbers(&values),
            planes: [first_plane, second_plane].map(|plane| numbers(&plane)),
            average: Some(numbers(&average)).filter(|average: &Vec<f32>| !average.is_empty()),
            ..all.beginning.clone()
        },
        ..all
    };
    trained(specimen, &rest, second, 0, solo)
}

/// What a device trains.
#[derive(Clone)]
struct Part {
    settings: TrainingSettings,
    beginning: Snapshot,
    epochs: Range<u64>,
    /// Whether the devices of the gang exchange gradients themselves.
    has_peers: bool,
}

impl Part {
    /// Both epochs, from the beginning on.
    fn all(specimen: &Specimen) -> Self {
        Self {
            settings: specimen.settings.clone(),
            beginning: specimen.model().1,
            epochs: 0..2,
            has_peers: false,
        }
    }
}

/// Two epochs of a gang of these devices: what all ranks have, which must be the same.
pub(super) fn in_gang(specimen: &Specimen, devices: Vec<Box<dyn Device>>) -> Outcome {
    exchanging(specimen, devices, false)
}

/// The same, which exchange gradients themselves or not.
pub(super) fn exchanging(
    specimen: &Specimen,
    devices: Vec<Box<dyn Device>>,
    has_peers: bool,
) -> Outcome {
    let settings = TrainingSettings {
        workers: devices.len(),
        gradients_only: true,
        ..specimen.settings.clone()
    };
    let (model, beginning) = specimen.model();
    let facts = specimen.sets.facts();
    let plan = exchange_plan(&settings, &facts, model.layout())
        .unwrap()
        .plan;
    let part = Part {
        settings,
        beginning,
        epochs: 0..2,
        has_peers,
    };
    let segment = Segment::create(ShmCollective::bytes_needed(&plan)).unwrap();
    ShmControl::new(&segment, &plan, 0).unwrap();
    let join = |rank| -> Box<dyn SharingCollective> {
        let membership = Membership {
            rank,
            generation: 0,
            deadline: Deadline::default(),
            abort: AbortSwitch::default(),
        };
        Box::new(ShmCollective::join(&segment, plan.clone(), &membership).unwrap())
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let ranks = devices.into_iter().enumerate().map(|(rank, mut device)| {
            let (join, part) = (&join, &part);
            scope.spawn(move || trained(specimen, part, &mut *device, rank, |_| join(rank)))
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let mut outcomes = outcomes.into_iter().enumerate();
    let (_, mut first) = outcomes.next().unwrap();
    for (rank, other) in outcomes {
        assert!(
            other.vectors == first.vectors,
            "rank {rank} has other vectors"
        );
        assert_eq!(other.norm, first.norm, "rank {rank}");
        for lane in plan.lanes_of(rank) {
            (first.losses[lane], first.recent[lane]) = (other.losses[lane], other.recent[lane]);
        }
    }
    first
}

/// What a rank copies of its state: each vector, zeros where others hold it.
fn copied(replica: &mut dyn DeviceReplica, shape: KeptShape) -> Vec<Vec<f32>> {
    let segment = Segment::create(shape.bytes()).unwrap();
    let kept = KeptState::create(&segment, 0, shape).unwrap();
    let writer = KeptState::open(&segment, 0).unwrap();
    let mut writer = writer.writer(0, 1, 1, None);
    writer.begin();
    replica.copy_state(&mut writer, true).unwrap();
    writer.complete(KeptStep {
        step: 1,
        facts: [0.0; 2],
    });
    let (version, kept) = (
        kept.newest().unwrap(),
        KeptState::open(&segment, 0).unwrap(),
    );
    let vectors = 0..shape.vectors;
    vectors.map(|vector| kept.vector(version, vector)).collect()
}

/// A copy has what the state comes to in these ranges.
fn check_copy(copied: &[Vec<f32>], whole: &StateVectors<'_>, held: &[Range<usize>]) {
    let [first, second] = whole.planes;
    let all = [
        whole.values,
        first,
        second,
        whole.average.unwrap_or_default(),
    ];
    let there: Vec<_> = all
        .into_iter()
        .filter(|vector| !vector.is_empty())
        .collect();
    assert_eq!(copied.len(), there.len());
    for (copied, whole) in copied.iter().zip(there) {
        for range in held {
            assert!(bits(&copied[range.clone()]) == bits(&whole[range.clone()]));
        }
    }
}

/// The epochs of a rank on a device.
fn trained(
    specimen: &Specimen,
    part: &Part,
    device: &mut dyn Device,
    rank: usize,
    join: impl FnOnce(Plan) -> Box<dyn SharingCollective>,
) -> Outcome {
    let (model, _) = specimen.model();
    let (sets, settings) = (&specimen.sets, &part.settings);
    let mut setup = ReplicaSetup::of(settings, &sets.facts(), model.layout(), rank).unwrap();
    let mut collective = join(setup.exchange.plan.clone());
    peers::agree(device, &mut setup, &mut *collective).unwrap();
    assert_eq!(setup.has_peers, part.has_peers);
    let steps = setup.steps_per_epoch;
    let replica = device.replica(sets, setup, &part.beginning, collective);
    let mut replica = replica.unwrap();
    for epoch in part.epochs.clone() {
        let first = epoch * steps;
        let plan = EpochPlan {
            epoch: epoch as u32 + 1,
            done: 0,
            first_step: first,
            updates: (first..first + steps)
                .map(|number| specimen.update(number))
                .collect(),
        };
        replica.begin_epoch(plan).unwrap();
        for _ in 0..steps {
            replica.compute().unwrap();
            assert_eq!(replica.finish(1).unwrap(), 1);
            replica.mark().unwrap();
        }
    }
    // Nobody has waited for the last step.
    let shape = copies::shape(settings, &sets.facts(), model.layout().len());
    let copied = copied(&mut *replica, shape);
    let collective = replica.collective();
    let chunks = 0..collective.plan().chunks();
    let held = chunks.filter(|&chunk| collective.holds(chunk));
    let held: Vec<_> = held.map(|chunk| collective.plan().chunk(chunk)).collect();
    replica.settle().unwrap();
    replica.gather_state().unwrap();
    replica.gather_planes().unwrap();
    replica.collective().barrier().unwrap();
    check_copy(&copied, &replica.vectors(), &held);
    let mut recent = vec![LossSum::default(); settings.lanes];
    replica.take_recent_losses(&mut recent).unwrap();
    let rows = questions(specimen, &model);
    let said = bits(replica.evaluation(None).unwrap().0.scores(&rows).unwrap());
    let losses = sums(replica.epoch_losses().unwrap());
    let (marks, norm) = (
        replica.take_marks().unwrap(),
        replica.gradient_norm().unwrap(),
    );
    let vectors = replica.vectors();
    let [first, second] = vectors.planes.map(bits);
    Outcome {
        vectors: [
            bits(vectors.values),
            first,
            second,
            bits(vectors.average.unwrap_or_default()),
            said,
        ],
        losses,
        recent: sums(&recent),
        marks,
        norm: norm.map(f64::to_bits),
    }
}
