//! Whether anything may be downloaded that nobody named by its address: data sets that are known by name, and libraries.

use std::sync::OnceLock;

/// The variable that forbids it, if it is neither empty nor `0`.
pub const VARIABLE: &str = "LOCKSTEP_OFFLINE";

static FORBIDDEN: OnceLock<bool> = OnceLock::new();

/// Forbids downloads in this process. It must be said before the first question.
pub fn forbid() {
    let _ = FORBIDDEN.set(true);
}

/// Whether nothing may be downloaded.
pub fn is_forbidden() -> bool {
    *FORBIDDEN.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(value) => !matches!(value.as_str(), "" | "0"),
        Err(_) => false,
    })
}
