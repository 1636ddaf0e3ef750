//! The run's token, as a file holds it.

use crate::hosts::HostsError;
use lockstep_gang::Secret;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Reads a token: 64 hexadecimal digits in a file that only its user and group may read. The group may because a
/// Secret of Kubernetes belongs to root, and is read through it.
///
/// # Errors
/// When the file cannot be read, others may use it, or it holds something else.
pub fn read_token(path: &Path) -> Result<Secret, HostsError> {
    let unusable = |why: String| HostsError::Token {
        path: path.to_owned(),
        why,
    };
    let metadata = std::fs::metadata(path).map_err(|error| unusable(error.to_string()))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o037 != 0 {
        return Err(unusable(format!(
            "others may use it (mode {mode:03o}); its mode must be 400 or 440"
        )));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    text.trim()
        .parse()
        .map_err(|error: lockstep_gang::GangError| unusable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions, write};

    #[test]
    fn a_token_is_read_only_if_others_cannot_and_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        write(&path, format!("{}\n", "ab".repeat(32))).unwrap();
        for (mode, good) in [(0o400, true), (0o440, true), (0o444, false), (0o660, false)] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_token(&path).is_ok(), good, "{mode:o}");
        }
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        write(&path, "short").unwrap();
        let error = read_token(&path).unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}
