//! Queues of a device, marks in them and recorded work, owned: they end when they are dropped.

use crate::driver::{Device, EventHandle, GraphHandle, StreamHandle};
use crate::error::CudaError;
use crate::launch::LoadedLaunch;
use std::sync::Arc;

/// A queue of work.
pub(crate) struct Stream {
    device: Arc<dyn Device>,
    handle: StreamHandle,
}

impl Stream {
    pub(crate) fn new(device: &Arc<dyn Device>) -> Result<Self, CudaError> {
        Ok(Self {
            handle: device.create_stream()?,
            device: device.clone(),
        })
    }

    pub(crate) fn handle(&self) -> StreamHandle {
        self.handle
    }

    /// Waits until everything on it is done.
    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        self.device.wait_for_stream(self.handle)
    }

    /// Queues some kernels.
    ///
    /// # Safety
    /// The memory that they use stays until they are done.
    pub(crate) unsafe fn launch(&self, launches: &[LoadedLaunch]) -> Result<(), CudaError> {
        for launch in launches {
            let arguments = &*launch.arguments;
            // SAFETY: the arguments are of the kernel; the memory stays by this function's contract.
            unsafe {
                self.device
                    .launch(self.handle, launch.function, launch.grid, arguments)?;
            }
        }
        Ok(())
    }

    /// Queues a graph.
    ///
    /// # Safety
    /// The memory that it uses stays until it is done.
    pub(crate) unsafe fn launch_graph(&self, graph: &Graph) -> Result<(), CudaError> {
        // SAFETY: by this function's contract.
        unsafe { self.device.launch_graph(self.handle, graph.handle) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // An error was reported to whoever waited for the work.
        let _ = self.wait();
        // SAFETY: nothing is queued on it any more.
        unsafe { self.device.destroy_stream(self.handle) };
    }
}

/// A mark in a queue.
pub(crate) struct Event {
    device: Arc<dyn Device>,
    handle: EventHandle,
}

impl Event {
    pub(crate) fn new(device: &Arc<dyn Device>) -> Result<Self, CudaError> {
        Ok(Self {
            handle: device.create_event()?,
            device: device.clone(),
        })
    }

    /// Marks the place that a stream's queue ends at now.
    pub(crate) fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        self.device.record(stream.handle, self.handle)
    }

    /// Waits until the stream has come to the mark. One that was never recorded is not waited for.
    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        self.device.wait_for_event(self.handle)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody waits for it any more.
        unsafe { self.device.destroy_event(self.handle) };
    }
}

/// Work that was recorded once, and is queued as one.
pub(crate) struct Graph {
    device: Arc<dyn Device>,
    handle: GraphHandle,
}

impl Graph {
    /// Records some kernels.
    pub(crate) fn new(
        device: &Arc<dyn Device>,
        stream: &Stream,
        launches: &[LoadedLaunch],
    ) -> Result<Self, CudaError> {
        device.begin_capture(stream.handle)?;
        // SAFETY: nothing is done while it is recorded.
        let queued = unsafe { stream.launch(launches) };
        // Ended whatever happened: a stream that records can be used for nothing else.
        let handle = device.end_capture(stream.handle);
        queued?;
        Ok(Self {
            handle: handle?,
            device: device.clone(),
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: whoever queued it has waited for it.
        unsafe { self.device.destroy_graph(self.handle) };
    }
}
