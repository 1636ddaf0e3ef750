//! Whether what a gang will take fits into what this process's control groups allow.
//!
//! Every buffer of a worker is planned before the first step. If the plan is more than the limit, the system would end
//! workers in the middle of the run, so the run does not begin.

use crate::EngineError;
use lockstep_base::cgroup;
use lockstep_learner::PlannedMemory;

/// Compares the plan of so many workers of this host with the limit.
pub(super) fn check(plan: &PlannedMemory, workers: usize) -> Result<(), EngineError> {
    match cgroup::memory_bytes() {
        Some(limit) => compare(plan, workers, limit.saturating_add(cgroup::swap_bytes())),
        None => Ok(()),
    }
}

fn compare(plan: &PlannedMemory, workers: usize, limit: u64) -> Result<(), EngineError> {
    let planned = plan.of_all(workers);
    match planned <= limit {
        true => Ok(()),
        false => Err(EngineError::TooLittleMemory {
            workers,
            planned: in_mib(planned),
            limit: in_mib(limit),
        }),
    }
}

fn in_mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_beyond_the_limit_is_refused_with_both_numbers() {
        let plan = PlannedMemory {
            per_worker: 100 << 20,
            first_worker: 50 << 20,
            shared: 10 << 20,
        };
        assert!(compare(&plan, 4, 460 << 20).is_ok());
        let error = compare(&plan, 4, (460 << 20) - 1).unwrap_err().to_string();
        assert!(error.contains("4 workers need 460 MiB"), "{error}");
        assert!(compare(&plan, 3, 400 << 20).is_ok());
    }
}
