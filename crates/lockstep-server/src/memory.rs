//! Memory that was needed for a moment is given back.
//!
//! The allocator keeps what was freed, for the next burst. A server waits for most of its life, so now and then it is told
//! to give back what it can.

use std::time::Duration;
use tokio::time::sleep;

/// How often it is.
const PAUSE: Duration = Duration::from_secs(5);

/// Gives memory back now and then, for as long as the server lives.
pub(crate) async fn give_back_again_and_again() {
    loop {
        sleep(PAUSE).await;
        // It takes the allocator's locks, so nobody who answers waits for it.
        let _ = tokio::task::spawn_blocking(give_back).await;
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn give_back() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> i32;
    }
    // SAFETY: glibc's function may be called at any time from any thread, and changes nothing that is in use.
    unsafe { malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}
