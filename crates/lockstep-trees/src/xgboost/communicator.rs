//! The ranks that train together, as XGBoost knows them.

use crate::xgboost::XgboostError;
use crate::xgboost::hang_up::{HangUp, Sockets};
use crate::xgboost::library::{Xgboost, text};
use serde_json::json;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::time::Duration;

/// This thread's membership in a gang of ranks. Matrices that are made and boosters that are trained in the same
/// thread work together with the other ranks'; other threads of the process know nothing of it.
///
/// The ranks connect with each other without encryption: it is for a machine, or a network that is trusted.
#[derive(Debug)]
pub struct Communicator {
    xgboost: Xgboost,
    sockets: Sockets,
    /// It belongs to the thread that it was made in.
    _stays: PhantomData<*const ()>,
}

/// How numbers of all ranks become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The largest.
    Max = 0,
    /// Their sum.
    Sum = 2,
}

/// A kind of number that ranks can combine.
pub trait Number: Copy + private::Sealed {
    /// XGBoost's number for the kind.
    #[doc(hidden)]
    const KIND: c_int;
}

mod private {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for u64 {}
}

impl Number for f64 {
    const KIND: c_int = 2;
}

impl Number for u64 {
    const KIND: c_int = 11;
}

impl Communicator {
    /// Joins the ranks that meet at a tracker, as this one of them. Any call that waits for a peer in vain for
    /// `patience` fails.
    ///
    /// # Errors
    /// When the tracker cannot be reached, or not all come.
    pub fn join(
        xgboost: &Xgboost,
        tracker: (&str, u16),
        rank: usize,
        patience: Duration,
    ) -> Result<Self, XgboostError> {
        xgboost.be_quiet()?;
        let before = Sockets::open_now();
        let settings = json!({
            "dmlc_communicator": "rabit",
            "dmlc_tracker_uri": tracker.0,
            "dmlc_tracker_port": tracker.1,
            "dmlc_task_id": format!("{rank:08}"),
            "dmlc_timeout": patience.as_secs().max(1),
            // Between two tries XGBoost sleeps for seconds, also when it says goodbye to a tracker that is gone.
            "dmlc_retry": 1,
        });
        let settings = text(&settings.to_string())?;
        // SAFETY: a text that outlives the call.
        let code = unsafe { (xgboost.functions().join)(settings.as_ptr()) };
        xgboost.check("XGCommunicatorInit", code)?;
        Ok(Self {
            xgboost: xgboost.clone(),
            sockets: Sockets::opened_since(&before),
            _stays: PhantomData,
        })
    }

    /// What ends every call that waits for a peer, from another thread.
    pub fn hang_up(&self) -> HangUp {
        self.sockets.hang_up()
    }

    /// Which rank this is.
    pub fn rank(&self) -> usize {
        // SAFETY: the function has no preconditions.
        let rank = unsafe { (self.xgboost.functions().rank)() };
        usize::try_from(rank).unwrap_or(0)
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        // SAFETY: the function has no preconditions.
        let ranks = unsafe { (self.xgboost.functions().ranks)() };
        usize::try_from(ranks).unwrap_or(1)
    }

    /// Combines the numbers of all ranks, place by place; all then have the result.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn combine<N: Number>(
        &self,
        numbers: &mut [N],
        operation: Operation,
    ) -> Result<(), XgboostError> {
        // SAFETY: the numbers are of the kind and count that is said, and outlive the call.
        let code = unsafe {
            (self.xgboost.functions().all_reduce)(
                numbers.as_mut_ptr().cast::<c_void>(),
                numbers.len(),
                N::KIND,
                operation as c_int,
            )
        };
        self.xgboost.check("XGCommunicatorAllreduce", code)
    }

    /// Leaves in good order: all ranks do it at the end.
    ///
    /// # Errors
    /// When a peer was lost in between.
    pub fn leave(self) -> Result<(), XgboostError> {
        let this = std::mem::ManuallyDrop::new(self);
        this.sockets.forget();
        // SAFETY: this thread has joined, and leaves once: the destructor does not run.
        let code = unsafe { (this.xgboost.functions().leave)() };
        this.xgboost.check("XGCommunicatorFinalize", code)
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        self.sockets.forget();
        // SAFETY: this thread has joined, and leaves once. One that leaves after a failure is not told that it failed.
        unsafe { (self.xgboost.functions().leave)() };
    }
}
