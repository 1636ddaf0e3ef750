//! The integration tests of `lockstep-tensors`: one program, a module for each subject.

mod bombs;
mod formats;

use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
