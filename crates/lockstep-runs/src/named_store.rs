//! The store that the environment names.

/// The variable that names the store of runs where nothing else does: a folder, or a URL. The jobs server sets it for its
/// jobs, so that what they train stays when they are forgotten.
pub const STORE_VARIABLE: &str = "LOCKSTEP_STORE";

/// The store that [`STORE_VARIABLE`] names, as an absolute path or a URL.
pub fn named_store() -> Option<String> {
    let named = std::env::var(STORE_VARIABLE).ok();
    let named = named.filter(|store| !store.is_empty())?;
    if named.contains("://") {
        return Some(named);
    }
    let path = std::path::absolute(&named).ok()?;
    Some(path.to_str()?.to_owned())
}
