//! Channels lie innermost, so that vectors run across them. Loops that keep something a channel in
//! registers, as sums and maxima, go over groups of channels whose size the compiler knows.

/// Runs `$body` for groups of columns that cover `0..$n`: `$at` is the first column of a group and `$W`
/// a constant, their number. Groups are wide as long as there are enough columns.
macro_rules! for_columns {
    ($n:expr, |$at:ident, $W:ident| $body:block) => {{
        let n: usize = $n;
        let mut $at = 0;
        {
            const $W: usize = 32;
            while $at + $W <= n {
                $body
                $at += $W;
            }
        }
        {
            const $W: usize = 8;
            while $at + $W <= n {
                $body
                $at += $W;
            }
        }
        {
            const $W: usize = 1;
            while $at < n {
                $body
                $at += $W;
            }
        }
    }};
}
pub(crate) use for_columns;

/// The group of `W` columns that begins at `at`.
#[inline(always)]
pub(crate) fn group<const W: usize>(row: &[f32], at: usize) -> &[f32; W] {
    row[at..].first_chunk().expect("a group is within its row")
}

/// The same, to be changed.
#[inline(always)]
pub(crate) fn group_mut<const W: usize>(row: &mut [f32], at: usize) -> &mut [f32; W] {
    let row = &mut row[at..];
    row.first_chunk_mut().expect("a group is within its row")
}

#[cfg(test)]
mod tests {
    #[test]
    fn groups_cover_every_column_once() {
        for n in 0..100 {
            let mut seen = vec![0; n];
            for_columns!(n, |at, W| {
                for column in &mut seen[at..at + W] {
                    *column += 1;
                }
            });
            assert_eq!(seen, vec![1; n]);
        }
    }
}
