//! The integration tests of `lockstep-nn`: one program, a module for each subject.

mod agreement;
mod allocations;
mod clip;
mod clip_real;
mod efficientnet;
mod pytorch;
mod reference;
mod threads;

use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
