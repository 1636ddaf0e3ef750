//! How long each kernel of a step takes by itself: for benchmarks.

use crate::error::CudaError;
use crate::launch::LoadedLaunch;
use crate::streams::{Graph, Stream};
use crate::training::Training;
use std::time::{Duration, Instant};

/// A kernel of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTime {
    /// Its name.
    pub kernel: &'static str,
    /// Its blocks in each direction, and the threads of each.
    pub blocks: [u32; 3],
    /// The threads of a block.
    pub threads: u32,
    /// How long it takes when it follows itself.
    pub time: Duration,
}

/// Launches of a kernel in a graph.
const IN_GRAPH: u32 = 50;

/// How often the graph is queued: to warm up, then to measure.
const WARM: u32 = 2;
const MEASURED: u32 = 8;

impl Training {
    /// Times every kernel of a step on a full batch: a graph that is only this kernel, many times, is queued again and
    /// again. What is trained means nothing any more afterwards.
    ///
    /// # Errors
    /// When a kernel fails.
    pub fn time_kernels(&mut self) -> Result<Vec<KernelTime>, CudaError> {
        let launches = self.full_step()?;
        launches
            .into_iter()
            .map(|launch| self.time(launch))
            .collect()
    }

    fn time(&mut self, launch: LoadedLaunch) -> Result<KernelTime, CudaError> {
        let (kernel, grid) = (launch.kernel, launch.grid);
        let device = &self.gpu().device;
        let stream = Stream::new(device)?;
        let same = vec![launch; IN_GRAPH as usize];
        let graph = Graph::new(device, &stream, &same)?;
        let run = |times| -> Result<Duration, CudaError> {
            // The last kernel of a step counts on; none of these steps is beyond the epoch.
            self.begin_again()?;
            let began = Instant::now();
            for _ in 0..times {
                // SAFETY: the training's memory stays as long as it, and the stream is waited for here.
                unsafe { stream.launch_graph(&graph)? };
            }
            stream.wait()?;
            Ok(began.elapsed())
        };
        run(WARM)?;
        let time = run(MEASURED)? / (MEASURED * IN_GRAPH);
        Ok(KernelTime {
            kernel,
            blocks: grid.blocks,
            threads: grid.threads,
            time,
        })
    }
}
