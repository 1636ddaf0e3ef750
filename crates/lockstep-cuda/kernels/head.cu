// The last dense layer of a classifier with few classes, its loss, and the gradients by its scores and by its input: all
// of it needs only a few rows at a time.
#include "pointwise.cuh"
#include "softmax.cuh"
#include "targets.cuh"

struct Head {
    float *x;
    float *weight;
    float *bias;
    // The gradients by the scores and by x. `below` is what was done to x where it lies.
    float *dy;
    float *dx;
    TargetRows targets;
    // What every row comes to: its loss, and 1 if its largest score is at its class.
    double *losses;
    u32 *correct;
    u32 rows;
    u32 inputs;
    // At most 32.
    u32 outputs;
    // Rows of a block, at most 4.
    u32 rows_of_block;
    // Whether rows of x begin at multiples of 16 bytes.
    u32 wide_x;
    // What the gradient is multiplied by: the inverse of the rows of the whole batch.
    double scale;
    Pointwise below;
};

constexpr u32 HEAD_THREADS = 128, HEAD_ROWS = HEAD_THREADS / WARP;

// The score of a row for one output, whose weights are `pitch` apart. What is multiplied next is read meanwhile.
DEVICE float score(const Head &a, const float *x, const float *weight, u32 pitch, float bias) {
    constexpr u32 AHEAD = 16;
    const u32 whole = a.inputs % 4 == 0 ? a.inputs / AHEAD * AHEAD : 0;
    float now[AHEAD], weights[AHEAD], sum = bias;
    auto read = [&](u32 k) {
#pragma unroll
        for (u32 i = 0; i < AHEAD; i += 4) {
            const float4 four = read_four(x + k + i);
            now[i] = four.x, now[i + 1] = four.y, now[i + 2] = four.z, now[i + 3] = four.w;
        }
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) weights[i] = weight[(k + i) * pitch];
    };
    if (whole > 0) read(0);
#pragma unroll 1
    for (u32 k = 0; k < whole; k += AHEAD) {
        float x_now[AHEAD], w_now[AHEAD];
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) x_now[i] = now[i], w_now[i] = weights[i];
        if (k + AHEAD < whole) read(k + AHEAD);
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) sum = fmaf(x_now[i], w_now[i], sum);
    }
#pragma unroll 1
    for (u32 k = whole; k < a.inputs; k++) sum = fmaf(x[k], weight[k * pitch], sum);
    return sum;
}

KERNEL_AHEAD(head, HEAD_THREADS, 2, Head) {
    SHARED_ROOM(room);
    __shared__ float gradients[HEAD_ROWS][WARP];
    const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const u32 first = blockIdx.x * a.rows_of_block, rows = min(a.rows - first, a.rows_of_block);
    // Lines of the weights are an odd number apart, so that threads beside each other read other banks.
    const u32 pitch = a.outputs | 1, line = (a.inputs + 3) / 4 * 4;
    float *x = room, *weight = room + a.rows_of_block * line;
    let_next_begin();
    const u32 down = HEAD_THREADS / a.outputs, across = HEAD_THREADS % a.outputs;
    u32 k = threadIdx.x / a.outputs, j = threadIdx.x % a.outputs;
    for (u32 i = threadIdx.x; i < a.inputs * a.outputs; i += HEAD_THREADS) {
        copy4(weight + k * pitch + j, a.weight + i, true);
        k += down, j += across;
        if (j >= a.outputs) k++, j -= a.outputs;
    }
    // An output that there is not has the weights of the last one.
    const u32 output = min(lane, a.outputs - 1);
    const float bias = a.bias[output];
    wait_for_previous();
    if (a.wide_x) {
        for (u32 i = threadIdx.x * 4; i < rows * a.inputs; i += HEAD_THREADS * 4) copy16(x + i, a.x + (u64)first * a.inputs + i, true);
    } else {
        for (u32 i = threadIdx.x; i < rows * a.inputs; i += HEAD_THREADS) {
            copy4(x + i / a.inputs * line + i % a.inputs, a.x + (u64)first * a.inputs + i, true);
        }
    }
    end_copies();
    const u32 row = first + warp;
    const u32 label = warp < rows ? a.targets.classes[target_place(a.targets, row)] : 0;
    wait_for_copies<0>();
    __syncthreads();
    Softmax softmax;
    float own = 0.0f;
    if (warp < rows) {
        own = score(a, x + warp * line, weight + output, pitch, bias);
        softmax = softmax_of(own, a.outputs, lane);
        if (lane < a.outputs) {
            const double probability = softmax.part / softmax.sum;
            const float gradient = (float)((probability - (lane == label ? 1.0 : 0.0)) * a.scale);
            gradients[warp][lane] = gradient;
            a.dy[(u64)row * a.outputs + lane] = gradient;
        }
    }
    __syncthreads();
    for (u32 r = 0; r < rows; r++) {
        for (u32 k = threadIdx.x; k < a.inputs; k += HEAD_THREADS) {
            float sum = 0.0f;
#pragma unroll 5
            for (u32 j = 0; j < a.outputs; j++) sum = fmaf(gradients[r][j], weight[k * pitch + j], sum);
            const u64 at = (u64)(first + r) * a.inputs + k;
            a.dx[at] = a.below.count == 0 ? sum : pointwise_gradient(a.below, x[r * line + k], sum, first + r, k);
        }
    }
    if (warp < rows) {
        const float of_label = __shfl_sync(ALL, own, label);
        if (lane == 0) {
            a.losses[row] = own_ln(softmax.sum) - ((double)of_label - softmax.largest);
            a.correct[row] = softmax.best == label ? 1 : 0;
        }
    }
}
