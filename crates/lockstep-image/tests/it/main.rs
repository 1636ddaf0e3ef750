//! The integration tests of `lockstep-image`: one program, a module for each subject.

mod bad_pictures;
mod common;
mod mutations;
mod reference;

use lockstep_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
