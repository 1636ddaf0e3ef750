//! What the back end needs of a GPU, and no more: memory, copies, kernels, streams, events and graphs.
//!
//! [`Driver`] finds GPUs, [`Device`] is one of them. [`cuda`] is NVIDIA's driver; `emulated`, a module for tests, runs the
//! same kernels on the processor, so that everything above this seam is tested on machines without a GPU.
//!
//! Work is queued on streams and done later, in order: what a copy or a kernel reads and writes must be left alone until
//! the stream has come that far. Addresses are numbers, as they are for the driver. The modules `memory` and `streams` of
//! this crate make both safe.

pub mod cuda;
#[cfg(feature = "emulated")]
pub mod emulated;

use crate::arguments::Arguments;
use crate::error::CudaError;
use crate::kernels::KernelFile;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// Finds GPUs.
pub trait Driver: Send + Sync {
    /// The GPUs that are there, in the driver's order.
    ///
    /// # Errors
    /// When the driver does not answer.
    fn devices(&self) -> Result<Vec<DeviceFacts>, CudaError>;

    /// Opens the GPU of a number, counted from 0.
    ///
    /// # Errors
    /// When there is none, it is too old, or somebody else holds it.
    fn open(&self, index: usize) -> Result<Arc<dyn Device>, CudaError>;
}

/// What is known of a GPU before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Its number, counted from 0.
    pub index: usize,
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// Bytes of its memory.
    pub memory: u64,
    /// Its compute capability, before and after the point.
    pub capability: [u32; 2],
    /// What tells it from all others, as `nvidia-smi -L` prints it.
    pub uuid: String,
    /// What the driver supports.
    pub driver: DriverVersion,
}

impl DeviceFacts {
    /// Whether it is an H100 or its like, whose matrix units read shared memory by themselves. Kernels that use that run on no
    /// other GPU, not even on later ones.
    pub(crate) fn is_hopper(&self) -> bool {
        self.capability == [9, 0]
    }
}

/// The newest CUDA that a driver supports, such as 12.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DriverVersion {
    /// Before the point.
    pub major: u32,
    /// After it.
    pub minor: u32,
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A place in a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// What another process opens a piece of memory with: `CUipcMemHandle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct MemoryHandle(pub [u8; 64]);

/// A queue of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamHandle(pub usize);

/// A mark in a queue, to be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventHandle(pub usize);

/// Work that was recorded, to be queued as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GraphHandle(pub usize);

/// A kernel that was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function(pub usize);

/// How many threads run a kernel, and what they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Blocks in each direction.
    pub blocks: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of memory that the threads of a block share, beside what the kernel declares.
    pub shared: u32,
}

/// One GPU. Every method may be called from any thread.
pub trait Device: Send + Sync {
    /// What is known of it.
    fn facts(&self) -> &DeviceFacts;

    /// Bytes of its memory that are free.
    ///
    /// # Errors
    /// When the driver does not answer.
    fn free_memory(&self) -> Result<u64, CudaError>;

    /// Takes memory of the device; `what` says what for. It holds nothing of meaning.
    ///
    /// # Errors
    /// When there is not enough.
    fn allocate(&self, bytes: usize, what: &str) -> Result<Address, CudaError>;

    /// Gives memory back.
    ///
    /// # Safety
    /// It is [`Device::allocate`]'s, was not given back before, and no work that is queued uses it.
    unsafe fn free(&self, at: Address);

    /// What another process opens memory with.
    ///
    /// # Errors
    /// When it is not [`Device::allocate`]'s, or the driver cannot share memory.
    fn export(&self, at: Address) -> Result<MemoryHandle, CudaError>;

    /// The memory that another process exported, for this device to read, at an address of its own.
    ///
    /// # Errors
    /// When it was exported here, is gone, or is of a device that this one cannot read from.
    fn open_exported(&self, handle: MemoryHandle) -> Result<Address, CudaError>;

    /// Ends the use of such memory.
    ///
    /// # Safety
    /// It is [`Device::open_exported`]'s, was not closed before, and no work that is queued uses it.
    unsafe fn close_exported(&self, at: Address);

    /// Takes memory of the machine that the device reads and writes by itself. It holds zeros.
    ///
    /// # Errors
    /// When there is not enough.
    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>, CudaError>;

    /// Gives such memory back.
    ///
    /// # Safety
    /// It is [`Device::allocate_pinned`]'s, of so many bytes, was not given back before, and no work that is queued uses
    /// it.
    unsafe fn free_pinned(&self, at: NonNull<u8>, bytes: usize);

    /// A kernel, whose file is loaded when it is first asked for. Blocks may share `shared` bytes.
    ///
    /// # Errors
    /// When the file has no such kernel, or the device cannot load it.
    fn function(
        &self,
        file: &'static KernelFile,
        kernel: &'static str,
        shared: u32,
    ) -> Result<Function, CudaError>;

    /// A new queue.
    ///
    /// # Errors
    /// When the driver refuses, as with the next methods.
    fn create_stream(&self) -> Result<StreamHandle, CudaError>;

    /// Ends a queue, whose work is done.
    ///
    /// # Safety
    /// Nobody uses it any more, as with the next methods.
    unsafe fn destroy_stream(&self, stream: StreamHandle);

    /// A new mark.
    ///
    /// # Errors
    /// When the driver refuses.
    fn create_event(&self) -> Result<EventHandle, CudaError>;

    /// Ends a mark.
    ///
    /// # Safety
    /// Nobody uses it any more.
    unsafe fn destroy_event(&self, event: EventHandle);

    /// Queues a copy from the machine's memory. Unless that is pinned, it may be done before this returns.
    ///
    /// # Errors
    /// When the driver refuses, or work that was queued before has failed, as with all that follows.
    ///
    /// # Safety
    /// Both places have so many bytes, and stay until the copy is done; `from` is not written to meanwhile.
    unsafe fn copy_in(
        &self,
        stream: StreamHandle,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), CudaError>;

    /// Queues a copy to the machine's memory.
    ///
    /// # Errors
    /// When the driver refuses, or work that was queued before has failed.
    ///
    /// # Safety
    /// Both places have so many bytes, and stay until the copy is done; `to` is not looked at meanwhile.
    unsafe fn copy_out(
        &self,
        stream: StreamHandle,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), CudaError>;

    /// Queues the writing of so many bytes of one value.
    ///
    /// # Errors
    /// When the driver refuses, or work that was queued before has failed.
    ///
    /// # Safety
    /// The place has so many bytes, and stays until that is done.
    unsafe fn fill(
        &self,
        stream: StreamHandle,
        at: Address,
        value: u8,
        bytes: usize,
    ) -> Result<(), CudaError>;

    /// Queues a kernel.
    ///
    /// # Errors
    /// When the driver refuses, or work that was queued before has failed.
    ///
    /// # Safety
    /// The arguments are of this kernel, and what they point to is as large as the kernel takes it to be, and stays until
    /// it is done.
    unsafe fn launch(
        &self,
        stream: StreamHandle,
        function: Function,
        grid: Grid,
        arguments: &dyn Arguments,
    ) -> Result<(), CudaError>;

    /// From here on, what is queued on a stream is recorded instead of done.
    ///
    /// # Errors
    /// When the driver refuses.
    fn begin_capture(&self, stream: StreamHandle) -> Result<(), CudaError>;

    /// Ends the recording, and returns what was recorded.
    ///
    /// # Errors
    /// When something that cannot be recorded was asked for meanwhile.
    fn end_capture(&self, stream: StreamHandle) -> Result<GraphHandle, CudaError>;

    /// Ends a recording.
    ///
    /// # Safety
    /// Nobody uses it any more.
    unsafe fn destroy_graph(&self, graph: GraphHandle);

    /// Queues what was recorded.
    ///
    /// # Errors
    /// When the driver refuses, or work that was queued before has failed.
    ///
    /// # Safety
    /// What it uses is still there, and stays until it is done.
    unsafe fn launch_graph(
        &self,
        stream: StreamHandle,
        graph: GraphHandle,
    ) -> Result<(), CudaError>;

    /// Marks the place that a stream's queue ends at now.
    ///
    /// # Errors
    /// When the driver refuses.
    fn record(&self, stream: StreamHandle, event: EventHandle) -> Result<(), CudaError>;

    /// Lets what is queued on a stream from now on wait for a mark in another one.
    ///
    /// # Errors
    /// When the driver refuses.
    fn wait_on_stream(&self, stream: StreamHandle, event: EventHandle) -> Result<(), CudaError>;

    /// Waits until a stream has come to a mark.
    ///
    /// # Errors
    /// When work before it has failed.
    fn wait_for_event(&self, event: EventHandle) -> Result<(), CudaError>;

    /// Waits until everything on a stream is done.
    ///
    /// # Errors
    /// When some of it has failed.
    fn wait_for_stream(&self, stream: StreamHandle) -> Result<(), CudaError>;
}
