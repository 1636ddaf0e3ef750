//! The integration tests of `lockstep-data`: one program, a module for each subject.

mod allocations;
mod encoding;
mod hostile_files;
mod memory;
mod targets;

use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
