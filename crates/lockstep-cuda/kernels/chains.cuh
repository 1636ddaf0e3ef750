// Long sums in double precision, each of them one chain.
//
// An addition waits for the one before it, and for nothing else: the block's threads bring what comes next while the first
// few of them go on with the chains.
#pragma once
#include "lockstep.cuh"

// COUNT chains beside each other, of `part(i, chain)` for i below `length`, by a block of THREADS threads. Each of the first
// COUNT threads gets the sum of a chain; all threads come here.
template <u32 THREADS, u32 COUNT, class Part>
DEVICE double chains(u32 length, Part part) {
    constexpr u32 DOWN = THREADS / COUNT, EACH = 8, BROUGHT = DOWN * EACH, AHEAD = 8;
    static_assert(BROUGHT % (2 * AHEAD) == 0, "what is brought is added in whole pieces");
    __shared__ double brought[BROUGHT][COUNT];
    const u32 chain = threadIdx.x % COUNT, down = threadIdx.x / COUNT;
    double next[EACH], sum = 0.0;
    auto bring = [&](u32 from) {
#pragma unroll
        for (u32 k = 0; k < EACH; k++) {
            const u32 i = from + down + k * DOWN;
            next[k] = i < length ? part(i, chain) : 0.0;
        }
    };
    bring(0);
    for (u32 from = 0; from < length; from += BROUGHT) {
        __syncthreads();
#pragma unroll
        for (u32 k = 0; k < EACH; k++) brought[down + k * DOWN][chain] = next[k];
        __syncthreads();
        bring(from + BROUGHT);
        if (threadIdx.x >= COUNT) continue;
        if (length - from < BROUGHT) {
#pragma unroll 4
            for (u32 i = 0; i < length - from; i++) sum += brought[i][chain];
            continue;
        }
        double now[AHEAD], then[AHEAD];
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++) now[k] = brought[k][chain];
#pragma unroll 1
        for (u32 i = 0; i < BROUGHT; i += 2 * AHEAD) {
#pragma unroll
            for (u32 k = 0; k < AHEAD; k++) then[k] = brought[i + AHEAD + k][chain];
#pragma unroll
            for (u32 k = 0; k < AHEAD; k++) sum += now[k];
            const u32 more = i + 2 * AHEAD < BROUGHT ? i + 2 * AHEAD : 0;
#pragma unroll
            for (u32 k = 0; k < AHEAD; k++) now[k] = brought[more + k][chain];
#pragma unroll
            for (u32 k = 0; k < AHEAD; k++) sum += then[k];
        }
    }
    return sum;
}
