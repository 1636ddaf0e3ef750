// Embeddings: the last inputs of a row are places in tables, and each becomes the row of its table that it points to.
#include "lanes.cuh"
#include "pointwise.cuh"

// A table: where its weights begin, in the state vector as in a gradient; its rows and their width; which input is the
// place in it, and where its row goes in the output.
struct Table {
    u64 weight;
    u32 rows, width, input, output;
    DEVICE Table(const u64 *tables, u32 number) {
        const u64 *t = tables + 5 * number;
        weight = t[0], rows = t[1], width = t[2], input = t[3], output = t[4];
    }
};

// Which row of a table a number points to: beyond all is the last, and what is no place is the first.
DEVICE u32 place_in(const Table &t, float x) {
    const u32 place = x >= 4294967296.0f ? ~0u : x > 0.0f ? (u32)x : 0;
    return place < t.rows ? place : t.rows - 1;
}

struct EmbeddingForward {
    float *x;
    float *values;
    float *y;
    u64 *tables;
    u32 count;
    // Numbers of a row of the input and of the output. The first of both are the same.
    u32 inputs;
    u32 outputs;
    Pointwise then;
};

// A block a row of the batch.
KERNEL(embedding_forward, 128, EmbeddingForward) {
    const u32 row = blockIdx.x, plain = a.inputs - a.count;
    const float *x = a.x + (u64)row * a.inputs;
    float *y = a.y + (u64)row * a.outputs;
    for (u32 i = threadIdx.x; i < plain; i += 128) y[i] = pointwise(a.then, x[i], row, i);
    for (u32 k = 0; k < a.count; k++) {
        const Table t(a.tables, k);
        const float *from = a.values + t.weight + (u64)place_in(t, x[t.input]) * t.width;
        for (u32 i = threadIdx.x; i < t.width; i += 128) {
            y[t.output + i] = pointwise(a.then, from[i], row, t.output + i);
        }
    }
}

struct EmbeddingInputGradient {
    float *dy;
    float *dx;
    float *x;
    u32 rows;
    u32 inputs;
    u32 outputs;
    // Inputs that are no places.
    u32 plain;
    Pointwise below;
};

KERNEL(embedding_input_gradient, 256, EmbeddingInputGradient) {
    const u64 numbers = (u64)a.rows * a.inputs;
    for (u64 i = thread_of_grid(); i < numbers; i += threads_of_grid()) {
        const u32 row = i / a.inputs, column = i % a.inputs;
        const float dx = column < a.plain ? a.dy[(u64)row * a.outputs + column] : 0.0f;
        a.dx[i] = pointwise_gradient(a.below, a.x[i], dx, row, column);
    }
}

struct EmbeddingClear {
    // The gradient of the first lane; those of the next begin `stride` numbers later.
    float *gradient;
    u64 stride;
    u64 *tables;
};

// The second direction of the grid is the tables, the third the lanes.
KERNEL(embedding_clear, 256, EmbeddingClear) {
    const Table t(a.tables, blockIdx.y);
    float *gradient = a.gradient + blockIdx.z * a.stride + t.weight;
    const u64 numbers = (u64)t.rows * t.width;
    for (u64 i = thread_of_grid(); i < numbers; i += threads_of_grid()) gradient[i] = 0.0f;
}

struct EmbeddingGradient {
    float *x;
    float *dy;
    float *gradient;
    u64 stride;
    u64 *tables;
    u32 *lane_rows;
    u32 inputs;
    u32 outputs;
};

// A block has a row of the lane, and adds up all that point to the same place if it is the first of them, in their order.
KERNEL(embedding_gradient, 128, EmbeddingGradient) {
    __shared__ u32 is_first;
    const Rows rows = rows_of_lane(a.lane_rows, 0, 1);
    const u32 own = blockIdx.x;
    if (own >= rows.count) return;
    const Table t(a.tables, blockIdx.y);
    const float *x = a.x + rows.first * a.inputs + t.input, *dy = a.dy + rows.first * a.outputs + t.output;
    const u32 place = place_in(t, x[(u64)own * a.inputs]);
    if (threadIdx.x == 0) is_first = 1;
    __syncthreads();
    for (u32 row = threadIdx.x; row < own; row += 128) {
        if (place_in(t, x[(u64)row * a.inputs]) == place) is_first = 0;
    }
    __syncthreads();
    if (!is_first) return;
    float *gradient = a.gradient + blockIdx.z * a.stride + t.weight + (u64)place * t.width;
    for (u32 i = threadIdx.x; i < t.width; i += 128) {
        float sum = 0.0f;
#pragma unroll 8
        for (u32 row = own; row < rows.count; row++) {
            if (place_in(t, x[(u64)row * a.inputs]) == place) sum += dy[(u64)row * a.outputs + i];
        }
        gradient[i] = sum;
    }
}
