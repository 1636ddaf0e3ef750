//! The integration tests of `lockstep-table`: one program, a module for each subject.

mod bombs;
mod hostile;
mod pyarrow;
mod remote;
mod round_trip;
mod tables;

use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
