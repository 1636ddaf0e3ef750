// The rows of a lane.
#pragma once
#include "lockstep.cuh"

// Rows that follow each other.
struct Rows {
    u64 first;
    u32 count;
};

// Those of the lane that the third direction of the grid says, where a row of the batch is `each` rows here. Without lanes
// it is the first of the batch's `rows` on.
DEVICE Rows rows_of_lane(const u32 *lane_rows, u32 rows, u32 each) {
    if (!lane_rows) return {0, rows * each};
    const u32 first = lane_rows[blockIdx.z];
    return {(u64)first * each, (lane_rows[blockIdx.z + 1] - first) * each};
}

// Which columns of a matrix a thread has, W of them, and which rows of it: from the first on, `step` apart. Neighbours in
// a block have neighbouring columns, and then rows below. `network/walk.rs` says how many blocks there are.
template <u32 W>
struct Walk {
    u32 column, row, step;
    bool is_inside;
    DEVICE Walk(u32 columns) {
        const u32 groups = columns / W, across = groups < blockDim.x ? groups : blockDim.x;
        const u32 down = blockDim.x / across, group = blockIdx.y * blockDim.x + threadIdx.x % across;
        column = group * W;
        row = blockIdx.x * down + threadIdx.x / across;
        step = gridDim.x * down;
        is_inside = threadIdx.x / across < down && group < groups;
    }
};
