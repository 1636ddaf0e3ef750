//! The processor as a device: lanes are computed together as far as they fit, and what they come to is there at once.

use crate::TrainError;
use crate::average::WeightAverage;
use crate::batches::Batches;
use crate::device::{
    Device, DeviceReplica, EpochPlan, Objective, ReplicaSetup, Scorer, StateVectors,
};
use crate::lanes::LaneProgram;
use crate::replica::{ExchangeSetup, GangReplica, StepPlan};
use crate::sets::Sets;
use crate::snapshot::Snapshot;
use lockstep_base::progress::{Phase, enter};
use lockstep_gang::{KeptWriter, SharingCollective};
use lockstep_nn::{Layout, LossSum, MarkedPlaces, Model, StatePart, StateVector, Step};
use std::ops::Range;

/// A network on the processor.
pub(crate) struct HostDevice {
    model: Model,
}

impl HostDevice {
    /// A device for this network.
    pub(crate) fn new(model: Model) -> Self {
        Self { model }
    }
}

impl Device for HostDevice {
    fn model(&self) -> &Model {
        &self.model
    }

    fn fingerprint(&self) -> u64 {
        lockstep_nn::fingerprint_in(self.model.precision())
    }

    fn replica<'a>(
        &'a mut self,
        sets: &'a Sets,
        setup: ReplicaSetup<'_>,
        beginning: &Snapshot,
        collective: Box<dyn SharingCollective>,
    ) -> Result<Box<dyn DeviceReplica + 'a>, TrainError> {
        let settings = setup.settings;
        let layout = self.model.layout();
        let planes = setup.optimizer().planes();
        let state = state_of(layout, beginning, planes);
        let exchange = ExchangeSetup {
            layout,
            exchange: &setup.exchange,
            compute: self.model.threads().clone(),
            planes,
            clip_norm: settings.learner.clip_norm,
            aside: setup.programs[0].aside.max(setup.programs[1].aside),
        };
        let gang = GangReplica::new(collective, state, exchange)?;
        let whole = setup.exchange.reads_whole_batch();
        let average = (settings.learner.average)
            .map(|kept| WeightAverage::new(kept, layout.trained(), beginning.average.clone()));
        Ok(Box::new(HostReplica {
            model: &mut self.model,
            sets,
            gang,
            average,
            batches: Batches::new(sets, settings, whole),
            programs: setup.programs,
            steps_per_epoch: setup.steps_per_epoch,
            seed: settings.seed,
            epoch: None,
            step: 0,
            epoch_losses: beginning.position.lane_sums.clone(),
            recent_losses: vec![LossSum::default(); settings.lanes],
            pass_lanes: Vec::with_capacity(settings.lanes),
            pass_losses: vec![LossSum::default(); settings.lanes],
            first_loss: 0.0,
            marked: setup.marked,
            marks: Vec::new(),
        }))
    }
}

/// What training begins with, in this process's memory, with so many vectors of the optimizer.
pub(crate) fn state_of(layout: &Layout, beginning: &Snapshot, planes: usize) -> StateVector {
    let mut state = StateVector::new(layout, &beginning.state, planes);
    for (number, plane) in beginning.planes.iter().enumerate().take(planes) {
        let own = state.part_mut(StatePart::Plane(number));
        own[..plane.len()].copy_from_slice(plane);
    }
    state
}

/// A replica in this process's memory.
struct HostReplica<'a> {
    model: &'a mut Model,
    sets: &'a Sets,
    gang: GangReplica,
    average: Option<WeightAverage>,
    batches: Batches,
    programs: [LaneProgram; 2],
    steps_per_epoch: u64,
    seed: u64,
    /// The epoch in progress.
    epoch: Option<EpochPlan>,
    /// Steps of it that are done.
    step: u64,
    epoch_losses: Vec<LossSum>,
    recent_losses: Vec<LossSum>,
    /// The rows of a pass's lanes, and what they came to.
    pass_lanes: Vec<Range<usize>>,
    pass_losses: Vec<LossSum>,
    /// The first lane's loss in the last step; 0 if it had no rows.
    first_loss: f64,
    marked: MarkedPlaces,
    marks: Vec<u32>,
}

impl HostReplica<'_> {
    /// Which program a step of the epoch follows.
    fn program(&self, step: u64) -> usize {
        usize::from(step + 1 == self.steps_per_epoch)
    }

    fn prepare(&mut self, step: u64) {
        let program = &self.programs[self.program(step)];
        self.batches.prepare(self.sets, program, step);
    }
}

impl DeviceReplica for HostReplica<'_> {
    fn collective(&mut self) -> &mut dyn SharingCollective {
        &mut *self.gang.collective
    }

    fn begin_epoch(&mut self, epoch: EpochPlan) -> Result<(), TrainError> {
        let was = enter(Phase::Data);
        self.batches.begin(epoch.epoch);
        self.step = epoch.done;
        if epoch.done == 0 {
            self.epoch_losses.fill(LossSum::default());
        }
        self.epoch = Some(epoch);
        self.prepare(self.step);
        enter(was);
        Ok(())
    }

    fn compute(&mut self) -> Result<(), TrainError> {
        let epoch = self.epoch.as_ref().expect("an epoch has begun");
        let program = &self.programs[self.program(self.step)];
        let number = epoch.first_step + self.step;
        let plan = StepPlan {
            program,
            update: epoch.updates[self.step as usize],
            inputs: self.batches.inputs(),
        };
        self.first_loss = 0.0;
        enter(Phase::Forward);
        self.gang.begin(&plan)?;
        let lanes_of_pass = self.model.capacity().lanes;
        for (pass, works) in program.work.chunks(lanes_of_pass).enumerate() {
            enter(Phase::Forward);
            let lanes = pass * lanes_of_pass..pass * lanes_of_pass + works.len();
            let places = &self.batches.lanes()[lanes.clone()];
            let rows = places[0].start..places[works.len() - 1].end;
            self.pass_lanes.clear();
            let within = |place: &Range<usize>| place.start - rows.start..place.end - rows.start;
            self.pass_lanes.extend(places.iter().map(within));
            let (batch, samples) = self.batches.rows(rows);
            let step = Step {
                seed: self.seed,
                number,
                samples,
                batch: program.batch,
            };
            let losses = &mut self.pass_losses[..works.len()];
            let own = (&self.pass_lanes[..], &mut *losses);
            (self.gang).gradient(self.model, &plan, lanes, (batch, step), own)?;
            for (work, &loss) in works.iter().zip(&*losses) {
                if !loss.loss.is_finite() {
                    return Err(TrainError::Diverged {
                        loss: loss.loss,
                        step: number + 1,
                        epoch: epoch.epoch,
                    });
                }
                if work.lane == 0 {
                    self.first_loss = loss.loss;
                }
                self.epoch_losses[work.lane] += loss;
                self.recent_losses[work.lane] += loss;
            }
        }
        enter(Phase::Exchange);
        self.gang.computed(&plan)?;
        enter(Phase::Data);
        // The next batch is made ready while the peers' parts are on their way.
        if self.step + 1 < self.steps_per_epoch {
            self.prepare(self.step + 1);
        }
        Ok(())
    }

    fn finish(&mut self, vote: u64) -> Result<u64, TrainError> {
        let epoch = self.epoch.as_ref().expect("an epoch has begun");
        let plan = StepPlan {
            program: &self.programs[self.program(self.step)],
            update: epoch.updates[self.step as usize],
            inputs: match self.step + 1 < self.steps_per_epoch {
                true => self.batches.inputs_before(),
                false => self.batches.inputs(),
            },
        };
        enter(Phase::Exchange);
        let vote = self.gang.finish(&plan, vote)?;
        if let Some(average) = &mut self.average {
            enter(Phase::Update);
            average.add(self.gang.state.values());
        }
        self.step += 1;
        Ok(vote)
    }

    fn mark(&mut self) -> Result<(), TrainError> {
        let epoch = self.epoch.as_ref().expect("an epoch has begun");
        self.marks.push(MarkedPlaces::of_loss(self.first_loss));
        let step = epoch.first_step + self.step;
        self.marked
            .look(step, self.gang.state.values(), &mut self.marks);
        Ok(())
    }

    fn take_marks(&mut self) -> Result<Vec<u32>, TrainError> {
        Ok(std::mem::take(&mut self.marks))
    }

    fn epoch_losses(&mut self) -> Result<&mut [LossSum], TrainError> {
        Ok(&mut self.epoch_losses)
    }

    fn take_recent_losses(&mut self, into: &mut [LossSum]) -> Result<(), TrainError> {
        into.copy_from_slice(&self.recent_losses);
        self.recent_losses.fill(LossSum::default());
        Ok(())
    }

    fn gradient_norm(&mut self) -> Result<Option<f64>, TrainError> {
        Ok(self.gang.gradient_norm())
    }

    fn settle(&mut self) -> Result<(), TrainError> {
        Ok(())
    }

    fn gather_state(&mut self) -> Result<(), TrainError> {
        self.gang.gather_state()
    }

    fn gather_planes(&mut self) -> Result<(), TrainError> {
        self.gang.gather_planes()
    }

    fn vectors(&mut self) -> StateVectors<'_> {
        let [values, first, second] = self.gang.state.vectors();
        StateVectors {
            values,
            planes: [first, second],
            average: self.average.as_ref().and_then(WeightAverage::values),
        }
    }

    fn copy_state(&mut self, to: &mut KeptWriter, all: bool) -> Result<(), TrainError> {
        let average = self.average.as_ref().and_then(WeightAverage::values);
        self.gang.copy_state(average, to, all);
        Ok(())
    }

    fn evaluation<'b>(
        &'b mut self,
        weights: Option<&'b [f32]>,
    ) -> Result<(Box<dyn Scorer + 'b>, &'b mut dyn SharingCollective), TrainError> {
        let average = self.average.as_ref().and_then(WeightAverage::values);
        let own = average.unwrap_or(self.gang.state.values());
        let scorer = HostScorer {
            model: self.model,
            values: weights.unwrap_or(own),
        };
        Ok((Box::new(scorer), &mut *self.gang.collective))
    }
}

/// A network on the processor with these weights.
pub(crate) struct HostScorer<'a> {
    pub(crate) model: &'a mut Model,
    pub(crate) values: &'a [f32],
}

impl Scorer for HostScorer<'_> {
    fn objective(&self) -> Objective {
        Objective::of(self.model)
    }

    fn scores(&mut self, inputs: &[f32]) -> Result<&[f32], TrainError> {
        Ok(self.model.scores(self.values, inputs))
    }
}
