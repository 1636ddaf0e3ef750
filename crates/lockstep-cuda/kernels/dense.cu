// Dense layers: y = x W + b, and the way back. The weights lie in panels of 32 columns, each row by row.
#include "pointwise.cuh"
#include "product.cuh"

// Where the weight of an input and an output lies.
DEVICE u64 weight_place(u32 inputs, u32 outputs, u32 input, u32 output) {
    u32 first = output / PANEL * PANEL;
    u32 width = outputs - first < PANEL ? outputs - first : PANEL;
    return (u64)first * inputs + (u64)input * width + (output - first);
}

struct DenseForward {
    float *x;
    float *weight;
    float *bias;
    float *y;
    u32 rows;
    u32 inputs;
    u32 outputs;
    Pointwise then;
};

template <class T>
DEVICE void forward(const DenseForward &a) {
    product<T, DEPTH_FIRST, EDGE_FIRST>(
        a.rows, a.outputs, a.inputs,
        [&](u32 row, u32 input) { return a.x[(u64)row * a.inputs + input]; },
        [&](u32 output, u32 input) { return a.weight[weight_place(a.inputs, a.outputs, input, output)]; },
        [&](u32, u32 output) { return a.bias[output]; },
        [&](u32 row, u32 output, float sum) {
            a.y[(u64)row * a.outputs + output] = pointwise(a.then, sum, row, output);
        });
}

KERNEL(dense_forward_small, SmallTile::THREADS, DenseForward) { forward<SmallTile>(a); }
KERNEL(dense_forward_large, LargeTile::THREADS, DenseForward) { forward<LargeTile>(a); }

// The gradient by the input: a chain over the outputs. `below` is what was done to the input where it lies, x.
struct DenseInputGradient {
    float *dy;
    float *weight;
    float *x;
    float *dx;
    u32 rows;
    u32 inputs;
    u32 outputs;
    Pointwise below;
};

template <class T>
DEVICE void input_gradient(const DenseInputGradient &a) {
    product<T, DEPTH_FIRST, DEPTH_FIRST>(
        a.rows, a.inputs, a.outputs,
        [&](u32 row, u32 output) { return a.dy[(u64)row * a.outputs + output]; },
        [&](u32 input, u32 output) { return a.weight[weight_place(a.inputs, a.outputs, input, output)]; },
        [&](u32, u32) { return 0.0f; },
        [&](u32 row, u32 input, float sum) {
            u64 at = (u64)row * a.inputs + input;
            a.dx[at] = a.below.count == 0 ? sum : pointwise_gradient(a.below, a.x[at], sum, row, input);
        });
}

KERNEL(dense_input_gradient_small, SmallTile::THREADS, DenseInputGradient) { input_gradient<SmallTile>(a); }
KERNEL(dense_input_gradient_large, LargeTile::THREADS, DenseInputGradient) { input_gradient<LargeTile>(a); }

// The gradients of weights and bias, for each lane a vector of its own: chains over the lane's rows. The third direction
// of the grid is the lanes.
struct DenseWeightGradient {
    float *x;
    float *dy;
    // Of the first lane; those of the next begin `stride` numbers later.
    float *d_weight;
    float *d_bias;
    u64 stride;
    // The first row of every lane, and where the last lane ends.
    u32 *lane_rows;
    u32 inputs;
    u32 outputs;
};

template <class T>
DEVICE void weight_gradient(const DenseWeightGradient &a) {
    const u64 lane = (u64)blockIdx.z * a.stride;
    const u32 first = a.lane_rows[blockIdx.z], rows = a.lane_rows[blockIdx.z + 1] - first;
    const float *x = a.x + (u64)first * a.inputs, *dy = a.dy + (u64)first * a.outputs;
    float *d_weight = a.d_weight + lane, *d_bias = a.d_bias + lane;
    product<T, EDGE_FIRST, EDGE_FIRST>(
        a.inputs, a.outputs, rows,
        [&](u32 input, u32 row) { return x[(u64)row * a.inputs + input]; },
        [&](u32 output, u32 row) { return dy[(u64)row * a.outputs + output]; },
        [&](u32, u32) { return 0.0f; },
        [&](u32 input, u32 output, float sum) {
            d_weight[weight_place(a.inputs, a.outputs, input, output)] = sum;
        });
    // The blocks of the first inputs add up the bias of their columns.
    const u32 output = blockIdx.x * T::WIDTH + threadIdx.x;
    if (blockIdx.y == 0 && threadIdx.x < T::WIDTH && output < a.outputs) {
        float sum = 0.0f;
        for (u32 row = 0; row < rows; row++) sum += dy[(u64)row * a.outputs + output];
        d_bias[output] = sum;
    }
}

KERNEL(dense_weight_gradient_small, SmallTile::THREADS, DenseWeightGradient) { weight_gradient<SmallTile>(a); }
KERNEL(dense_weight_gradient_large, LargeTile::THREADS, DenseWeightGradient) { weight_gradient<LargeTile>(a); }
