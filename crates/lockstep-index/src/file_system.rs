//! Whether a folder lies on a file system that other machines may use too.
//!
//! SQLite's write-ahead log needs memory that all its users share, so it is right only where all of them are on one
//! machine. Elsewhere the older rollback journal is used, which needs nothing but locks of files.

use std::path::Path;

/// File systems whose files may be open on several machines, by the number that Linux knows them by. FUSE and 9p are
/// among them because nobody can tell what is behind them.
#[cfg(target_os = "linux")]
const SHARED: [u64; 15] = [
    0x6969,      // nfs
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb2
    0x517b,      // smb
    0x6573_5546, // fuse
    0x0102_1997, // 9p
    0x0bd0_0bd0, // lustre
    0x00c3_6400, // ceph
    0x0116_1970, // gfs2
    0x7461_636f, // ocfs2
    0x4750_4653, // gpfs
    0x1983_0326, // beegfs
    0x5346_414f, // afs
    0x7375_7245, // coda
    0x786f_4256, // vboxsf
];

/// Whether the file system of `path` may be shared with other machines. One that does not say counts as shared.
#[cfg(target_os = "linux")]
pub(crate) fn is_shared(path: &Path) -> bool {
    match rustix::fs::statfs(path) {
        Ok(found) => SHARED.contains(&((found.f_type as u64) & 0xffff_ffff)),
        Err(_) => true,
    }
}

/// Elsewhere nobody tells, so every file system counts as shared.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_shared(_path: &Path) -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_shared_and_what_is_not_there_counts_as_shared() {
        if Path::new("/dev/shm").exists() {
            assert!(!is_shared(Path::new("/dev/shm")));
        }
        assert!(is_shared(Path::new("/no such folder")));
    }
}
