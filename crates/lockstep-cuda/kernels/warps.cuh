// Sums and choices that the threads of a warp make together.
#pragma once
#include "lockstep.cuh"

// Which of its warp's threads this one is.
DEVICE u32 thread_of_warp() { return threadIdx.x % WARP; }

// The sum of `term(i)` for i below `count`, one chain: the threads have 32 terms at a time, and each adds up all of them in
// their order. A warp's threads come here together.
template <class Term>
DEVICE double chain_of_warp(u32 count, Term term) {
    const u32 own = thread_of_warp();
    double sum = 0.0, next = own < count ? term(own) : 0.0;
    for (u32 from = 0; from < count; from += WARP) {
        const u32 width = count - from < WARP ? count - from : WARP, ahead = from + WARP + own;
        const double now = next;
        next = ahead < count ? term(ahead) : 0.0;
        for (u32 j = 0; j < width; j++) sum += __shfl_sync(ALL, now, j);
    }
    return sum;
}
