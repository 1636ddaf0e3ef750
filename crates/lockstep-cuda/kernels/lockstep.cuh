// What all kernels stand on. Compiled with --fmad=false: what is not written as fmaf is not contracted.
//
// The same files are compiled by NVRTC for GPUs and by a C++ compiler for tests, where emulator.h stands in for what only
// a GPU has. So everything that is PTX, and every name that only CUDA knows, is here and behind a function.
#pragma once

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef EMULATED
#include "emulator.h"
#else
// A kernel `name`, whose blocks have `threads` threads, and whose arguments are `a`.
#define KERNEL(name, threads, Arguments) KERNEL_THAT_WAITS(name, (threads), Arguments)
// The same for a kernel that takes no more registers than so many blocks on one multiprocessor have.
#define KERNEL_BESIDE(name, threads, blocks, Arguments) KERNEL_THAT_WAITS(name, (threads, blocks), Arguments)
#define KERNEL_THAT_WAITS(name, bounds, Arguments)                                              \
    static __device__ __forceinline__ void name##_thread(const Arguments &a);                   \
    extern "C" __global__ void __launch_bounds__ bounds name(const __grid_constant__ Arguments a) { \
        let_next_begin();                                                                       \
        wait_for_previous();                                                                    \
        name##_thread(a);                                                                       \
    }                                                                                           \
    static __device__ __forceinline__ void name##_thread(const Arguments &a)
// The same for a kernel that calls `wait_for_previous` itself, and before that touches only what no kernel of the same step
// writes: parameters and what belongs to them, but for those that come after their update.
#define KERNEL_AHEAD(name, threads, blocks, Arguments) \
    extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Arguments a)
// Memory that the threads of a block share, of as many bytes as the launch says.
#define SHARED_ROOM(name) extern __shared__ __align__(16) float name[]
// The same for matrices that a matrix unit reads by itself.
#define SHARED_MATRICES(name) extern __shared__ __align__(1024) float name[]
#endif

#define DEVICE __device__ __forceinline__
// A function that is long and called from many places: a copy at each of them would take the driver long to compile. It is
// given values: of what it is given a pointer to, the compiler no longer knows where it lies.
#define DEVICE_CALLED static __device__ __noinline__

// On GPUs that can (Hopper and later), a kernel of a step begins before the one before it has ended, so that its launch costs
// less time. The driver is then given PTX in which these two lines have become instructions (`driver/cuda/ahead.rs`).
DEVICE void let_next_begin() {
#ifndef EMULATED
    asm volatile("// lockstep: let the next kernel begin" ::: "memory");
#endif
}

DEVICE void wait_for_previous() {
#ifndef EMULATED
    asm volatile("// lockstep: wait for the previous kernel" ::: "memory");
#endif
}

// The place of this thread among all of its grid, and how many there are: for loops over many numbers.
DEVICE u64 thread_of_grid() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
DEVICE u64 threads_of_grid() { return (u64)gridDim.x * blockDim.x; }

// Copies to shared memory that go on while the thread does something else. What is not inside is 0. `end_copies` ends a
// group of them, and `wait_for_copies` waits until all groups but the last few are there; other threads of the block know
// of it after the next __syncthreads().
DEVICE void copy4(float *shared, const float *from, bool is_inside) {
#ifdef EMULATED
    *shared = is_inside ? *from : 0.0f;
#else
    const u32 to = (u32)__cvta_generic_to_shared(shared), bytes = is_inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#endif
}

// The same for 4 numbers, at places that are multiples of 16 bytes.
DEVICE void copy16(float *shared, const float *from, bool is_inside) {
#ifdef EMULATED
    *(float4 *)shared = is_inside ? *(const float4 *)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#else
    const u32 to = (u32)__cvta_generic_to_shared(shared), bytes = is_inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#endif
}

// The same of what is soon copied again by the same multiprocessor, which keeps it.
DEVICE void copy16_again(float *shared, const float *from, bool is_inside) {
#ifdef EMULATED
    copy16(shared, from, is_inside);
#else
    const u32 to = (u32)__cvta_generic_to_shared(shared), bytes = is_inside ? 16 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#endif
}

DEVICE void end_copies() {
#ifndef EMULATED
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <u32 LEFT>
DEVICE void wait_for_copies() {
#ifndef EMULATED
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// Reads 4 or 2 numbers of shared memory at once, at a place that is a multiple of as many bytes. The compiler joins single
// reads too, but in ways that differ from run to run, and then the PTX could not be compared.
DEVICE float4 read_four(const float *shared) {
#ifdef EMULATED
    return *(const float4 *)shared;
#else
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"((u32)__cvta_generic_to_shared(shared))
                 : "memory");
    return x;
#endif
}

DEVICE float2 read_two(const float *shared) {
#ifdef EMULATED
    return *(const float2 *)shared;
#else
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(x.x), "=f"(x.y)
                 : "r"((u32)__cvta_generic_to_shared(shared))
                 : "memory");
    return x;
#endif
}

// A number that others are divided by: by a multiplication and a shift, since a GPU has no instruction that divides. What
// is divided is below 2^31.
struct Divisor {
    u32 by;
    u32 multiplier;
    u32 shift;
};

DEVICE u32 operator/(u32 x, const Divisor &d) { return (__umulhi(x, d.multiplier) + x) >> d.shift; }
DEVICE u32 operator%(u32 x, const Divisor &d) { return x - x / d * d.by; }

constexpr u32 WARP = 32, ALL = 0xffffffffu;

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

// r / b for a small whole b, with the bits of the division: an estimate, and what it leaves over divided in the same way.
// Numbers so small that this would be wrong make no difference where they are added to 1.
DEVICE double quotient(double r, double b) {
    const double reciprocal = 1.0 / b, estimate = r * reciprocal;
    return fma(fma(-estimate, b, r), reciprocal, estimate);
}

// e to the power x.
DEVICE_CALLED double own_exp(double x) {
    double within = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    double n = round(within / 0.693147180559945309417232121458);
    double r = (within - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    double sum = 1.0;
#pragma unroll
    for (int divisor = 13; divisor >= 1; divisor--) sum = 1.0 + quotient(r, (double)divisor) * sum;
    u64 exponent = (u64)__double_as_longlong(n + (6755399441055744.0 + 1023.0)) << 52;
    double found = __longlong_as_double((long long)exponent) * sum;
    if (x > 709.0) found = __longlong_as_double(0x7ff0000000000000ll);
    return x < -708.0 ? 0.0 : found;
}

// The natural logarithm of a positive, finite, normal x; a NaN stays.
DEVICE_CALLED double own_ln(double x) {
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

// A block of Philox 4x32-10.
struct __align__(16) PhiloxBlock {
    u32 words[4];
};

DEVICE_CALLED PhiloxBlock philox_block(u64 key, u32 c0, u32 c1, u32 c2, u32 c3) {
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
    return {{c0, c1, c2, c3}};
}

// One word of it.
DEVICE u32 philox(u64 key, u32 c0, u32 c1, u32 c2, u32 c3, u32 word) {
    const PhiloxBlock block = philox_block(key, c0, c1, c2, c3);
    return word == 0 ? block.words[0] : word == 1 ? block.words[1] : word == 2 ? block.words[2] : block.words[3];
}
