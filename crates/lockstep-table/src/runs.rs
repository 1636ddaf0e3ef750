//! Numbers as pages store them: in runs, packed in bits, or as differences.
//!
//! These are walked without being kept, so that a page can be measured before it is decoded.

/// Goes through `count` numbers of `bits` bits, which are stored as runs of one number and runs of packed
/// ones: each with how often it comes. `None` if they are not all there.
pub(crate) fn walk(
    mut data: &[u8],
    bits: u64,
    count: u64,
    mut visit: impl FnMut(u64, u64),
) -> Option<()> {
    let mut left = count;
    while left > 0 {
        let (header, used) = varint(data)?;
        data = &data[used..];
        let (packed, length) = (header & 1 == 1, header >> 1);
        let bytes = if packed {
            // Eight at a time; of the last eight, only those that are used must be there.
            let run = length.checked_mul(8)?.min(left);
            if run == 0 || run.checked_mul(bits)?.div_ceil(8) > data.len() as u64 {
                return None;
            }
            for i in 0..run {
                visit(packed_number(data, i * bits, bits), 1);
            }
            left -= run;
            length.checked_mul(bits)?.min(data.len() as u64)
        } else {
            let run = length.min(left);
            let bytes = bits.div_ceil(8);
            let number = data.get(..bytes as usize)?.iter().rev();
            if run == 0 {
                return None;
            }
            visit(number.fold(0, |all, &byte| all << 8 | u64::from(byte)), run);
            left -= run;
            bytes
        };
        data = &data[bytes as usize..];
    }
    Some(())
}

/// Goes through `count` numbers of `bits` bits that old files pack from the highest bit of each byte down.
pub(crate) fn walk_from_the_top(
    data: &[u8],
    bits: u64,
    count: u64,
    mut visit: impl FnMut(u64, u64),
) -> Option<()> {
    if count.checked_mul(bits)?.div_ceil(8) > data.len() as u64 {
        return None;
    }
    let bit = |at: u64| u64::from(data[(at / 8) as usize] >> (7 - at % 8) & 1);
    for i in 0..count {
        visit((0..bits).fold(0, |all, b| all << 1 | bit(i * bits + b)), 1);
    }
    Some(())
}

/// The number of `bits` bits, at most 64, that begins at bit `at`, the lowest first. It must be there.
fn packed_number(data: &[u8], at: u64, bits: u64) -> u64 {
    let bit = |at: u64| u64::from(data[(at / 8) as usize] >> (at % 8) & 1);
    (0..bits.min(64)).fold(0, |all, b| all | bit(at + b) << b)
}

/// A number in groups of seven bits, the lowest first, and the bytes that it takes.
pub(crate) fn varint(data: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0u64;
    for (i, &byte) in data.iter().take(9).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((number, i + 1));
        }
    }
    None
}

/// Numbers that are stored as their differences, in blocks of smaller blocks that are packed each in as many
/// bits as it needs.
#[derive(Debug, Clone)]
pub(crate) struct Differences<'a> {
    data: &'a [u8],
    /// Numbers of a small block, and how many of these a block has.
    size: u64,
    small_blocks: u64,
    /// Numbers that are still to come.
    left: u64,
    last: i64,
    least: i64,
    /// The bits of each small block of this block that is still to come.
    widths: &'a [u8],
    /// The small block that is being read: its bits of a number, and the number that comes next.
    width: u64,
    at: u64,
    fresh: bool,
}

impl<'a> Differences<'a> {
    /// Numbers at the front of `data`, of which there must be `count`.
    pub(crate) fn new(mut data: &'a [u8], count: u64) -> Option<Differences<'a>> {
        let mut number = || {
            let (number, used) = varint(data)?;
            data = &data[used..];
            Some(number)
        };
        let (block, small_blocks, total) = (number()?, number()?, number()?);
        let first = signed(number()?);
        let size = block.checked_div(small_blocks)?;
        let fits = total == count && size > 0 && size.is_multiple_of(8) && block <= 1 << 20;
        fits.then_some(Differences {
            data,
            size,
            small_blocks,
            left: total,
            last: first,
            least: 0,
            widths: &[],
            width: 0,
            at: size,
            fresh: true,
        })
    }

    /// The next number, a negative one as 0: a length is none. `None` after the last, and when it is damaged.
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        if !std::mem::take(&mut self.fresh) {
            if self.at == self.size {
                self.small_block()?;
            }
            let difference = packed_number(self.data, self.at * self.width, self.width);
            self.at += 1;
            let step = self.least.wrapping_add(difference as i64);
            self.last = self.last.wrapping_add(step);
        }
        Some(u64::try_from(self.last).unwrap_or(0))
    }

    /// Goes on to the next small block.
    fn small_block(&mut self) -> Option<()> {
        self.data = self.data.get((self.size * self.width / 8) as usize..)?;
        if self.widths.is_empty() {
            let (least, used) = varint(self.data)?;
            self.least = signed(least);
            let rest = &self.data[used..];
            (self.widths, self.data) =
                rest.split_at_checked(usize::try_from(self.small_blocks).ok()?)?;
        }
        let (&width, widths) = self.widths.split_first()?;
        (self.width, self.widths, self.at) = (width.into(), widths, 0);
        let whole = width <= 64 && self.size * self.width / 8 <= self.data.len() as u64;
        whole.then_some(())
    }

    /// What comes after the numbers, once all were read.
    pub(crate) fn rest(&self) -> Option<&'a [u8]> {
        match self.at == self.size && self.width == 0 {
            true => Some(self.data),
            false => self.data.get((self.size * self.width / 8) as usize..),
        }
    }
}

/// A number whose lowest bit is its sign.
fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_packing_begins_at_the_top_of_a_byte() {
        let mut seen = Vec::new();
        walk_from_the_top(&[0b01_10_11_00, 0b10_000000], 2, 5, |n, _| seen.push(n)).unwrap();
        assert_eq!(seen, [1, 2, 3, 0, 2]);
        assert_eq!(walk_from_the_top(&[0; 2], 2, 9, |_, _| ()), None);
    }

    #[test]
    fn differences_are_added_up() {
        // 1 2 3 4 5, as in the format's description: blocks of 128 in 4 small ones, least difference 1.
        let data = [128, 1, 4, 5, 2, 2, 0, 0, 0, 0, 77];
        let mut numbers = Differences::new(&data, 5).unwrap();
        let seen: Vec<_> = std::iter::from_fn(|| numbers.next()).collect();
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        assert_eq!(numbers.rest(), Some(&[77][..]));
        assert!(Differences::new(&data, 6).is_none());
        assert!(Differences::new(&[128, 1, 0, 5, 2], 5).is_none());
    }

    #[test]
    fn damaged_differences_end() {
        let data = [128, 1, 4, 200, 1, 2, 2, 63, 64, 65, 0, 9, 9, 9];
        for end in 0..data.len() {
            if let Some(mut numbers) = Differences::new(&data[..end], 200) {
                while numbers.next().is_some() {}
            }
        }
    }
}
