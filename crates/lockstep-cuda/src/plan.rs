//! What lies where in a GPU's memory, and what is launched: all of it worked out from a setup, without a GPU.

use crate::data_set::SetMemory;
use crate::error::CudaError;
use crate::forecast::MemoryNeeded;
use crate::launch::Launch;
use crate::memory::DeviceSlice;
use crate::network::{
    AverageMemory, BatchMemory, Chain, Clip, Constant, LaneTables, Learning, LossKernel, LossPass,
    MarkMemory, OptimizerKernel, Pass, PassKind, PassMemory, PeerTables, Planner, UpdateMemory,
};
use crate::ring::{SLOTS, SlotLists};
use crate::setup::{Exchange, Setup, WorkerBatch};
use lockstep_nn::DROPOUT_DOMAIN;

/// Numbers that a lane's gradient is a multiple of, so that each begins as aligned as the first.
const GRADIENT_ALIGNMENT: usize = 64;

/// What lies where.
pub(crate) struct Plan {
    chain: Chain,
    loss: LossKernel,
    optimizer: OptimizerKernel,
    pub(crate) batch: BatchMemory,
    pub(crate) update: UpdateMemory,
    /// Where gradients are clipped, where the weights are averaged, and where they are marked.
    pub(crate) clip: Option<Clip>,
    pub(crate) average: Option<AverageMemory>,
    pub(crate) marks: Option<MarkMemory>,
    /// Other values to score with.
    pub(crate) loaded: DeviceSlice<f32>,
    /// Batches that the host has prepared; empty if the data set is resident.
    pub(crate) ring: DeviceSlice<u32>,
    /// Of a full batch, and of the last one.
    pub(crate) tables: [BatchTables; 2],
    /// The same of what devices exchange themselves.
    pub(crate) peers: Option<[PeerTables; 2]>,
    /// What is written once.
    pub(crate) constants: Vec<Constant>,
    bytes: [usize; 2],
    needs: MemoryNeeded,
}

/// What the device knows of the lanes of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchTables {
    pub(crate) lanes: LaneTables,
    /// Pairs of lanes: the second is added to the first.
    pub(crate) adds: DeviceSlice<u32>,
    /// For each lane how many sums are complete after it.
    pub(crate) merges: DeviceSlice<u32>,
}

impl BatchTables {
    fn new(planner: &mut Planner, batch: &WorkerBatch) -> Self {
        Self {
            lanes: LaneTables::new(planner, batch.lanes.len(), batch.longest_lane()),
            adds: planner.keep(2 * batch.adds.len()),
            merges: planner.keep(batch.lanes.len()),
        }
    }

    /// What the tables hold: each with its numbers.
    pub(crate) fn content(&self, batch: &WorkerBatch) -> [(DeviceSlice<u32>, Vec<u32>); 4] {
        let mut rows = vec![0];
        for lane in &batch.lanes {
            rows.push(rows[rows.len() - 1] + lane.rows as u32);
        }
        let numbers = batch.lanes.iter().map(|lane| lane.lane as u32);
        let adds = batch.adds.iter();
        let adds = adds.flat_map(|&(into, from)| [into as u32, from as u32]);
        [
            (self.lanes.rows, rows),
            (self.lanes.numbers, numbers.collect()),
            (self.adds, adds.collect()),
            (
                self.merges,
                batch.merges().unwrap_or_else(|| vec![0; batch.lanes.len()]),
            ),
        ]
    }
}

impl Plan {
    /// Plans the memory at two addresses: of what is kept, and of what comes and goes.
    pub(crate) fn new(setup: &Setup, addresses: [u64; 2]) -> Result<Self, CudaError> {
        setup.check()?;
        let model = &setup.model;
        let lanes = setup.batches.each_ref();
        let lanes = lanes.map(|batch| (batch.lanes.len(), batch.longest_lane()));
        let rows = [setup.most_rows(), setup.batch_rows()];
        let mut planner = Planner::new(rows, lanes, addresses);
        let numbers = model.layout.len();
        let stride = numbers.next_multiple_of(GRADIENT_ALIGNMENT);
        let batch = BatchMemory::new(&mut planner, setup);
        let slot_words = match setup.inputs.is_prepared() {
            false => 0,
            true => SlotLists::new(0, setup.slot_shape(), setup.batch_rows()).1,
        };
        let ring = planner.keep(SLOTS * slot_words);
        let [batches, _] = planner.bytes();
        let planes = setup.planes();
        let update = UpdateMemory {
            values: planner.keep(numbers),
            planes: [0, 1].map(|plane| planner.keep(if plane < planes { numbers } else { 0 })),
            rates: batch.rates,
            // There is room for the sum of all workers, though this one may be without rows.
            gradients: planner.keep(planner.most_lanes().max(1) * stride),
            stride,
            progress: batch.progress,
        };
        let loaded = planner.keep(numbers);
        let average = setup.average;
        let average = average.map(|kept| AverageMemory::new(&mut planner, numbers, kept));
        let longest = setup.clip_norm;
        let clip = longest.map(|longest| Clip::new(&mut planner, &model.layout, longest));
        let marks =
            (setup.marks > 0).then(|| MarkMemory::new(&mut planner, &model.layout, setup.marks));
        let [parameters, _] = planner.bytes();
        let gradients = size_of::<f32>() * update.gradients.len();
        let [full, last] = &setup.batches;
        let tables = [full, last].map(|batch| BatchTables::new(&mut planner, batch));
        let sums = setup.exchange.peer_sums();
        let peers = sums.map(|[of_full, of_last]| {
            [(full, of_full), (last, of_last)]
                .map(|(batch, sums)| PeerTables::new(&mut planner, batch, sums))
        });
        let of_peers = peers.map_or(0, |_| setup.peer_shape().bytes());
        let chain = Chain::new(&model.operations, &mut planner)?;
        let bytes = planner.bytes();
        Ok(Self {
            loaded,
            average,
            clip,
            marks,
            ring,
            needs: MemoryNeeded {
                batches,
                parameters: parameters - batches - gradients,
                gradients: gradients + of_peers,
                activations: bytes[0] + bytes[1] - parameters,
            },
            chain,
            loss: LossKernel::new(model.loss, setup.shape.as_ref()),
            optimizer: OptimizerKernel::new(setup.optimizer),
            batch,
            update,
            tables,
            peers,
            constants: planner.take_constants(),
            bytes,
        })
    }

    /// Bytes that are kept, and bytes that are needed beside them.
    pub(crate) fn bytes(&self) -> [usize; 2] {
        self.bytes
    }

    /// What the memory is for.
    pub(crate) fn needs(&self) -> MemoryNeeded {
        self.needs
    }

    fn pass<'a>(
        &'a self,
        setup: &'a Setup,
        kind: PassKind,
        values: DeviceSlice<f32>,
        (rows, last): (usize, bool),
    ) -> Pass<'a> {
        let memory = PassMemory {
            values,
            gradients: self.update.gradients,
            stride: self.update.stride,
            samples: self.batch.samples,
            progress: self.batch.progress,
            dropout_key: setup.seed ^ DROPOUT_DOMAIN,
        };
        let lanes = &self.tables[usize::from(last)].lanes;
        let samples = setup.batches[usize::from(last)].samples;
        let layout = &setup.model.layout;
        Pass::new(kind, (rows, samples), lanes, memory, layout)
    }

    /// The launches of a step on a full batch, or on the last one of an epoch. The rows are samples of this set, or those
    /// that the host has prepared. If devices exchange gradients themselves, [`Plan::end_by_peers`] follows.
    pub(crate) fn step(&self, setup: &Setup, set: Option<SetMemory>, last: bool) -> Vec<Launch> {
        let which = usize::from(last);
        let of_batch = &setup.batches[which];
        let rows = of_batch.rows();
        let Self { batch, chain, .. } = self;
        let mut pass = self.pass(setup, PassKind::Train, self.update.values, (rows, last));
        let mut is_ended = false;
        // A worker may have no rows of a short batch.
        if rows > 0 {
            let begin = batch.begin_step();
            let mut x = batch.rows.inputs;
            let targets = match set {
                Some(SetMemory::Rows(set)) => {
                    if chain.gathers() {
                        x = set.inputs;
                        pass.by_sample = Some((x, begin));
                    } else {
                        batch.gather(&mut pass, set.inputs, setup.model.inputs(), begin);
                    }
                    batch.targets.arguments(set, Some(batch.samples))
                }
                of_images => {
                    let at = self.ring.address();
                    let (slot, _) = SlotLists::new(at, setup.slot_shape(), rows);
                    let stride = self.ring.len() / SLOTS;
                    batch.take(&mut pass, &slot, (SLOTS, stride), begin);
                    if let Some(SetMemory::Images(images)) = of_images {
                        let of_rows = (
                            batch.samples.part(0..rows),
                            batch.seen.part(0..rows),
                            batch.mixed.part(0..slot.mixed.len()),
                        );
                        for launch in images.see(of_rows, x) {
                            pass.push(launch);
                        }
                    }
                    batch.targets.arguments(batch.rows, None)
                }
            };
            let loss = LossPass {
                kernel: &self.loss,
                batch,
                targets,
            };
            chain.step(&mut pass, x, &loss);
            is_ended = self.learn(&mut pass, setup, which);
        }
        match self.peers {
            Some(_) => pass.into_launches(),
            // Without rows nothing was learned.
            None => self.end(pass, setup, which, (is_ended, rows > 0)),
        }
    }

    /// The launches that end such a step once all workers have handed over their partial sums.
    pub(crate) fn end_by_peers(&self, setup: &Setup, last: bool) -> Vec<Launch> {
        let which = usize::from(last);
        let rows = setup.batches[which].rows();
        let mut pass = self.pass(setup, PassKind::Train, self.update.values, (rows, last));
        let layout = &setup.model.layout;
        if let Some(peers) = &self.peers {
            peers[which].take(&mut pass, layout, &self.update);
        }
        let sums = (self.tables[which].adds.first(0), 0);
        let how = (self.optimizer, self.clip.as_ref());
        self.update.launch(&mut pass, layout, how, sums);
        self.end(pass, setup, which, (false, true))
    }

    /// What ends a step, if that was not done, and what follows an update, if there was one.
    fn end(
        &self,
        mut pass: Pass<'_>,
        setup: &Setup,
        which: usize,
        (is_ended, is_updated): (bool, bool),
    ) -> Vec<Launch> {
        let Self { batch, update, .. } = self;
        if !is_ended {
            batch.push_end_step(&mut pass, &setup.batches);
        }
        if let Some(average) = self.average.as_ref().filter(|_| is_updated) {
            average.launch(&mut pass, &setup.model.layout, update);
        }
        let mut launches = pass.into_launches();
        let of_batch = &setup.batches[which];
        let look = |marks: &MarkMemory| marks.look(update.values, batch, of_batch);
        launches.extend(self.marks.iter().map(look));
        launches
    }

    /// Appends what becomes of the gradients: an update, or the sums that a gang exchanges. Returns whether that ends the
    /// step, too.
    fn learn(&self, pass: &mut Pass<'_>, setup: &Setup, which: usize) -> bool {
        let (batch, tables) = (&setup.batches[which], &self.tables[which]);
        let layout = &setup.model.layout;
        let learning = Learning {
            layout,
            batch: &self.batch,
            batches: &setup.batches,
            update: &self.update,
            adds: tables.adds,
            result: batch.partials.first().copied().unwrap_or(0),
            merges: tables.merges,
        };
        // What is clipped has to be known whole before any of it is used.
        let is_alone = setup.exchange == Exchange::Alone;
        if is_alone && batch.merges().is_some() && self.clip.is_none() {
            return learning.update(pass, self.optimizer);
        }
        learning.form(pass);
        if is_alone {
            let sums = (tables.adds, learning.result);
            let how = (self.optimizer, self.clip.as_ref());
            (self.update).launch(pass, layout, how, sums);
        } else {
            self.update.sum(pass, layout, tables.adds);
        }
        if let Some(peers) = &self.peers {
            peers[which].hand_over(pass, layout, &self.update);
        }
        false
    }

    /// The launches that score so many rows with these values.
    pub(crate) fn scores(
        &self,
        setup: &Setup,
        values: DeviceSlice<f32>,
        rows: usize,
    ) -> Vec<Launch> {
        let mut pass = self.pass(setup, PassKind::Evaluate, values, (rows, false));
        let Self { chain, batch, .. } = self;
        chain.forward(&mut pass, batch.rows.inputs, batch.scores);
        pass.into_launches()
    }
}
