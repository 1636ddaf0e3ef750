//! What a worker is told in private, before anything else: where the coordinator listens, how to prove
//! that it belongs there, and which seat it has.
//!
//! Arguments and the environment are no place for a secret, since other users of the machine may read
//! them. The invitation comes through standard input, which only the two processes have, or through a file
//! that is the user's own: then the environment names it.

use lockstep_gang::SeatToken;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The variable that names the file with the invitation, where it does not come through standard input.
pub(crate) const FILE: &str = "LOCKSTEP_INVITATION";

/// One line of JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Invitation {
    /// Where the coordinator is reached.
    pub(crate) address: SocketAddr,
    /// What admits this worker to its seat, once.
    pub(crate) token: SeatToken,
    /// Where this worker listens for its peers, if the workers exchange over TCP.
    pub(crate) listen: Option<IpAddr>,
    /// How long joining may take, in seconds.
    pub(crate) join_s: f64,
    /// After how long without a word from the coordinator this worker ends itself, in seconds; never, where
    /// the coordinator can end it for certain.
    pub(crate) lease_s: Option<f64>,
}

impl Invitation {
    /// As it is told.
    pub(crate) fn line(&self) -> String {
        serde_json::to_string(self).expect("an invitation is plain data")
    }
}

/// The line that this process is told, from the file that the environment names or from standard input.
pub(crate) fn receive() -> io::Result<String> {
    match std::env::var_os(FILE) {
        Some(path) => read(Path::new(&path)),
        None => {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line)?;
            Ok(line)
        }
    }
}

/// Whether the end of standard input means that the coordinator is gone.
pub(crate) fn comes_through_stdin() -> bool {
    std::env::var_os(FILE).is_none()
}

/// Reads an invitation from a file that nobody but its owner may read.
fn read(path: &Path) -> io::Result<String> {
    let named = |why: String| io::Error::other(format!("{}: {why}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| named(error.to_string()))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let why = format!("others may use it (mode {mode:03o}); its mode must be 400 or 600");
        return Err(named(why));
    }
    std::fs::read_to_string(path).map_err(|error| named(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions, write};

    #[test]
    fn an_invitation_in_a_file_is_read_only_if_others_cannot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("invitation");
        write(&path, "secret").unwrap();
        for (mode, good) in [(0o400, true), (0o600, true), (0o440, false), (0o604, false)] {
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = read(&path);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Err(error) = read {
                assert!(error.to_string().contains("mode"), "{error}");
            }
        }
    }
}
