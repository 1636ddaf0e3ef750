//! The program that travels.

use crate::jobs::JobsError;
use crate::jobs::elf::{self, NotElf};
use std::fs;
use std::path::{Path, PathBuf};

/// A program for Linux that may travel to a cluster.
pub struct Binary {
    path: PathBuf,
    needs: Needs,
}

/// What a program needs of the node that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The processor, as the ELF format numbers them.
    pub(crate) machine: u16,
    /// The newest version of glibc that it asks for; none of a program that needs none.
    pub(crate) glibc: Option<(u32, u32)>,
}

impl Binary {
    /// Reads a program.
    ///
    /// # Errors
    /// When there is none, or when it is not one for 64-bit Linux.
    pub fn read(path: &Path) -> Result<Binary, JobsError> {
        let file = fs::read(path).map_err(|source| JobsError::Pack {
            path: path.to_owned(),
            source,
        })?;
        let wrong = |why: String| JobsError::Binary {
            path: path.to_owned(),
            why,
        };
        match elf::read(&file) {
            Ok(needs) => Ok(Binary {
                path: path.to_owned(),
                needs,
            }),
            Err(NotElf::Other) => {
                let what = match file.get(..4) {
                    Some(
                        [0xcf, 0xfa, 0xed, 0xfe]
                        | [0xce, 0xfa, 0xed, 0xfe]
                        | [0xca, 0xfe, 0xba, 0xbe],
                    ) => "it is a program for macOS",
                    Some([b'M', b'Z', ..]) => "it is a program for Windows",
                    _ => "it is not a program",
                };
                Err(wrong(format!("{what}, and clusters of Ray run Linux")))
            }
            Err(NotElf::Unsupported) => Err(wrong("it is not for 64-bit Linux".to_owned())),
            Err(NotElf::Damaged) => Err(wrong("the file is damaged".to_owned())),
        }
    }

    /// Where it was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it needs of the node that runs it.
    pub fn needs(&self) -> Needs {
        self.needs
    }
}

impl Needs {
    /// The processor it is for.
    pub(crate) fn processor(&self) -> String {
        match self.machine {
            62 => "x86-64".to_owned(),
            183 => "64-bit ARM".to_owned(),
            243 => "RISC-V".to_owned(),
            21 => "64-bit POWER".to_owned(),
            22 => "s390x".to_owned(),
            other => format!("processor number {other}"),
        }
    }

    /// The processor it is for, as `uname -m` names it.
    pub(crate) fn machine(&self) -> String {
        match self.machine {
            62 => "x86_64".to_owned(),
            183 => "aarch64".to_owned(),
            243 => "riscv64".to_owned(),
            21 => "ppc64le".to_owned(),
            22 => "s390x".to_owned(),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_run_on_a_cluster_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        for (bytes, why) in [
            (&b"\xcf\xfa\xed\xfe...."[..], "for macOS"),
            (b"MZ......", "for Windows"),
            (b"#!/bin/sh\n", "not a program"),
            (b"\x7fELF\x01\x01", "64-bit"),
            (b"\x7fELF\x02\x01", "damaged"),
        ] {
            fs::write(&path, bytes).unwrap();
            let error = Binary::read(&path).err().unwrap().to_string();
            assert!(error.contains(why) && error.contains("--binary"), "{error}");
        }
    }
}
