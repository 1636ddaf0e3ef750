// Rows that are matrices, transposed: images of channels become channels of images, or the other way round.
#include "pointwise.cuh"

struct Transpose {
    float *from;
    float *to;
    // Of what comes in: numbers of a line, and lines.
    u32 width;
    u32 height;
    u32 rows;
    // On the way there `then` is done to what goes out; on the way back, `below` was done to what goes out, which is x.
    Pointwise then;
    Pointwise below;
    float *x;
};

// A block turns tiles of 32 x 32 numbers; the third direction of the grid is rows of the batch.
KERNEL(transpose, 256, Transpose) {
    __shared__ float tile[32][33];
    const u32 across = threadIdx.x % 32, down = threadIdx.x / 32;
    const u32 left = blockIdx.x * 32, top = blockIdx.y * 32;
    for (u32 row = blockIdx.z; row < a.rows; row += gridDim.z) {
        const u64 first = (u64)row * a.width * a.height;
        __syncthreads();
        for (u32 i = down; i < 32; i += 8) {
            const u32 line = top + i, column = left + across;
            if (line < a.height && column < a.width) tile[i][across] = a.from[first + (u64)line * a.width + column];
        }
        __syncthreads();
        for (u32 i = down; i < 32; i += 8) {
            const u32 line = left + i, column = top + across;
            if (line >= a.width || column >= a.height) continue;
            const u32 at = line * a.height + column;
            float y = pointwise(a.then, tile[across][i], row, at);
            if (a.below.count > 0) y = pointwise_gradient(a.below, a.x[first + at], y, row, at);
            a.to[first + at] = y;
        }
    }
}
