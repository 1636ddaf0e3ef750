//! The user that jobs run as, where that is not the server's own.
//!
//! A job is whatever somebody submits. As the server's own user it could read the hashes of tokens and the records of all
//! jobs, and make itself a token: to submit would mean to be an admin. As another user it reaches its own folder, and what
//! that user may reach on the machine. Only a server that runs as root can do so.

use crate::QueueError;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A user of this machine, with its groups and its home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobUser {
    /// Its name.
    pub name: String,
    uid: u32,
    gid: u32,
    /// All its groups.
    groups: Vec<u32>,
    pub(crate) home: PathBuf,
}

impl JobUser {
    /// Finds a user by name in this machine's lists.
    ///
    /// # Errors
    /// When there is none of that name, or it is root, which reaches everything.
    pub fn find(name: &str) -> Result<JobUser, QueueError> {
        let read = |path: &str| fs::read_to_string(path).map_err(QueueError::file(path.as_ref()));
        let found = JobUser::among(name, &read("/etc/passwd")?, &read("/etc/group")?);
        let found = found.ok_or_else(|| {
            QueueError::JobUser(format!(
                "there is no user {name} in /etc/passwd; add one, such as with `useradd -r`"
            ))
        })?;
        match found.uid {
            0 => Err(QueueError::JobUser(format!(
                "{name} may reach everything on this machine; choose a user of its own for jobs"
            ))),
            _ => Ok(found),
        }
    }

    fn among(name: &str, users: &str, groups: &str) -> Option<JobUser> {
        let fields = |line: &'_ str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
        let user = users
            .lines()
            .map(fields)
            .find(|user| user.len() >= 6 && user[0] == name)?;
        let gid = user[3].parse().ok()?;
        let mut all = vec![gid];
        for group in groups.lines().map(fields).filter(|group| group.len() >= 4) {
            if group[3].split(',').any(|member| member == name) {
                all.extend(group[2].parse::<u32>());
            }
        }
        all.sort_unstable();
        all.dedup();
        Some(JobUser {
            name: name.to_owned(),
            uid: user[2].parse().ok()?,
            gid,
            groups: all,
            home: PathBuf::from(&user[5]),
        })
    }

    /// Gives a folder and all that is in it to the user. Links are given, not followed.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))?;
        if fs::symlink_metadata(path)?.is_dir() {
            for entry in fs::read_dir(path)? {
                self.give(&entry?.path())?;
            }
        }
        Ok(())
    }

    /// Gives the end of a pipe to the user, who may then open it by its name in `/proc`, as `/dev/stderr` is.
    pub(crate) fn give_pipe(&self, pipe: &rustix::fd::OwnedFd) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        Ok(rustix::fs::fchown(pipe, Some(uid), Some(gid))?)
    }

    /// Has a command run as the user, in `folder`, which the user must be able to reach.
    pub(crate) fn run(&self, command: &mut Command, folder: &Path) -> io::Result<()> {
        let folder = CString::new(folder.as_os_str().as_bytes())?;
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let become_user = move || {
            set_thread_groups(&groups)?;
            set_thread_gid(gid)?;
            set_thread_uid(uid)?;
            Ok(rustix::process::chdir(folder.as_c_str())?)
        };
        // SAFETY: the closure runs in the new process between fork and exec. It makes system calls and nothing else: it
        // neither allocates nor takes a lock, and all that it reads was made before.
        unsafe { command.pre_exec(become_user) };
        Ok(())
    }

    /// Checks that a job of this user could run in a folder of `work`, and could not put other files in the place of the
    /// server's own in `folder`.
    ///
    /// # Errors
    /// When this process may not change users, the user cannot reach the folder, or could replace it.
    pub(crate) fn check(&self, folder: &Path, work: &Path) -> Result<(), QueueError> {
        let whole = fs::canonicalize(folder).map_err(QueueError::file(folder))?;
        for above in whole.ancestors() {
            if self.may_replace(above).map_err(QueueError::file(above))? {
                return Err(QueueError::JobUser(format!(
                    "{} can change {}, and so replace the tokens and records in {}; name a folder that only the server's \
                     user can change with --folder",
                    self.name,
                    above.display(),
                    folder.display()
                )));
            }
        }
        let mut probe = Command::new("/bin/sh");
        probe
            .args(["-c", ":"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let tried = self.run(&mut probe, work).and_then(|()| probe.status());
        let why = match tried {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => format!("a command ended with {status}"),
            Err(error) => error.to_string(),
        };
        Err(QueueError::JobUser(format!(
            "no command can be run as {} in {}: {why}; it takes a server that runs as root, and every folder on the way \
             must let that user pass (chmod o+x)",
            self.name,
            work.display()
        )))
    }

    /// Whether the user may change the names in a folder that are not its own.
    fn may_replace(&self, folder: &Path) -> io::Result<bool> {
        let found = fs::metadata(folder)?;
        let mode = found.permissions().mode();
        let sticky = mode & 0o1000 != 0;
        let group = mode & 0o020 != 0 && self.groups.contains(&found.gid());
        Ok(found.uid() == self.uid || (!sticky && (group || mode & 0o002 != 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_with_all_its_groups() {
        let users = "root:x:0:0:root:/root:/bin/sh\njobs:x:998:997::/var/lib/jobs:/bin/false\n";
        let groups = "jobs:x:997:\nvideo:x:44:anna,jobs\nrender:x:107:jobs\nother:x:9:job\n";
        let found = JobUser::among("jobs", users, groups).unwrap();
        assert_eq!((found.uid, found.gid), (998, 997));
        assert_eq!(found.groups, [44, 107, 997]);
        assert_eq!(found.home, Path::new("/var/lib/jobs"));
        assert_eq!(JobUser::among("job", users, groups), None);
        let root = JobUser::find("root").unwrap_err().to_string();
        assert!(root.contains("everything"), "{root}");
    }

    #[test]
    fn a_folder_that_the_user_could_replace_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let user = JobUser {
            name: "jobs".into(),
            uid: 65_000,
            gid: 65_000,
            groups: vec![65_000],
            home: "/".into(),
        };
        let inner = folder.path().join("store/.server");
        fs::create_dir_all(&inner).unwrap();
        assert!(!user.may_replace(&inner).unwrap());
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(inner.parent().unwrap(), open).unwrap();
        let error = user.check(&inner, &inner).unwrap_err().to_string();
        assert!(
            error.contains("store,") && error.contains("--folder"),
            "{error}"
        );
    }
}
