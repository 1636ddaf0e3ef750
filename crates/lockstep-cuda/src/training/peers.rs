//! The end of a step whose gradients devices exchange themselves.

use super::Training;
use crate::driver::Device;
use crate::error::CudaError;
use crate::launch::load_all;
use crate::memory::DeviceSlice;
use crate::peers::PeerMemory;
use crate::plan::Plan;
use crate::setup::{PeerSum, Setup};
use crate::streams::{Event, Graph, Stream};
use std::sync::Arc;

/// What such a worker exchanges.
pub(super) struct PeerExchange {
    /// What ends a step on a full batch, and on the last one.
    ends: [Graph; 2],
    /// When the partial sums of the newest step are there.
    come: Event,
    /// Which batch the step had that waits for its end.
    waiting: Option<usize>,
    /// What the graphs read.
    _memory: PeerMemory,
}

impl PeerExchange {
    /// Writes where all sums are to the tables of the plan, and records how steps end.
    pub(super) fn new(
        (device, stream): (&Arc<dyn Device>, &Stream),
        (plan, setup): (&Plan, &Setup),
        memory: PeerMemory,
        write: impl Fn(DeviceSlice<u64>, &[u64]) -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        let sums = setup.exchange.peer_sums().into_iter().flatten();
        let tables = plan.peers.iter().flatten();
        for ((tables, sums), batch) in tables.zip(sums).zip(&setup.batches) {
            let (mut to, mut from) = (Vec::new(), Vec::new());
            for half in [0, 1] {
                let own = 0..batch.partials.len();
                to.extend(own.map(|partial| memory.own_place(half, partial)));
                let place = |sum: &PeerSum| memory.place(sum.rank, half, sum.partial);
                from.extend(sums.iter().map(place));
            }
            write(tables.to, &to)?;
            write(tables.from, &from)?;
        }
        let record = |last| {
            let launches = load_all(device, plan.end_by_peers(setup, last))?;
            Graph::new(device, stream, &launches)
        };
        Ok(Self {
            ends: [record(false)?, record(true)?],
            come: Event::new(device)?,
            waiting: None,
            _memory: memory,
        })
    }

    /// Marks that a step on such a batch was queued up to its partial sums.
    pub(super) fn computed(&mut self, stream: &Stream, which: usize) -> Result<(), CudaError> {
        if self.waiting.is_some() {
            return Err(CudaError::Mismatch {
                what: "a step",
                found: "one before it without its end".to_owned(),
                expected: "the end of that".to_owned(),
            });
        }
        self.waiting = Some(which);
        self.come.record(stream)
    }
}

impl Training {
    /// Waits until other devices can read this worker's partial sums of the step that was queued.
    ///
    /// # Errors
    /// When devices exchange nothing themselves, or the step has failed.
    pub fn wait_for_sums(&self) -> Result<(), CudaError> {
        let peers = self.peers.as_ref().ok_or_else(no_peers)?;
        peers.come.wait()
    }

    /// Queues the end of the step that was queued: the sum of what all workers have come to, and the update by it. All of them
    /// have waited for their sums by now.
    ///
    /// # Errors
    /// When devices exchange nothing themselves, no step waits for its end, or a step has failed.
    pub fn end_step(&mut self) -> Result<(), CudaError> {
        let peers = self.peers.as_mut().ok_or_else(no_peers)?;
        let which = peers.waiting.take().ok_or_else(|| CudaError::Mismatch {
            what: "the end of a step",
            found: "no step".to_owned(),
            expected: "one that was queued".to_owned(),
        })?;
        // SAFETY: the memory that it uses is dropped after the stream, which waits for it; that of others stays as long as the
        // workers are together.
        unsafe { self.stream.launch_graph(&peers.ends[which]) }
    }
}

fn no_peers() -> CudaError {
    CudaError::Mismatch {
        what: "an exchange between devices",
        found: "a worker without".to_owned(),
        expected: "one whose device reads those of others".to_owned(),
    }
}
