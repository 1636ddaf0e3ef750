//! The integration tests of `lockstep-gang`: one program, a module for each subject.

mod allocations;
mod attacks;
mod conformance;
mod gangs;
mod hosts;
mod keepers;
mod kept;
mod senders;
mod shm;
mod tcp;

use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
