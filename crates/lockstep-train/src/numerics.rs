//! Whether all workers of a gang compute the same bits.

use crate::TrainError;
use lockstep_gang::Collective;

/// Refuses a gang whose members, of which this one has this fingerprint, would compute different bits.
pub(crate) fn agree(fingerprint: u64, collective: &mut dyn Collective) -> Result<(), TrainError> {
    // 52 bits travel exactly in an f64.
    let mine = (fingerprint >> 12) as f64;
    let mut all = vec![0.0; collective.plan().workers()];
    collective.all_gather(&[mine], &mut all)?;
    match all.iter().position(|&other| other != all[0]) {
        None => Ok(()),
        Some(rank) => Err(TrainError::Numerics {
            rank,
            found: all[rank] as u64,
            expected: all[0] as u64,
        }),
    }
}
