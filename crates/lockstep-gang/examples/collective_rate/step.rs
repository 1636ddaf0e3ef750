//! The exchange of a training step and nothing else: every rank hands over its gradient chunk by chunk,
//! owners add, and at the end every rank has the sum. What is ready is done as early as it can be, as
//! the trainer does.

use lockstep_gang::{Collective, GangError, TreeSum};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::error::Error;
use std::time::Instant;

/// How long a number of steps took, in seconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct Spent {
    /// From the first step's beginning to the last one's end.
    pub(crate) seconds: f64,
    /// From each step's beginning until the last chunk was handed over, added up: in training this is
    /// time that the backward pass takes longer.
    pub(crate) handing_over: f64,
}

/// One rank's numbers.
pub(crate) struct Rank {
    /// Rank i's gradient is i + 1 everywhere.
    gradient: Vec<f32>,
    /// The sum of all ranks' gradients.
    result: Vec<f32>,
    tree: TreeSum,
    /// Own chunks that wait for others' parts.
    pending: VecDeque<usize>,
    /// Others' chunks that wait for their sum.
    awaited: VecDeque<usize>,
}

impl Rank {
    pub(crate) fn new(gang: &impl Collective) -> Self {
        let plan = gang.plan();
        Self {
            gradient: vec![gang.rank() as f32 + 1.0; plan.len()],
            result: vec![0.0; plan.len()],
            tree: TreeSum::new(plan, gang.rank()),
            pending: VecDeque::with_capacity(plan.chunks()),
            awaited: VecDeque::with_capacity(plan.chunks()),
        }
    }

    /// Does steps and looks at the last one's result.
    pub(crate) fn steps(
        &mut self,
        gang: &mut impl Collective,
        steps: usize,
    ) -> Result<Spent, Box<dyn Error>> {
        self.result.fill(0.0);
        gang.all_gather(&[], &mut [])?;
        let begin = Instant::now();
        let mut handing_over = 0.0;
        for _ in 0..steps {
            handing_over += self.step(gang)?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let workers = gang.plan().workers();
        let expected = (workers * (workers + 1) / 2) as f32;
        if self.result.iter().any(|sum| *sum != expected) {
            return Err(format!("rank {} has a wrong sum", gang.rank()).into());
        }
        Ok(Spent {
            seconds,
            handing_over,
        })
    }

    /// One step; returns how long it took to hand over the gradient.
    fn step(&mut self, gang: &mut impl Collective) -> Result<f64, GangError> {
        let begin = Instant::now();
        let rank = gang.rank();
        for chunk in (0..gang.plan().chunks()).rev() {
            if gang.plan().owner(chunk) == rank {
                self.pending.push_back(chunk);
            } else {
                let range = gang.plan().chunk(chunk);
                gang.outbox(chunk, 0).copy_from_slice(&self.gradient[range]);
                gang.post(chunk)?;
                self.awaited.push_back(chunk);
            }
            self.advance(gang)?;
        }
        let handed_over = begin.elapsed().as_secs_f64();
        gang.cast(0)?;
        loop {
            self.advance(gang)?;
            if let Some(&chunk) = self.pending.front() {
                gang.wait_arrived(chunk)?;
            } else if let Some(chunk) = self.awaited.pop_front() {
                self.fetch(gang, chunk)?;
            } else {
                break;
            }
        }
        gang.end_step()?;
        Ok(handed_over)
    }

    /// Does whatever can be done without waiting, own chunks and others' in turns.
    fn advance(&mut self, gang: &mut impl Collective) -> Result<(), GangError> {
        loop {
            let mut done = false;
            if let Some(&chunk) = self.pending.front()
                && gang.arrived(chunk)?
            {
                self.pending.pop_front();
                self.add(gang, chunk)?;
                done = true;
            }
            if let Some(&chunk) = self.awaited.front()
                && gang.published(chunk)?
            {
                self.awaited.pop_front();
                self.fetch(gang, chunk)?;
                done = true;
            }
            if !done {
                return Ok(());
            }
        }
    }

    /// Adds up an own chunk and publishes the sum.
    fn add(&mut self, gang: &mut impl Collective, chunk: usize) -> Result<(), GangError> {
        let (rank, range) = (gang.rank(), gang.plan().chunk(chunk));
        let (own, sum) = (&self.gradient[range.clone()], &mut self.result[range]);
        let inbox = |from, index| match from == rank {
            true => own,
            false => gang.inbox(chunk, from, index),
        };
        self.tree
            .sum(|partial| Some(inbox(partial.rank, partial.index)), sum);
        gang.publish(chunk, sum)
    }

    fn fetch(&mut self, gang: &mut impl Collective, chunk: usize) -> Result<(), GangError> {
        let range = gang.plan().chunk(chunk);
        gang.fetch(chunk, &mut self.result[range])
    }
}
