//! Hashes as people write them.

/// Two lower-case hexadecimal digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
