//! How far trials are trained before the poor ones are stopped.

/// Of so many, one goes on.
pub(crate) const REDUCTION: usize = 3;
/// Trials of a generation with halving: two rungs stop early, and one trial comes to the end.
const OF_HALVING: usize = REDUCTION * REDUCTION;
/// Trials of a generation without.
const OF_WHOLE: usize = 8;

/// The epochs at which trials are looked at, the last of which is all of them: a ninth, a third and the whole, as far as
/// these differ.
pub fn rungs(epochs: u32, halving: bool) -> Vec<u32> {
    if !halving {
        return vec![epochs];
    }
    let mut rungs = vec![epochs.div_ceil(9), epochs.div_ceil(3), epochs];
    rungs.dedup();
    rungs
}

/// How many trials are suggested together.
pub(crate) fn generation(rungs: &[u32]) -> usize {
    match rungs.len() {
        1 => OF_WHOLE,
        _ => OF_HALVING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_grow_to_all_epochs() {
        assert_eq!(rungs(27, true), [3, 9, 27]);
        assert_eq!(rungs(3, true), [1, 3]);
        assert_eq!(rungs(1, true), [1]);
        assert_eq!(rungs(10, false), [10]);
    }
}
