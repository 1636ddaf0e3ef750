// The norm of the whole gradient, and what the gradient is multiplied by so that it is not longer than it may be.
//
// Numbers are squared and added up block by block, the blocks of a chunk in their order, and then the chunks.
#include "chains.cuh"
#include "lane_sums.cuh"
#include "lanes.cuh"

constexpr u32 CHAINS = 8;

struct ClipSquares {
    LaneSums lanes;
    // Where every block begins in the state vector, and its numbers.
    u64 *blocks;
    u64 count;
    // What each block comes to.
    double *squares;
};

// 8 threads a block of numbers: a chain each, and the chains in their order. The lanes' sums are formed on the way.
KERNEL(clip_squares, 256, ClipSquares) {
    const u64 block = thread_of_grid() / CHAINS;
    const u32 own = threadIdx.x % CHAINS;
    const bool is_inside = block < a.count;
    const u64 first = is_inside ? a.blocks[2 * block] : 0;
    const u32 length = is_inside ? a.blocks[2 * block + 1] : 0;
    double chain = 0.0;
    auto add = [&](float x) { chain += (double)x * (double)x; };
    if (a.lanes.count == 0) {
        const float *sums = a.lanes.gradients + a.lanes.result * a.lanes.stride + first;
#pragma unroll 16
        for (u32 i = own; i < length; i += CHAINS) add(sums[i]);
    } else {
        for (u32 i = own; i < length; i += CHAINS) add(sum_lanes(a.lanes, first + i));
    }
    double sum = 0.0;
    const u32 before = threadIdx.x % WARP / CHAINS * CHAINS;
#pragma unroll
    for (u32 k = 0; k < CHAINS; k++) sum += __shfl_sync(ALL, chain, before + k);
    if (is_inside && own == 0) a.squares[block] = sum;
}

// What came out.
struct Clipped {
    double norm;
    // What the gradient is multiplied by.
    float scale;
    u32 unused;
};

struct ClipNorm {
    double *squares;
    // The first block of every chunk, and how many it has.
    u64 *chunks;
    u64 count;
    // What each chunk comes to.
    double *sums;
    Clipped *result;
    // The longest that the gradient may be.
    double longest;
};

// One block.
KERNEL(clip_norm, 256, ClipNorm) {
    for (u64 chunk = threadIdx.x; chunk < a.count; chunk += 256) {
        const double *squares = a.squares + a.chunks[2 * chunk];
        const u64 blocks = a.chunks[2 * chunk + 1];
        double sum = 0.0;
#pragma unroll 8
        for (u64 i = 0; i < blocks; i++) sum += squares[i];
        a.sums[chunk] = sum;
    }
    __syncthreads();
    const double sum = chains<256, 1>(a.count, [&](u32 i, u32) { return a.sums[i]; });
    if (threadIdx.x != 0) return;
    const double norm = sqrt(sum);
    *a.result = {norm, norm > a.longest ? (float)(a.longest / norm) : 1.0f, 0};
}
