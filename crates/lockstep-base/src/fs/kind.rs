//! What a file that is not a regular one is called in messages.

use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;

/// The words for a file that is not a regular one.
pub fn file_kind(file_type: FileType) -> &'static str {
    if file_type.is_dir() {
        "a folder"
    } else if file_type.is_fifo() {
        "a FIFO"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
