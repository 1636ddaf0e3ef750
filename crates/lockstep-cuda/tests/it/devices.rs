//! What every device must do beside computing: memory, copies, graphs, and refusals that say why.

use lockstep_cuda::driver::{Driver, Grid};
use lockstep_cuda::{Arguments, CudaError, FILES, KernelFile};

/// Everything, on the first device of a driver.
pub(crate) fn all(driver: &dyn Driver) {
    facts_name_it(driver);
    bytes_come_back_as_they_were_written(driver);
    memory_that_is_not_there_is_refused_with_sizes(driver);
    what_is_unknown_is_refused_by_its_name(driver);
    graphs_are_done_when_they_are_queued_and_as_often(driver);
}

fn file(name: &str) -> &'static KernelFile {
    let found = FILES.iter().find(|file| file.name == name);
    found.expect("a file of kernels")
}

fn facts_name_it(driver: &dyn Driver) {
    let devices = driver.devices().unwrap();
    let first = &devices[0];
    assert!(!first.name.is_empty() && first.memory > 0 && first.capability >= [8, 0]);
    assert!(
        first.uuid.starts_with("GPU-") && first.uuid.len() == 40,
        "{first:?}"
    );
    assert_eq!(driver.open(0).unwrap().facts(), first);
    let Err(CudaError::NoSuchDevice { index, count }) = driver.open(devices.len()) else {
        panic!("there is no such GPU");
    };
    assert_eq!((index, count), (devices.len(), devices.len()));
}

fn bytes_come_back_as_they_were_written(driver: &dyn Driver) {
    let device = driver.open(0).unwrap();
    let bytes = 1000;
    let (stream, event) = (
        device.create_stream().unwrap(),
        device.create_event().unwrap(),
    );
    let at = device.allocate(bytes, "a test").unwrap();
    let host = device.allocate_pinned(bytes).unwrap();
    // SAFETY: all places have so many bytes, and the stream is waited for before they are looked at or given back.
    unsafe {
        let written: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
        device.copy_in(stream, at, written.as_ptr(), bytes).unwrap();
        device.record(stream, event).unwrap();
        device.wait_for_event(event).unwrap();
        device.fill(stream, at, 7, 10).unwrap();
        device.copy_out(stream, host.as_ptr(), at, bytes).unwrap();
        device.wait_on_stream(stream, event).unwrap();
        device.wait_for_stream(stream).unwrap();
        let found = std::slice::from_raw_parts(host.as_ptr(), bytes);
        assert_eq!((&found[..10], &found[10..]), (&[7; 10][..], &written[10..]));
        device.free(at);
        device.free_pinned(host, bytes);
        device.destroy_event(event);
        device.destroy_stream(stream);
    }
}

fn memory_that_is_not_there_is_refused_with_sizes(driver: &dyn Driver) {
    let device = driver.open(0).unwrap();
    let error = device.allocate(1 << 50, "far too much").unwrap_err();
    let CudaError::OutOfMemory {
        asked, free, total, ..
    } = error
    else {
        panic!("{error}");
    };
    assert!(asked == 1 << 50 && free <= total && total < 1 << 50);
    let words = error.to_string();
    assert!(
        words.contains("for far too much") && words.contains("smaller batch"),
        "{words}"
    );
}

fn what_is_unknown_is_refused_by_its_name(driver: &dyn Driver) {
    let device = driver.open(0).unwrap();
    let known = device.function(file("pointwise"), "copy", 0).unwrap();
    assert_eq!(
        device.function(file("pointwise"), "copy", 0).unwrap(),
        known
    );
    let error = device
        .function(file("pointwise"), "no_kernel", 0)
        .unwrap_err();
    assert!(error.to_string().contains("no_kernel"), "{error}");
}

/// The arguments of the kernel `copy`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Copy {
    from: u64,
    to: u64,
    numbers: u64,
}

// SAFETY: three numbers of 64 bits, as C has them.
unsafe impl Arguments for Copy {
    fn declaration(&self) -> String {
        "struct Copy { float *from; float *to; u64 numbers; };".to_owned()
    }
}

fn graphs_are_done_when_they_are_queued_and_as_often(driver: &dyn Driver) {
    let device = driver.open(0).unwrap();
    let stream = device.create_stream().unwrap();
    let [from, to] = [(); 2].map(|()| device.allocate(4, "a number").unwrap());
    let copy = device.function(file("pointwise"), "copy", 0).unwrap();
    let grid = Grid {
        blocks: [1, 1, 1],
        threads: 256,
        shared: 0,
    };
    let arguments = Copy {
        from: from.0,
        to: to.0,
        numbers: 1,
    };
    let write = |at, number: f32| {
        // SAFETY: room for a number; waited for.
        unsafe { device.copy_in(stream, at, (&raw const number).cast(), 4) }.unwrap();
        device.wait_for_stream(stream).unwrap();
    };
    let read = || {
        let mut number = 0.0f32;
        // SAFETY: as above.
        unsafe { device.copy_out(stream, (&raw mut number).cast(), to, 4) }.unwrap();
        device.wait_for_stream(stream).unwrap();
        number
    };
    write(from, 1.0);
    write(to, 0.5);
    device.begin_capture(stream).unwrap();
    // SAFETY: both places have a number, and stay.
    unsafe { device.launch(stream, copy, grid, &arguments) }.unwrap();
    let graph = device.end_capture(stream).unwrap();
    assert_eq!(read(), 0.5, "what is recorded is not done");
    for number in [1.0, 2.0, 3.0] {
        write(from, number);
        // SAFETY: as above.
        unsafe { device.launch_graph(stream, graph) }.unwrap();
        assert_eq!(read(), number);
    }
    // SAFETY: nothing is queued any more.
    unsafe {
        device.destroy_graph(graph);
        device.destroy_stream(stream);
        device.free(from);
        device.free(to);
    }
}

/// Lets a kernel go wrong. A GPU that this happened to computes nothing more in this process, so this comes last.
pub(crate) fn a_kernel_that_went_wrong_is_told_by_all_that_follows(driver: &dyn Driver) {
    let device = driver.open(0).unwrap();
    let stream = device.create_stream().unwrap();
    let copy = device.function(file("pointwise"), "copy", 0).unwrap();
    let grid = Grid {
        blocks: [1, 1, 1],
        threads: 256,
        shared: 0,
    };
    let nowhere = Copy {
        from: 1 << 40,
        to: 1 << 41,
        numbers: 1,
    };
    // SAFETY: nothing is there, which is what is tried; a GPU's own memory is protected.
    unsafe { device.launch(stream, copy, grid, &nowhere) }.unwrap();
    let first = device.wait_for_stream(stream).unwrap_err();
    assert!(first.is_of_process(), "another process may use the GPU");
    let first = first.to_string();
    let wanted = ["computing on GPU 0", "CUDA_ERROR_ILLEGAL_ADDRESS", "Xid"];
    assert!(wanted.iter().all(|word| first.contains(word)), "{first}");
    let later = [
        device.wait_for_stream(stream).unwrap_err(),
        device.create_event().unwrap_err(),
        device.allocate(4, "a number").unwrap_err(),
    ];
    for error in later {
        let words = error.to_string();
        assert!(words.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{words}");
    }
}
