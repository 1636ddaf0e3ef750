//! How long single layers take on a GPU, kernel by kernel: for benchmarks.
//!
//! A pass is repeated within a graph, and the graph is launched some times and waited for. So neither the launches nor the
//! clock are part of what is measured. Numbers are random, since some GPUs are faster with zeros.

use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::launch::{Launch, LoadedLaunch};
use crate::memory::{DeviceMemory, DeviceSlice};
use crate::network::{Chain, LaneTables, Pass, PassKind, PassMemory, Planner, Progress};
use crate::streams::{Graph, Stream};
use crate::timing::KernelTime;
use lockstep_base::random;
use lockstep_nn::{Layout, OperationChain};
use std::time::{Duration, Instant};

/// How often a pass is repeated in a graph, and how often the graph is launched to find the median.
const REPEATS: usize = 10;
const LAUNCHES: usize = 5;

/// Numbers that are drawn; memory is filled by them over and over.
const DRAWN: usize = 1 << 20;

/// What of a layer is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedPass {
    /// The way there, in training.
    Forward,
    /// The gradient by the input alone.
    InputGradient,
    /// The gradients of the parameters alone.
    WeightGradient,
    /// Both gradients.
    Backward,
}

/// How long a pass takes.
#[derive(Debug, Clone, PartialEq)]
pub struct PassTime {
    /// All of it.
    pub whole: Duration,
    /// Its kernels: each alone, over and over.
    pub kernels: Vec<KernelTime>,
}

/// Layers in a row on a GPU, with random numbers.
pub struct TimedLayers {
    stream: Stream,
    _memory: DeviceMemory,
    gpu: Gpu,
    layout: Layout,
    frozen: Layout,
    rows: usize,
    parts: Parts,
}

/// What lies where.
struct Parts {
    chain: Chain,
    lanes: LaneTables,
    memory: PassMemory,
    /// Input and output, and the gradients by them.
    inputs: [DeviceSlice<f32>; 2],
    outputs: [DeviceSlice<f32>; 2],
    bytes: [usize; 2],
}

impl Parts {
    fn new(
        layers: &OperationChain,
        layout: &Layout,
        lanes: &[usize],
        addresses: [u64; 2],
    ) -> Result<Self, CudaError> {
        let rows = lanes.iter().sum();
        let longest = lanes.iter().copied().max().unwrap_or(0);
        let mut planner = Planner::new([rows; 2], [(lanes.len(), longest); 2], addresses);
        let tables = LaneTables::new(&mut planner, lanes.len(), longest);
        let memory = PassMemory {
            values: planner.keep(layout.len()),
            gradients: planner.keep(lanes.len() * layout.len()),
            stride: layout.len(),
            samples: planner.keep(rows),
            progress: planner.keep::<Progress>(1),
            dropout_key: 1,
        };
        let [inputs, outputs] = [layers.input, layers.output()].map(|dims| {
            let numbers = rows * dims.len();
            [planner.keep(numbers), planner.keep(numbers)]
        });
        Ok(Self {
            chain: Chain::new(layers, &mut planner)?,
            lanes: tables,
            memory,
            inputs,
            outputs,
            bytes: planner.bytes(),
        })
    }
}

impl TimedLayers {
    /// Brings layers of a network to a GPU. Each of `lanes` has so many rows.
    ///
    /// # Errors
    /// When there is no kernel for one of them, or the GPU has too little memory.
    pub fn new(
        gpu: &Gpu,
        layers: &OperationChain,
        layout: &Layout,
        lanes: &[usize],
    ) -> Result<Self, CudaError> {
        let [kept, scratch] = Parts::new(layers, layout, lanes, [0; 2])?.bytes;
        let memory = DeviceMemory::new(&gpu.device, kept + scratch, "layers that are timed")?;
        let at = memory.address();
        let parts = Parts::new(layers, layout, lanes, [at, at + kept as u64])?;
        let stream = Stream::new(&gpu.device)?;
        let mut ends = vec![0];
        for rows in lanes {
            ends.push(ends[ends.len() - 1] + *rows as u32);
        }
        let rows = lanes.iter().sum::<usize>();
        let samples: Vec<u32> = (0..rows as u32).collect();
        let numbers: Vec<u32> = (0..lanes.len() as u32).collect();
        memory.write(&stream, parts.lanes.rows, &ends)?;
        memory.write(&stream, parts.lanes.numbers, &numbers)?;
        memory.write(&stream, parts.memory.samples, &samples)?;
        memory.clear(&stream, parts.memory.progress)?;
        let mut draws = random::Stream::new(1, 0);
        let drawn: Vec<f32> = (0..DRAWN).map(|_| draws.unit_f32() - 0.5).collect();
        let [x, _] = parts.inputs;
        let [y, dy] = parts.outputs;
        for slice in [x, y, dy, parts.memory.values] {
            for first in (0..slice.len()).step_by(DRAWN) {
                let len = DRAWN.min(slice.len() - first);
                memory.write(&stream, slice.part(first..first + len), &drawn[..len])?;
            }
        }
        let mut frozen = layout.clone();
        frozen.rates.fill(0.0);
        Ok(Self {
            stream,
            _memory: memory,
            gpu: gpu.clone(),
            layout: layout.clone(),
            frozen,
            rows,
            parts,
        })
    }

    /// Times a pass.
    ///
    /// # Errors
    /// When the driver refuses, or a kernel fails.
    pub fn time(&self, pass: TimedPass) -> Result<PassTime, CudaError> {
        let launches = self.launches(pass).into_iter();
        let launches = launches.map(|launch| launch.load(&*self.gpu.device));
        let launches = launches.collect::<Result<Vec<_>, _>>()?;
        let kernels = launches.iter().map(|launch| {
            Ok(KernelTime {
                kernel: launch.kernel,
                blocks: launch.grid.blocks,
                threads: launch.grid.threads,
                time: self.time_launches(std::slice::from_ref(launch))?,
            })
        });
        Ok(PassTime {
            kernels: kernels.collect::<Result<_, CudaError>>()?,
            whole: self.time_launches(&launches)?,
        })
    }

    /// How long these launches take, one after the other.
    fn time_launches(&self, launches: &[LoadedLaunch]) -> Result<Duration, CudaError> {
        let repeated = (0..REPEATS).flat_map(|_| launches.iter().cloned());
        let repeated: Vec<_> = repeated.collect();
        let graph = Graph::new(&self.gpu.device, &self.stream, &repeated)?;
        let run = || {
            self.stream.wait()?;
            let begin = Instant::now();
            // SAFETY: the memory is dropped after the stream, which is waited for.
            unsafe { self.stream.launch_graph(&graph)? };
            self.stream.wait()?;
            Ok(begin.elapsed())
        };
        run()?;
        let times = (0..LAUNCHES).map(|_| run());
        let mut times = times.collect::<Result<Vec<_>, CudaError>>()?;
        times.sort();
        Ok(times[LAUNCHES / 2] / REPEATS as u32)
    }

    fn launches(&self, timed: TimedPass) -> Vec<Launch> {
        let layout = match timed {
            TimedPass::InputGradient => &self.frozen,
            _ => &self.layout,
        };
        let Parts {
            chain,
            lanes,
            memory,
            inputs: [x, dx],
            outputs: [y, dy],
            ..
        } = &self.parts;
        let mut pass = Pass::new(
            PassKind::Train,
            (self.rows, self.rows),
            lanes,
            *memory,
            layout,
        );
        match timed {
            TimedPass::Forward => chain.forward(&mut pass, *x, *y),
            TimedPass::WeightGradient => chain.backward(&mut pass, *x, *dy, None),
            TimedPass::InputGradient | TimedPass::Backward => {
                chain.backward(&mut pass, *x, *dy, Some(*dx));
            }
        }
        pass.into_launches()
    }
}
