//! A gang of one: it owns every chunk and has nobody to exchange with.

use crate::shares::ShareBuffers;
use crate::{AbortSwitch, Collective, GangError, Plan, SharingCollective};

/// The collective of a single worker.
#[derive(Debug)]
pub struct Solo {
    plan: Plan,
    vote: u64,
    abort: AbortSwitch,
    shares: ShareBuffers,
}

impl Solo {
    /// A gang of one that follows `plan`, until `abort` calls it off.
    ///
    /// # Errors
    /// [`GangError::BadPlan`] when the plan is for more than one worker.
    pub fn new(plan: Plan, abort: AbortSwitch) -> Result<Self, GangError> {
        match plan.workers() {
            1 => Ok(Self {
                shares: ShareBuffers::new(&plan),
                plan,
                vote: 0,
                abort,
            }),
            workers => Err(GangError::BadPlan {
                reason: format!("it is for {workers} workers, and a solo gang has one"),
            }),
        }
    }

    fn check(&self) -> Result<(), GangError> {
        if self.abort.is_aborted() {
            Err(GangError::Aborted)
        } else {
            Ok(())
        }
    }

    fn no_peer(&self, chunk: usize) -> ! {
        panic!("chunk {chunk} of a solo gang has no other owner")
    }
}

impl Collective for Solo {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rank(&self) -> usize {
        0
    }

    fn outbox(&mut self, chunk: usize, _partial: usize) -> &mut [f32] {
        self.no_peer(chunk)
    }

    fn post(&mut self, chunk: usize) -> Result<(), GangError> {
        self.no_peer(chunk)
    }

    fn arrived(&mut self, _chunk: usize) -> Result<bool, GangError> {
        self.check().map(|()| true)
    }

    fn wait_arrived(&mut self, _chunk: usize) -> Result<(), GangError> {
        self.check()
    }

    fn inbox(&self, chunk: usize, _from: usize, _partial: usize) -> &[f32] {
        self.no_peer(chunk)
    }

    fn publish(&mut self, chunk: usize, values: &[f32]) -> Result<(), GangError> {
        assert_eq!(
            values.len(),
            self.plan.chunk(chunk).len(),
            "chunk {chunk} has another length"
        );
        self.check()
    }

    fn published(&mut self, chunk: usize) -> Result<bool, GangError> {
        self.no_peer(chunk)
    }

    fn fetch(&mut self, chunk: usize, _into: &mut [f32]) -> Result<(), GangError> {
        self.no_peer(chunk)
    }

    fn cast(&mut self, vote: u64) -> Result<(), GangError> {
        self.vote = vote;
        self.check()
    }

    fn end_step(&mut self) -> Result<u64, GangError> {
        self.check().map(|()| std::mem::take(&mut self.vote))
    }

    fn all_gather(&mut self, mine: &[f64], all: &mut [f64]) -> Result<(), GangError> {
        all.copy_from_slice(mine);
        self.check()
    }
}

impl SharingCollective for Solo {
    fn draft(&mut self, share: usize) -> Result<&mut [f32], GangError> {
        Ok(self.shares.get_mut(share))
    }

    fn announce(&mut self, _share: usize) -> Result<(), GangError> {
        self.check()
    }

    fn accept(&mut self, share: usize) -> Result<(), GangError> {
        self.no_peer(share)
    }

    fn view(&self, share: usize) -> &[f32] {
        self.shares.get(share)
    }
}
