// What all kernels stand on. Compiled with --fmad=false: what is not written as fmaf is not contracted.
//
// The same files are compiled by NVRTC for GPUs and by a C++ compiler for tests, where emulator.h stands in for what only
// a GPU has. So everything that is PTX, and every name that only CUDA knows, is here and behind a function.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef EMULATED
#include "emulator.h"
#else
// A kernel `name`, whose blocks have `threads` threads, and whose arguments are `a`.
#define KERNEL(name, threads, Arguments) \
    extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Arguments a)
#endif

#define DEVICE __device__ __forceinline__
// A function that is long and called from many places: a copy at each of them would take the driver long to compile. It is
// given values: of what it is given a pointer to, the compiler no longer knows where it lies.
#define DEVICE_CALLED static __device__ __noinline__

// The place of this thread among all of its grid, and how many there are: for loops over many numbers.
DEVICE u64 thread_of_grid() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE u64 threads_of_grid() { return (u64)gridDim.x * blockDim.x; }

// The columns of a panel of a dense layer's weights.
constexpr u32 PANEL = 32;

// How far training is. The last kernel of a step counts on.
struct Progress {
    // Steps since the beginning of the run.
    u64 step;
    // Steps since the beginning of the epoch.
    u64 in_epoch;
};

// The numbers below are the same to the bit as those of lockstep-base's `math` and `random`.

// e to the power x.
DEVICE double own_exp(double x) {
    double within = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    double n = round(within / 0.693147180559945309417232121458);
    double r = (within - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    double sum = 1.0;
#pragma unroll
    for (int divisor = 13; divisor >= 1; divisor--) sum = 1.0 + r / (double)divisor * sum;
    u64 exponent = (u64)__double_as_longlong(n + (6755399441055744.0 + 1023.0)) << 52;
    double found = __longlong_as_double((long long)exponent) * sum;
    if (x > 709.0) found = __longlong_as_double(0x7ff0000000000000ll);
    return x < -708.0 ? 0.0 : found;
}

// The natural logarithm of a positive, finite, normal x; a NaN stays.
DEVICE double own_ln(double x) {
    if (x != x) return x;
    u64 bits = (u64)__double_as_longlong(x);
    long long exponent = (long long)(bits >> 52) - 1023;
    double mantissa = __longlong_as_double((long long)((bits & ((1ull << 52) - 1)) | (1023ull << 52)));
    if (mantissa > 1.41421356237309504880168872420969808) {
        mantissa *= 0.5;
        exponent += 1;
    }
    double s = (mantissa - 1.0) / (mantissa + 1.0), square = s * s, sum = 0.0;
#pragma unroll
    for (int i = 9; i >= 0; i--) sum = sum * square + 1.0 / (double)(2 * i + 1);
    return (double)exponent * 0.693147180559945309417232121458 + 2.0 * s * sum;
}

// One word of a block of Philox 4x32-10.
DEVICE_CALLED u32 philox(u64 key, u32 c0, u32 c1, u32 c2, u32 c3, u32 word) {
    u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)c0 * 0xD2511F53u, p1 = (u64)c2 * 0xCD9E8D57u;
        c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
        c1 = (u32)p1;
        c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c3 = (u32)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;
}
