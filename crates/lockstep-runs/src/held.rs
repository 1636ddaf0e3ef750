//! Whether somebody has a run now, for those who only look.

use crate::process::Process;
use crate::{RunDir, RunsError};
use lockstep_base::fs::beneath::Purpose;
use std::fs::TryLockError;

/// Who has a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Nobody: it was let go, or its owner is gone.
    ByNobody,
    /// A process that goes on.
    BySomebody,
    /// A process of another machine, as its lease in a bucket says. It goes on as long as this text changes now and
    /// then.
    AsOf(String),
}

impl RunDir {
    /// Says whether somebody has the run now. Nothing is changed, and nobody is kept from taking it.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub fn held(&self) -> Result<Held, RunsError> {
        let ownership = self.ownership()?;
        let Some(owner) = &ownership.owner else {
            return Ok(Held::ByNobody);
        };
        if Process::is_gone(owner) {
            return Ok(Held::ByNobody);
        }
        if Process::is_here(owner) {
            return Ok(Held::BySomebody);
        }
        let file = self.lock_file();
        if file.local().is_none() {
            return Ok(Held::AsOf(format!(
                "{} {}",
                owner.words(),
                ownership.renewal
            )));
        }
        // A process that cannot be seen from here, such as one in another container: the lock of the file knows it. It
        // is held shared and for a moment only.
        let Some(Ok(file)) = file.open_local(Purpose::Read) else {
            return Ok(Held::BySomebody);
        };
        let looked = file.try_lock_shared();
        // What is being started beside this has the file open too, for a moment.
        let _ = file.unlock();
        Ok(match looked {
            Ok(()) => Held::ByNobody,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => Held::BySomebody,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::{Access, Place};

    #[test]
    fn a_run_is_held_until_its_owner_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let store = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let (run, lock) = RunDir::create(&store, "job").unwrap();
        assert_eq!(run.held().unwrap(), Held::BySomebody);
        // As another machine sees it, which does not know the process.
        let text = String::from_utf8(run.lock_file().read().unwrap()).unwrap();
        let mut said: serde_json::Value = serde_json::from_str(&text).unwrap();
        said["owner"]["world"] = "elsewhere".into();
        let path = run.lock_file().local().unwrap().to_owned();
        std::fs::write(&path, said.to_string()).unwrap();
        assert_eq!(run.held().unwrap(), Held::BySomebody);
        drop(lock);
        std::fs::write(&path, said.to_string()).unwrap();
        assert_eq!(run.held().unwrap(), Held::ByNobody);
        std::fs::write(&path, text).unwrap();
        assert_eq!(run.held().unwrap(), Held::BySomebody);
        run.lock(&mut |_| {}).unwrap();
        assert_eq!(run.held().unwrap(), Held::ByNobody);
    }
}
