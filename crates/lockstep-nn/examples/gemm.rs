//! Times the matrix products of a dense layer: `cargo run --release -p lockstep-nn --example gemm`.

use lockstep_nn::gemm::{Accumulate, Left, gemm};
use std::time::Instant;

fn time(name: &str, (m, n, k): (usize, usize, usize), transposed: bool) {
    let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32).collect();
    let b: Vec<f32> = (0..n * k).map(|i| (i % 5) as f32).collect();
    let mut c = vec![0f32; m * n];
    let left = if transposed {
        Left::transposed(&a, m)
    } else {
        Left::rows(&a, k)
    };
    let best = (0..300)
        .map(|_| {
            let start = Instant::now();
            gemm((m, n, k), left, &b, n, &mut c, n, Accumulate::Replace);
            start.elapsed().as_secs_f64()
        })
        .fold(f64::MAX, f64::min);
    let gigaflops = 2.0 * (m * n * k) as f64 / best / 1e9;
    println!(
        "{name:24} {m:4} x {n:4} x {k:4}  {:8.1} us  {gigaflops:6.1} GFLOP/s",
        best * 1e6
    );
}

fn main() {
    for rows in [16, 32, 128] {
        time("forward", (rows, 512, 784), false);
        time("input gradient", (512, rows, 512), false);
        time("weight gradient", (32, 512, rows), true);
    }
    time("square", (512, 512, 512), false);
}
