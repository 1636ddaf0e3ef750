//! Random letters, for names that never collide.

use crate::fs::FsError;

/// Letters that survive every file system, also those that ignore case.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// `N` random letters and digits.
///
/// # Errors
/// When the system gives no random numbers.
pub fn random_letters<const N: usize>() -> Result<String, FsError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(FsError::Random)?;
    Ok(bytes
        .iter()
        .map(|byte| char::from(BASE32[usize::from(byte % 32)]))
        .collect())
}

/// Whether `byte` is a letter that [`random_letters`] gives.
pub fn is_random_letter(byte: u8) -> bool {
    BASE32.contains(&byte)
}
