//! One GPU through NVIDIA's driver.

use super::ahead::{self, AHEAD, LaunchConfig};
use super::functions::{Code, DeviceNumber, Handle, code, number};
use super::library::Library;
use super::patience::{PATIENCE, wait_until};
use crate::arguments::Arguments;
use crate::driver::{
    Address, Device, DeviceFacts, EventHandle, Function, GraphHandle, Grid, MemoryHandle,
    StreamHandle,
};
use crate::error::CudaError;
use crate::kernels::KernelFile;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shared memory of a block up to which nothing has to be asked for.
const PLAIN_SHARED: u32 = 48 * 1024;

/// A GPU, by its primary context: the one that all users of the driver in a process share.
pub(super) struct CudaDevice {
    library: &'static Library,
    number: DeviceNumber,
    context: usize,
    facts: DeviceFacts,
    /// The kernels' files that were loaded, by their names.
    modules: Mutex<HashMap<&'static str, usize>>,
    /// Whether a kernel may begin before the one before it has ended.
    begins_ahead: bool,
    /// Whether it did not answer in time. Then the driver is not called any more: it might never return.
    is_lost: AtomicBool,
}

impl CudaDevice {
    pub(super) fn open(
        library: &'static Library,
        number: DeviceNumber,
        facts: DeviceFacts,
    ) -> Result<Self, CudaError> {
        let mut context: Handle = std::ptr::null_mut();
        // SAFETY: a place for a handle.
        let retained = unsafe { (library.functions.retain_context)(&raw mut context, number) };
        library.check(retained, || {
            format!("opening GPU {}, {}", facts.index, facts.name)
        })?;
        Ok(Self {
            begins_ahead: ahead::is_possible(facts.capability, facts.driver),
            library,
            number,
            context: context as usize,
            facts,
            modules: Mutex::default(),
            is_lost: AtomicBool::new(false),
        })
    }

    /// Calls the driver with this GPU's context, which belongs to a thread and so is set for each call.
    fn call(&self, doing: &str, function: impl FnOnce() -> Code) -> Result<(), CudaError> {
        self.refuse_if_lost()?;
        self.check(doing, self.in_context(function))
    }

    fn refuse_if_lost(&self) -> Result<(), CudaError> {
        match self.is_lost.load(Ordering::Relaxed) {
            true => Err(CudaError::Lost {
                index: self.facts.index,
                name: self.facts.name.clone(),
                seconds: PATIENCE.as_secs(),
            }),
            false => Ok(()),
        }
    }

    /// Waits until the driver says that something is done, but not for ever.
    fn wait(&self, ask: impl Fn() -> Code) -> Result<(), CudaError> {
        self.refuse_if_lost()?;
        let is_done = wait_until(PATIENCE, || match self.in_context(&ask) {
            code::NOT_READY => Ok(false),
            other => self.check("computing", other).map(|()| true),
        })?;
        if !is_done {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        self.refuse_if_lost()
    }

    fn in_context(&self, function: impl FnOnce() -> Code) -> Code {
        // SAFETY: the context is held until this is dropped.
        match unsafe { (self.library.functions.set_context)(self.context as Handle) } {
            0 => function(),
            error => error,
        }
    }

    fn check(&self, doing: &str, code: Code) -> Result<(), CudaError> {
        self.library.check(code, || {
            format!("{doing} on GPU {}, {}", self.facts.index, self.facts.name)
        })
    }

    /// The module of a file of kernels, which the driver compiles for this GPU and keeps for the next time.
    fn module(&self, file: &KernelFile) -> Result<Handle, CudaError> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&module) = modules.get(file.name) {
            return Ok(module as Handle);
        }
        let mut module: Handle = std::ptr::null_mut();
        let hopper = file.hopper.filter(|_| self.facts.is_hopper());
        let ptx = hopper.unwrap_or(file.ptx);
        let text = c_text(&ahead::ptx(ptx, self.begins_ahead))?;
        let doing = format!("loading the kernels of {}", file.name);
        // SAFETY: a place for a handle, and a text that ends with a zero.
        self.call(&doing, || unsafe {
            (self.library.functions.load_module)(&raw mut module, text.as_ptr().cast())
        })?;
        modules.insert(file.name, module as usize);
        Ok(module)
    }

    /// Something new of the driver's, whose handle `create` writes.
    fn create(
        &self,
        doing: &str,
        create: impl FnOnce(*mut Handle) -> Code,
    ) -> Result<usize, CudaError> {
        let mut handle: Handle = std::ptr::null_mut();
        self.call(doing, || create(&raw mut handle))?;
        Ok(handle as usize)
    }

    /// Gives something back. There is nobody to tell if the driver refuses.
    fn give_back(&self, function: impl FnOnce() -> Code) {
        if !self.is_lost.load(Ordering::Relaxed) {
            let _ = self.in_context(function);
        }
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // Its modules go with the context, unless somebody else holds that.
        // SAFETY: it was retained once, and is used no more.
        self.give_back(|| unsafe { (self.library.functions.release_context)(self.number) });
    }
}

// SAFETY (all blocks): handles are those that the driver returned, and addresses and lengths those that the caller
// promises; whatever else a call is given lives until it returns.
impl Device for CudaDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn free_memory(&self) -> Result<u64, CudaError> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: two places for numbers.
        self.call("asking for free memory", || unsafe {
            (self.library.functions.memory_info)(&raw mut free, &raw mut total)
        })?;
        Ok(free as u64)
    }

    fn allocate(&self, bytes: usize, what: &str) -> Result<Address, CudaError> {
        self.refuse_if_lost()?;
        let mut at = 0;
        // SAFETY: a place for an address. The driver refuses to give no bytes.
        let code = self
            .in_context(|| unsafe { (self.library.functions.allocate)(&raw mut at, bytes.max(1)) });
        if code == code::OUT_OF_MEMORY {
            return Err(CudaError::OutOfMemory {
                device: format!("GPU {}, {},", self.facts.index, self.facts.name),
                what: what.to_owned(),
                asked: bytes,
                free: self.free_memory().unwrap_or(0),
                total: self.facts.memory,
            });
        }
        self.check(&format!("taking memory for {what}"), code)?;
        Ok(Address(at))
    }

    unsafe fn free(&self, at: Address) {
        // SAFETY: see the impl.
        self.give_back(|| unsafe { (self.library.functions.free)(at.0) });
    }

    fn export(&self, at: Address) -> Result<MemoryHandle, CudaError> {
        let mut handle = MemoryHandle([0; 64]);
        // SAFETY: a place for a handle.
        self.call("sharing memory with other processes", || unsafe {
            (self.library.functions.export)(&raw mut handle, at.0)
        })?;
        Ok(handle)
    }

    fn open_exported(&self, handle: MemoryHandle) -> Result<Address, CudaError> {
        let mut at = 0;
        // SAFETY: a place for an address; the driver refuses what is no handle of its own.
        self.call("opening another process's memory", || unsafe {
            let open = self.library.functions.open_exported;
            open(&raw mut at, handle, number::READABLE_BY_PEERS)
        })?;
        Ok(Address(at))
    }

    unsafe fn close_exported(&self, at: Address) {
        // SAFETY: see the impl.
        self.give_back(|| unsafe { (self.library.functions.close_exported)(at.0) });
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>, CudaError> {
        let bytes = bytes.max(1);
        let mut at: *mut c_void = std::ptr::null_mut();
        // SAFETY: a place for an address; no flags.
        self.call("taking pinned memory of the machine", || unsafe {
            (self.library.functions.allocate_pinned)(&raw mut at, bytes, 0)
        })?;
        let at = NonNull::new(at.cast::<u8>()).expect("the driver gave memory");
        // SAFETY: so many bytes were just given.
        unsafe { at.write_bytes(0, bytes) };
        Ok(at)
    }

    unsafe fn free_pinned(&self, at: NonNull<u8>, _bytes: usize) {
        // SAFETY: see the impl.
        self.give_back(|| unsafe { (self.library.functions.free_pinned)(at.as_ptr().cast()) });
    }

    fn function(
        &self,
        file: &'static KernelFile,
        kernel: &'static str,
        shared: u32,
    ) -> Result<Function, CudaError> {
        let module = self.module(file)?;
        let name = c_text(kernel)?;
        let doing = format!("looking for kernel {kernel}");
        // SAFETY: see the impl.
        let function = self.create(&doing, |function| unsafe {
            (self.library.functions.function)(function, module, name.as_ptr())
        })?;
        if shared > PLAIN_SHARED {
            // SAFETY: see the impl.
            self.call(&doing, || unsafe {
                let set = self.library.functions.set_function_attribute;
                set(function as Handle, number::MOST_SHARED, shared as i32)
            })?;
        }
        Ok(Function(function))
    }

    fn create_stream(&self) -> Result<StreamHandle, CudaError> {
        // SAFETY: see the impl.
        let stream = self.create("making a stream", |stream| unsafe {
            (self.library.functions.create_stream)(stream, number::NON_BLOCKING)
        })?;
        Ok(StreamHandle(stream))
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) {
        // SAFETY: see the impl.
        self.give_back(|| unsafe { (self.library.functions.destroy_stream)(stream.0 as Handle) });
    }

    fn create_event(&self) -> Result<EventHandle, CudaError> {
        // SAFETY: see the impl.
        let event = self.create("making an event", |event| unsafe {
            (self.library.functions.create_event)(event, number::WITHOUT_TIME)
        })?;
        Ok(EventHandle(event))
    }

    unsafe fn destroy_event(&self, event: EventHandle) {
        // SAFETY: see the impl.
        self.give_back(|| unsafe { (self.library.functions.destroy_event)(event.0 as Handle) });
    }

    unsafe fn copy_in(
        &self,
        stream: StreamHandle,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.call("copying to the GPU", || unsafe {
            (self.library.functions.copy_in)(to.0, from.cast(), bytes, stream.0 as Handle)
        })
    }

    unsafe fn copy_out(
        &self,
        stream: StreamHandle,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.call("copying from the GPU", || unsafe {
            (self.library.functions.copy_out)(to.cast(), from.0, bytes, stream.0 as Handle)
        })
    }

    unsafe fn fill(
        &self,
        stream: StreamHandle,
        at: Address,
        value: u8,
        bytes: usize,
    ) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.call("filling memory", || unsafe {
            (self.library.functions.fill)(at.0, value, bytes, stream.0 as Handle)
        })
    }

    unsafe fn launch(
        &self,
        stream: StreamHandle,
        function: Function,
        grid: Grid,
        arguments: &dyn Arguments,
    ) -> Result<(), CudaError> {
        let config = LaunchConfig {
            blocks: grid.blocks,
            threads: [grid.threads, 1, 1],
            shared: grid.shared,
            stream: stream.0 as Handle,
            attributes: &raw const AHEAD,
            attribute_count: self.begins_ahead.into(),
        };
        let mut arguments = [std::ptr::from_ref(arguments).cast_mut().cast::<c_void>()];
        // SAFETY: see the impl; the kernel takes one argument, which the driver copies before it returns.
        self.call("queueing a kernel", || unsafe {
            (self.library.functions.launch)(
                &raw const config,
                function.0 as Handle,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    fn begin_capture(&self, stream: StreamHandle) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.call("beginning to record a graph", || unsafe {
            (self.library.functions.begin_capture)(stream.0 as Handle, number::THIS_THREAD)
        })
    }

    fn end_capture(&self, stream: StreamHandle) -> Result<GraphHandle, CudaError> {
        // SAFETY: see the impl.
        let graph = self.create("recording a graph", |graph| unsafe {
            (self.library.functions.end_capture)(stream.0 as Handle, graph)
        })?;
        // SAFETY: see the impl.
        let executable = self.create("making a graph ready", |executable| unsafe {
            (self.library.functions.instantiate_graph)(executable, graph as Handle, 0)
        });
        // SAFETY: what was made of it does not need it any more.
        self.give_back(|| unsafe { (self.library.functions.destroy_graph)(graph as Handle) });
        Ok(GraphHandle(executable?))
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) {
        // SAFETY: see the impl.
        self.give_back(|| unsafe {
            (self.library.functions.destroy_executable)(graph.0 as Handle)
        });
    }

    unsafe fn launch_graph(
        &self,
        stream: StreamHandle,
        graph: GraphHandle,
    ) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.call("queueing a step", || unsafe {
            (self.library.functions.launch_graph)(graph.0 as Handle, stream.0 as Handle)
        })
    }

    fn record(&self, stream: StreamHandle, event: EventHandle) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.call("marking a place in a stream", || unsafe {
            (self.library.functions.record_event)(event.0 as Handle, stream.0 as Handle)
        })
    }

    fn wait_on_stream(&self, stream: StreamHandle, event: EventHandle) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.call("letting a stream wait", || unsafe {
            (self.library.functions.wait_on_stream)(stream.0 as Handle, event.0 as Handle, 0)
        })
    }

    fn wait_for_event(&self, event: EventHandle) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.wait(|| unsafe { (self.library.functions.ask_event)(event.0 as Handle) })
    }

    fn wait_for_stream(&self, stream: StreamHandle) -> Result<(), CudaError> {
        // SAFETY: see the impl.
        self.wait(|| unsafe { (self.library.functions.ask_stream)(stream.0 as Handle) })
    }
}

/// A text as C wants it.
fn c_text(text: &str) -> Result<CString, CudaError> {
    CString::new(text).map_err(|_| CudaError::Mismatch {
        what: "a kernel's text",
        found: "a zero byte in it".to_owned(),
        expected: "none".to_owned(),
    })
}
