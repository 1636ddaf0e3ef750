//! A run has one owner at a time.
//!
//! On this machine the owner holds the lock of the open file `.hold`, which ends with its process. In a
//! bucket it holds a [lease](crate::lease). Both write into `.lock` who they are and which generation of
//! the gang writes the run's states.

use crate::checkpoint::Checkpoint;
use crate::files;
use crate::lease::Lease;
use crate::owner::{Ownership, Writing};
use crate::process::Process;
use crate::{Generation, RunDir, RunsError};
use lockstep_base::fs::beneath::Purpose;
use lockstep_base::fs::{FileLock, FsError, random_letters};
use lockstep_place::Place;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Proof that nobody else trains this run; dropping it lets others do so.
#[derive(Debug)]
pub struct RunLock {
    run: RunDir,
    incarnation: String,
    hold: Hold,
}

#[derive(Debug)]
enum Hold {
    Local {
        /// Says who has the run. It is locked as well, for those who look from another container.
        said: File,
        path: PathBuf,
        _held: FileLock,
    },
    Remote(Lease),
}

impl RunDir {
    /// Removes the run and all that is in it, if nobody has it. It is held meanwhile, so that nobody goes on with it;
    /// `waiting` is told as by [`RunDir::lock`].
    ///
    /// # Errors
    /// When another process has it, and when something in it cannot be removed.
    pub fn remove(&self, waiting: &mut dyn FnMut(String)) -> Result<(), RunsError> {
        let _lock = self.lock(waiting)?;
        self.clone().discard()
    }

    /// Takes the run for this process alone. In a bucket this may wait for the lease of one that does not
    /// renew it; `waiting` is told so.
    ///
    /// # Errors
    /// [`RunsError::InUse`] when another process has it; or when the run cannot be written.
    pub fn lock(&self, waiting: &mut dyn FnMut(String)) -> Result<RunLock, RunsError> {
        let file = self.lock_file();
        let hold = match file.local() {
            Some(path) => match self.hold(&file, path)? {
                None => {
                    return Err(RunsError::InUse {
                        name: self.name.clone(),
                        holder: self.ownership()?.holder(),
                    });
                }
                Some((said, held)) => Hold::Local {
                    said,
                    path: path.to_owned(),
                    _held: held,
                },
            },
            None => Hold::Remote(Lease::take(file, &self.name, waiting)?),
        };
        let lock = RunLock {
            run: self.clone(),
            incarnation: random_letters::<12>()?,
            hold,
        };
        lock.change(&|ownership| ownership.owner = Some(Process::own()))?;
        Ok(lock)
    }

    /// Holds the run on this machine; nothing if another process does.
    fn hold(&self, file: &Place, path: &Path) -> Result<Option<(File, FileLock)>, RunsError> {
        let open = |place: &Place, purpose: Purpose| {
            let opened = place.open_local(purpose);
            let opened = opened.unwrap_or(Err(ErrorKind::Unsupported.into()));
            opened.map_err(FsError::io("write", path))
        };
        let hold = self.file(files::HOLD);
        let Some(held) = FileLock::try_hold(open(&hold, Purpose::Lock)?, path)? else {
            return Ok(None);
        };
        let said = open(file, Purpose::Write)?;
        // Where only readers have locked it, it can be shared with them. A program of before this one, which knows no other
        // lock, has it for itself.
        let taken = match said.try_lock() {
            Err(TryLockError::WouldBlock) => matches!(
                open(file, Purpose::Write)?.try_lock_shared(),
                Err(TryLockError::WouldBlock)
            ),
            Ok(()) | Err(TryLockError::Error(_)) => false,
        };
        Ok((!taken).then_some((said, held)))
    }
}

impl RunLock {
    /// Says that from now on only this generation of the gang writes states, and that it goes on from
    /// `checkpoint`, if from any. What others write from here on does not count.
    ///
    /// # Errors
    /// When the run cannot be written, or another owner has taken it.
    pub fn begin(
        &self,
        generation: u16,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<Generation, RunsError> {
        let generation = Generation {
            incarnation: self.incarnation.clone(),
            generation,
        };
        let writing = Writing {
            generation: generation.clone(),
            after: checkpoint.map_or(0, Checkpoint::number),
        };
        self.change(&|ownership| ownership.writing = Some(writing.clone()))?;
        Ok(generation)
    }

    fn change(&self, change: &dyn Fn(&mut Ownership)) -> Result<(), RunsError> {
        match &self.hold {
            Hold::Local { said, path, .. } => {
                let mut ownership = self.run.ownership()?;
                change(&mut ownership);
                // Written in place: it is the file itself that is locked. A torn one says nothing, and
                // after a power cut nobody is left whom it could keep away.
                let written = said
                    .set_len(0)
                    .and_then(|()| said.write_all_at(&ownership.to_bytes(), 0));
                Ok(written.map_err(FsError::io("write", path))?)
            }
            Hold::Remote(lease) => lease.change(change),
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A lease that could not be ended ends by itself.
        let _ = self.change(&|ownership| ownership.owner = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::{Access, Place};

    fn store(folder: &tempfile::TempDir) -> Place {
        Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap()
    }

    #[test]
    fn a_run_has_one_owner_until_that_one_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let (run, lock) = RunDir::create(&store(&folder), "job").unwrap();
        let error = run.lock(&mut |_| {}).unwrap_err();
        assert!(matches!(error, RunsError::InUse { .. }), "{error}");
        let said = error.to_string();
        let pid = std::process::id().to_string();
        assert!(said.contains(&run.name) && said.contains(&pid), "{said}");
        drop(lock);
        run.lock(&mut |_| {}).unwrap();
    }

    #[test]
    fn only_the_newest_generation_of_the_present_owner_may_write() {
        let folder = tempfile::tempdir().unwrap();
        let (run, lock) = RunDir::create(&store(&folder), "job").unwrap();
        let first = lock.begin(1, None).unwrap();
        run.check(&first).unwrap();
        let second = lock.begin(2, None).unwrap();
        run.check(&second).unwrap();
        let error = run.check(&first).unwrap_err();
        assert!(matches!(error, RunsError::Stale { .. }), "{error}");
        drop(lock);
        // Until another owner's gang begins, what the last one is writing still counts.
        let lock = run.lock(&mut |_| {}).unwrap();
        run.check(&second).unwrap();
        let third = lock.begin(1, None).unwrap();
        run.check(&third).unwrap();
        assert!(run.check(&second).is_err());
    }
}
