//! Names of jobs and packages. A name is never a path.

use lockstep_base::fs::{FsError, random_letters};

/// The longest name of a job: with it, no file of a job has a name that a file system refuses.
const LONGEST: usize = 128;

/// Whether a job may have this id: letters, digits, `-`, `_` and `.`, not first a `.`, at most 128.
pub fn is_valid_id(id: &str) -> bool {
    id.len() <= LONGEST && is_plain(id, "-_.")
}

/// Whether a package may have this name: the same, and `+`, which wheels have.
pub(crate) fn is_package_name(name: &str) -> bool {
    name.len() <= LONGEST
        && is_plain(name, "-_.+")
        && (name.ends_with(".zip") || name.ends_with(".whl"))
}

fn is_plain(name: &str, beside: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || beside.contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// A new id, as Ray's look.
pub(crate) fn new_id() -> Result<String, FsError> {
    Ok(format!("raysubmit_{}", random_letters::<16>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_a_path_is_no_id() {
        for id in ["a", "raysubmit_ABXubR1h8iXdugTa", "a-b_1.2", "0"] {
            assert!(is_valid_id(id), "{id}");
        }
        let long = "a".repeat(LONGEST + 1);
        for id in [
            "", ".", "..", ".a", "a/b", "/a", "a\\b", "a b", "a\0", "ü", &long,
        ] {
            assert!(!is_valid_id(id), "{id}");
        }
        assert!(is_package_name("_ray_pkg_20b054239363c1c8.zip"));
        assert!(is_package_name("a-1.0+x-py3-none-any.whl"));
        assert!(!is_package_name("a.tar"));
        assert!(!is_package_name("../a.zip"));
    }
}
