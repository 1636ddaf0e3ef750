use lockstep_cuda::driver::{Driver, Grid, cuda::CudaDriver};
use lockstep_cuda::{Arguments, FILES};
use std::time::Instant;
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Copy { from: u64, to: u64, numbers: u64 }
unsafe impl Arguments for Copy { fn declaration(&self) -> String { String::new() } }
fn main() {
    let device = CudaDriver::find().unwrap().open(0).unwrap();
    let stream = device.create_stream().unwrap();
    let file = FILES.iter().find(|f| f.name == "pointwise").unwrap();
    let copy = device.function(file, "copy", 0).unwrap();
    let at = device.allocate(64 << 20, "x").unwrap();
    for (blocks, numbers) in [(1u32, 1u64), (128, 1), (128, 128 * 256), (1024, 1 << 20)] {
        for per in [1, 5, 50] {
            let a = Copy { from: at.0, to: at.0 + (32 << 20), numbers };
            device.begin_capture(stream).unwrap();
            for _ in 0..per { unsafe { device.launch(stream, copy, Grid { blocks: [blocks, 1, 1], threads: 256, shared: 0 }, &a).unwrap() } }
            let g = device.end_capture(stream).unwrap();
            let run = |n| { for _ in 0..n { unsafe { device.launch_graph(stream, g).unwrap() } } device.wait_for_stream(stream).unwrap(); };
            run(20);
            let n = 4000 / per;
            let t = Instant::now(); run(n);
            let us = t.elapsed().as_secs_f64() * 1e6 / f64::from(n);
            println!("copy {numbers} in {blocks} blocks, {per} a graph: {us:.2} us a graph, {:.2} us each", us / f64::from(per));
        }
    }
}
