//! Numbers as whole numbers in the same order.

/// A key that orders as the number does. -0 and 0 have one key. No number's key is 0.
pub(crate) fn key(number: f32) -> u32 {
    // Adding 0 turns -0 into 0, and changes no other number.
    let bits = (number + 0.0).to_bits();
    match bits >> 31 {
        0 => bits | 0x8000_0000,
        _ => !bits,
    }
}

/// The number of a key.
pub(crate) fn value(key: u32) -> f32 {
    f32::from_bits(match key >> 31 {
        0 => !key,
        _ => key & 0x7fff_ffff,
    })
}
