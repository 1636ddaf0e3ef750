//! How many blocks walk over the rows of a matrix, as `Walk` in `lanes.cuh` does.

/// Threads of a block.
pub(crate) const THREADS: usize = 256;

/// Blocks that keep a large GPU busy.
const ENOUGH: usize = 1024;

/// Rows that a thread takes at the most, if there are enough of them.
const MOST: usize = 8;

/// Blocks for so many times as many rows of so many columns, of which a thread takes some side by side.
pub(crate) fn blocks([rows, columns]: [usize; 2], side_by_side: usize, times: usize) -> [usize; 3] {
    let groups = columns / side_by_side;
    let down = THREADS / groups.clamp(1, THREADS);
    let (steps, across) = (rows.div_ceil(down), groups.div_ceil(THREADS));
    let each = (steps * across * times / ENOUGH).clamp(1, MOST);
    [steps.div_ceil(each), across, times].map(|blocks| blocks.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_have_a_thread_each_and_many_share_them() {
        assert_eq!(blocks([3, 10], 1, 2), [1, 1, 2]);
        assert_eq!(blocks([40, 600], 1, 1), [40, 3, 1]);
        // 16 groups of 4 columns: 16 rows a block at a time.
        assert_eq!(blocks([16 * 2048, 64], 4, 1), [1024, 1, 1]);
        assert_eq!(blocks([16 * 20_480, 64], 4, 1), [2560, 1, 1]);
    }
}
