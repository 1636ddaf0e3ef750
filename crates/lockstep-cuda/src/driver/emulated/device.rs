//! The emulated GPU itself.

use super::Fault;
use super::compile::{CompiledFile, EmulatedKernel, wrong};
use crate::arguments::Arguments;
use crate::driver::{
    Address, Device, DeviceFacts, EventHandle, Function, GraphHandle, Grid, MemoryHandle,
    StreamHandle,
};
use crate::error::CudaError;
use crate::kernels::{HEADERS, KernelFile};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// What memory is aligned to, as on a GPU.
const ALIGNMENT: usize = 256;

/// What memory holds before it is written to: a NaN.
const UNWRITTEN: u8 = 0xff;

/// A kernel that was asked for.
#[derive(Clone, Copy)]
struct LoadedKernel {
    name: &'static str,
    file: &'static KernelFile,
    compiled: &'static CompiledFile,
    kernel: &'static EmulatedKernel,
}

/// Arguments that were copied, aligned for anything.
type CopiedArguments = Box<[MaybeUninit<u64>]>;

/// What is being recorded on a stream.
struct Recording {
    /// Who records. What other threads do meanwhile is their own matter, as with NVIDIA's driver.
    by: ThreadId,
    launches: Vec<RecordedLaunch>,
}

/// A launch that was recorded.
struct RecordedLaunch {
    kernel: LoadedKernel,
    blocks: [u32; 3],
    arguments: CopiedArguments,
}

#[derive(Default)]
struct State {
    /// The memory that was taken, by its address.
    taken: HashMap<u64, usize>,
    kernels: Vec<LoadedKernel>,
    /// What is being recorded, by its stream.
    recordings: HashMap<StreamHandle, Recording>,
    graphs: HashMap<GraphHandle, Arc<Vec<RecordedLaunch>>>,
    /// Kernels, and declarations of arguments that their files have.
    declared: HashSet<(&'static str, String)>,
    /// Handles that were given out.
    handles: usize,
    /// How often a graph was queued.
    graphs_queued: usize,
    /// Whether it is lost, as it was asked to be.
    is_lost: bool,
}

impl State {
    /// Whether a kernel's file, or a header, has such arguments.
    fn is_declared(&mut self, kernel: LoadedKernel, declaration: &str) -> bool {
        let known = (kernel.name, declaration.to_owned());
        if self.declared.contains(&known) {
            return true;
        }
        let headers = HEADERS.iter().map(|&(_, text)| text);
        let mut texts = headers.chain([kernel.file.source]);
        let found = texts.any(|text| plain(text).contains(declaration));
        if found {
            self.declared.insert(known);
        }
        found
    }
}

/// An emulated GPU.
pub(super) struct EmulatedDevice {
    facts: DeviceFacts,
    folder: PathBuf,
    fault: Fault,
    state: Mutex<State>,
}

impl EmulatedDevice {
    /// Keeps compiled kernels in this folder.
    pub(super) fn new(facts: DeviceFacts, folder: &Path, fault: Fault) -> Self {
        Self {
            facts,
            fault,
            folder: folder.to_owned(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self) -> usize {
        let mut state = self.state();
        state.handles += 1;
        state.handles
    }

    /// A GPU that is lost does nothing more.
    fn refuse_if_lost(&self) -> Result<(), CudaError> {
        match self.state().is_lost {
            true => Err(CudaError::Lost {
                index: self.facts.index,
                name: self.facts.name.clone(),
                seconds: 0,
            }),
            false => Ok(()),
        }
    }

    /// What cannot be recorded must not be queued by a thread that records.
    fn refuse_while_recording(&self, what: &str) -> Result<(), CudaError> {
        self.refuse_if_lost()?;
        let here = thread::current().id();
        let state = self.state();
        let mut recordings = state.recordings.values();
        match recordings.any(|recording| recording.by == here) {
            false => Ok(()),
            true => Err(wrong(
                &self.folder,
                format!("{what} while a graph is recorded"),
            )),
        }
    }

    /// Checks that a launch is one of its kernel, as far as can be seen.
    fn check(
        state: &mut State,
        kernel: LoadedKernel,
        grid: Grid,
        arguments: &dyn Arguments,
    ) -> Result<(), CudaError> {
        let known = kernel.kernel;
        let refuse = |reason: String| Err(wrong(Path::new(kernel.name), reason));
        if grid.threads != known.threads {
            return refuse(format!(
                "launched with {} threads a block, and has {}",
                grid.threads, known.threads
            ));
        }
        if size_of_val(arguments) as u64 != known.argument_bytes {
            return refuse(format!(
                "launched with {} bytes of arguments, and takes {}",
                size_of_val(arguments),
                known.argument_bytes
            ));
        }
        let declaration = arguments.declaration();
        if !state.is_declared(kernel, &declaration) {
            return refuse(format!(
                "its file does not have the arguments that it is launched with: {declaration}"
            ));
        }
        if grid.blocks.contains(&0) || grid.blocks[1..].iter().any(|&blocks| blocks > 65_535) {
            return refuse(format!("launched with {:?} blocks", grid.blocks));
        }
        Ok(())
    }
}

/// Runs a kernel.
///
/// # Safety
/// The arguments are of the kernel, and point to as much as it takes them to.
unsafe fn run(
    kernel: LoadedKernel,
    blocks: [u32; 3],
    arguments: *const c_void,
) -> Result<(), CudaError> {
    // SAFETY: by this function's contract.
    let wrong_words =
        unsafe { (kernel.compiled.launch)(kernel.kernel, arguments, blocks.as_ptr()) };
    if wrong_words.is_null() {
        return Ok(());
    }
    // SAFETY: the library's words are constants that end with a zero.
    let words = unsafe { CStr::from_ptr(wrong_words) };
    Err(wrong(
        Path::new(kernel.name),
        words.to_string_lossy().into_owned(),
    ))
}

/// A text without comments, and with single spaces.
fn plain(text: &str) -> String {
    let lines = text.lines();
    let words = lines.flat_map(|line| line.split("//").next().unwrap_or("").split_whitespace());
    words.collect::<Vec<_>>().join(" ")
}

fn memory_of(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).expect("not more than there can be")
}

// SAFETY (all blocks): addresses are of memory that `allocate` gave, or that the caller promises to be as long as is said.
impl Device for EmulatedDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn free_memory(&self) -> Result<u64, CudaError> {
        let taken: usize = self.state().taken.values().sum();
        Ok(self.facts.memory - taken as u64)
    }

    fn allocate(&self, bytes: usize, what: &str) -> Result<Address, CudaError> {
        self.refuse_while_recording("memory was taken")?;
        let free = self.free_memory()?;
        if bytes as u64 > free {
            return Err(CudaError::OutOfMemory {
                device: self.facts.name.clone(),
                what: what.to_owned(),
                asked: bytes,
                free,
                total: self.facts.memory,
            });
        }
        // SAFETY: the layout has at least one byte.
        let at = unsafe { alloc(memory_of(bytes)) };
        assert!(!at.is_null(), "the machine has {bytes} bytes left");
        // SAFETY: so many bytes were just given.
        unsafe { at.write_bytes(UNWRITTEN, bytes) };
        let at = at as u64;
        self.state().taken.insert(at, bytes);
        Ok(Address(at))
    }

    unsafe fn free(&self, at: Address) {
        if let Some(bytes) = self.state().taken.remove(&at.0) {
            // SAFETY: see the impl.
            unsafe { dealloc(at.0 as *mut u8, memory_of(bytes)) };
        }
    }

    fn export(&self, at: Address) -> Result<MemoryHandle, CudaError> {
        let mut handle = MemoryHandle([0; 64]);
        handle.0[..8].copy_from_slice(&at.0.to_le_bytes());
        Ok(handle)
    }

    fn open_exported(&self, _: MemoryHandle) -> Result<Address, CudaError> {
        let reason = "memory of another process was opened";
        Err(wrong(&self.folder, reason.to_owned()))
    }

    unsafe fn close_exported(&self, _: Address) {}

    fn allocate_pinned(&self, bytes: usize) -> Result<NonNull<u8>, CudaError> {
        // SAFETY: the layout has at least one byte.
        let at = unsafe { alloc_zeroed(memory_of(bytes)) };
        Ok(NonNull::new(at).expect("the machine has memory left"))
    }

    unsafe fn free_pinned(&self, at: NonNull<u8>, bytes: usize) {
        // SAFETY: see the impl.
        unsafe { dealloc(at.as_ptr(), memory_of(bytes)) };
    }

    fn function(
        &self,
        file: &'static KernelFile,
        kernel: &'static str,
        _shared: u32,
    ) -> Result<Function, CudaError> {
        let mut state = self.state();
        let known = |loaded: &LoadedKernel| loaded.name == kernel && loaded.file.name == file.name;
        if let Some(number) = state.kernels.iter().position(known) {
            return Ok(Function(number));
        }
        let compiled = CompiledFile::get(&self.folder, file)?;
        state.kernels.push(LoadedKernel {
            name: kernel,
            file,
            compiled,
            kernel: compiled.kernel(kernel)?,
        });
        Ok(Function(state.kernels.len() - 1))
    }

    fn create_stream(&self) -> Result<StreamHandle, CudaError> {
        self.refuse_if_lost()?;
        Ok(StreamHandle(self.handle()))
    }

    unsafe fn destroy_stream(&self, _: StreamHandle) {}

    fn create_event(&self) -> Result<EventHandle, CudaError> {
        self.refuse_if_lost()?;
        Ok(EventHandle(self.handle()))
    }

    unsafe fn destroy_event(&self, _: EventHandle) {}

    unsafe fn copy_in(
        &self,
        _: StreamHandle,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), CudaError> {
        self.refuse_while_recording("a copy was queued")?;
        // SAFETY: see the impl.
        unsafe { std::ptr::copy_nonoverlapping(from, to.0 as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn copy_out(
        &self,
        _: StreamHandle,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), CudaError> {
        self.refuse_while_recording("a copy was queued")?;
        // SAFETY: see the impl.
        unsafe { std::ptr::copy_nonoverlapping(from.0 as *const u8, to, bytes) };
        if self.fault == Fault::FlippedBit && bytes > 0 {
            // SAFETY: see the impl.
            unsafe { *to ^= 1 };
        }
        Ok(())
    }

    unsafe fn fill(
        &self,
        _: StreamHandle,
        at: Address,
        value: u8,
        bytes: usize,
    ) -> Result<(), CudaError> {
        self.refuse_while_recording("memory was filled")?;
        // SAFETY: see the impl.
        unsafe { std::ptr::write_bytes(at.0 as *mut u8, value, bytes) };
        Ok(())
    }

    unsafe fn launch(
        &self,
        stream: StreamHandle,
        function: Function,
        grid: Grid,
        arguments: &dyn Arguments,
    ) -> Result<(), CudaError> {
        self.refuse_if_lost()?;
        let mut state = self.state();
        let kernel = state.kernels[function.0];
        Self::check(&mut state, kernel, grid, arguments)?;
        let from = std::ptr::from_ref(arguments).cast::<u8>();
        let Some(recording) = state.recordings.get_mut(&stream) else {
            drop(state);
            // SAFETY: see the impl.
            return unsafe { run(kernel, grid.blocks, from.cast()) };
        };
        let bytes = size_of_val(arguments);
        let mut copied: CopiedArguments = vec![MaybeUninit::uninit(); bytes.div_ceil(8)].into();
        // SAFETY: there is room for as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, copied.as_mut_ptr().cast(), bytes) };
        recording.launches.push(RecordedLaunch {
            kernel,
            blocks: grid.blocks,
            arguments: copied,
        });
        Ok(())
    }

    fn begin_capture(&self, stream: StreamHandle) -> Result<(), CudaError> {
        let recording = Recording {
            by: thread::current().id(),
            launches: Vec::new(),
        };
        self.state().recordings.insert(stream, recording);
        Ok(())
    }

    fn end_capture(&self, stream: StreamHandle) -> Result<GraphHandle, CudaError> {
        let graph = GraphHandle(self.handle());
        let mut state = self.state();
        let recorded = state.recordings.remove(&stream);
        let launches = recorded.map(|recording| recording.launches);
        let launches = Arc::new(launches.unwrap_or_default());
        state.graphs.insert(graph, launches);
        Ok(graph)
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) {
        self.state().graphs.remove(&graph);
    }

    unsafe fn launch_graph(&self, _: StreamHandle, graph: GraphHandle) -> Result<(), CudaError> {
        let recorded = {
            let mut state = self.state();
            state.graphs_queued += 1;
            state.is_lost |= self.fault == Fault::LostAt(state.graphs_queued);
            state.graphs.get(&graph).cloned()
        };
        self.refuse_if_lost()?;
        for launch in recorded.iter().flat_map(|recorded| recorded.iter()) {
            // SAFETY: see the impl.
            unsafe {
                run(
                    launch.kernel,
                    launch.blocks,
                    launch.arguments.as_ptr().cast(),
                )?
            };
        }
        Ok(())
    }

    fn record(&self, _: StreamHandle, _: EventHandle) -> Result<(), CudaError> {
        self.refuse_if_lost()
    }

    fn wait_on_stream(&self, _: StreamHandle, _: EventHandle) -> Result<(), CudaError> {
        self.refuse_if_lost()
    }

    fn wait_for_event(&self, _: EventHandle) -> Result<(), CudaError> {
        self.refuse_while_recording("an event was waited for")
    }

    fn wait_for_stream(&self, _: StreamHandle) -> Result<(), CudaError> {
        self.refuse_while_recording("a stream was waited for")
    }
}
