// Dense layers: y = x W + b, and the gradient by x. The weights lie in panels of 32 columns, each row by row.
#include "pointwise.cuh"
#include "product.cuh"
#include "step.cuh"

// Kernels in `_any` are for layers of any size. The others are for those whose inputs and outputs are multiples of 4, and
// whose weights begin at such a place: then 4 numbers are brought at a time.
//
// For few rows, so that there are enough blocks; and for more and more, where each number that is brought is used often. Reading
// shared memory is what takes time, so a thread has as many numbers as there are blocks for.
typedef Tile<4, 16, 2, 1, 128, 3> SmallTile;
typedef Tile<8, 8, 2, 4, 64, 3> MediumTile;
typedef Tile<8, 8, 4, 4, 32, 4> LargeTile;
typedef Tile<8, 8, 8, 4, 32, 3> LargestTile;

struct DenseForward {
    float *x;
    float *weight;
    float *bias;
    float *y;
    u32 rows;
    u32 inputs;
    u32 outputs;
    // If this is the first kernel of a step on samples of a data set: then x has a row for each sample.
    u32 is_first;
    BeginStep begin;
    Pointwise then;
};

// Sets the bits of what is left of a thread's numbers by what `left(i)` says of row i.
template <class T, class Left>
DEVICE u32 all_rows(Left left) {
    u32 bits = 0;
#pragma unroll
    for (u32 i = 0; i < T::ROWS; i++) bits |= (left(i) & ((1u << T::COLUMNS) - 1)) << (i * T::COLUMNS);
    return bits;
}

template <class T, bool WIDE>
DEVICE void forward(const DenseForward &a) {
    typedef Lines<T, T::HEIGHT> Left;
    typedef Sheets<T, T::WIDTH> Right;
    __shared__ __align__(16) float room[T::STAGES][Left::ROOM + Right::ROOM];
    const u32 top = blockIdx.y * T::HEIGHT, left = blockIdx.x * T::WIDTH;
    const u32 parts = (a.inputs + T::DEPTH - 1) / T::DEPTH;
    let_next_begin();

    // What this thread brings of the weights is always of the same columns of a panel.
    const u32 brought = left + Right::edge(), panel = brought / PANEL * PANEL;
    const u32 width = panel < a.outputs ? min(a.outputs - panel, PANEL) : 0;
    const float *weight = a.weight + (u64)panel * a.inputs + (brought - panel);
    auto bring_weights = [&](u32 part, u32 stage) {
#pragma unroll
        for (u32 i = 0; i < Right::EACH; i++) {
            const u32 d = part * T::DEPTH + Right::depth(i);
            const u32 count = d < a.inputs ? inside<WIDE>(brought, a.outputs) : 0;
            Right::template bring<WIDE>(room[stage] + Left::ROOM, i, weight + (u64)d * width, count);
        }
    };
    bring_ahead<T::STAGES>(parts, bring_weights);
    float sums[T::ROWS][T::COLUMNS];
    const u32 column = left + T::across() * T::COLUMNS;
#pragma unroll
    for (u32 j = 0; j < T::COLUMNS; j++) {
        const float bias = column + j < a.outputs ? a.bias[column + j] : 0.0f;
#pragma unroll
        for (u32 i = 0; i < T::ROWS; i++) sums[i][j] = bias;
    }

    wait_for_previous();
    const u32 *samples = a.is_first ? a.begin.next_samples : a.then.samples;
    const float *lines[Left::EACH];
    bool is_row[Left::EACH];
#pragma unroll
    for (u32 i = 0; i < Left::EACH; i++) {
        const u32 row = top + Left::edge(i);
        is_row[i] = row < a.rows;
        lines[i] = a.x + (u64)(!is_row[i] ? 0 : a.is_first ? samples[row] : row) * a.inputs;
    }
    auto bring_inputs = [&](u32 part, u32 stage) {
        const u32 d = part * T::DEPTH + Left::depth();
#pragma unroll
        for (u32 i = 0; i < Left::EACH; i++) {
            Left::template bring<WIDE>(room[stage], i, lines[i] + d, is_row[i] ? inside<WIDE>(d, a.inputs) : 0);
        }
    };
    bring_first<T::STAGES>(parts, bring_inputs);
    if (a.is_first && blockIdx.x == 0) {
        const u32 row = top + threadIdx.x;
        if (threadIdx.x < T::HEIGHT && row < a.rows) a.begin.samples[row] = samples[row];
        if (blockIdx.y == 0 && threadIdx.x == 0) note_rate(a.begin);
    }
    u32 kept = ALL;
    if (a.then.has_dropout) {
        const u64 step = a.then.progress->step;
        kept = all_rows<T>([&](u32 i) {
            const u32 row = top + T::down() + i * T::DOWN;
            if (row >= a.rows || column >= a.outputs) return 0u;
            return kept_neighbours<T::COLUMNS>(a.then, step, samples[row], column);
        });
    }
    go_through<T::STAGES>(
        parts,
        [&](u32 part, u32 stage) {
            bring_weights(part, stage);
            bring_inputs(part, stage);
        },
        [&](u32 part, u32 stage) {
            const float *x = room[stage], *w = x + Left::ROOM;
            auto add = [&](u32 d, const float (&from)[T::ROWS]) {
                float weights[T::COLUMNS];
                Right::read(w, T::across() * T::COLUMNS, d, weights);
#pragma unroll
                for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
                    for (u32 j = 0; j < T::COLUMNS; j++) sums[i][j] = fmaf(from[i], weights[j], sums[i][j]);
                }
            };
            auto add_four = [&](u32 d) {
                float4 from[T::ROWS];
#pragma unroll
                for (u32 i = 0; i < T::ROWS; i++) from[i] = Left::read(x, T::down() + i * T::DOWN, d);
                float one[4][T::ROWS];
#pragma unroll
                for (u32 i = 0; i < T::ROWS; i++) {
                    one[0][i] = from[i].x, one[1][i] = from[i].y, one[2][i] = from[i].z, one[3][i] = from[i].w;
                }
#pragma unroll
                for (u32 k = 0; k < 4; k++) add(d + k, one[k]);
            };
            const u32 depth = min(T::DEPTH, a.inputs - part * T::DEPTH);
            if (depth == T::DEPTH) {
                constexpr u32 UNROLLED = T::ROWS * T::COLUMNS <= 2 ? 8 : T::ROWS * T::COLUMNS <= 8 ? 4 : 2;
#pragma unroll UNROLLED
                for (u32 d = 0; d < T::DEPTH; d += 4) add_four(d);
            } else {
#pragma unroll 1
                for (u32 d = 0; d + 4 <= depth; d += 4) add_four(d);
#pragma unroll 1
                for (u32 d = depth / 4 * 4; d < depth; d++) {
                    float from[T::ROWS];
#pragma unroll
                    for (u32 i = 0; i < T::ROWS; i++) from[i] = x[(T::down() + i * T::DOWN) * Left::LINE + d];
                    add(d, from);
                }
            }
        });
    pointwise_all(a.then, sums, kept);
#pragma unroll
    for (u32 i = 0; i < T::ROWS; i++) {
        const u32 row = top + T::down() + i * T::DOWN;
        if (row < a.rows) write_neighbours(a.y + (u64)row * a.outputs, column, a.outputs, sums[i]);
    }
}

KERNEL_AHEAD(dense_forward_any, SmallTile::THREADS, 5, DenseForward) { forward<SmallTile, false>(a); }
KERNEL_AHEAD(dense_forward_small, SmallTile::THREADS, 5, DenseForward) { forward<SmallTile, true>(a); }
KERNEL_AHEAD(dense_forward_medium, MediumTile::THREADS, 1, DenseForward) { forward<MediumTile, true>(a); }
KERNEL_AHEAD(dense_forward_large, LargeTile::THREADS, 1, DenseForward) { forward<LargeTile, true>(a); }
KERNEL_AHEAD(dense_forward_largest, LargestTile::THREADS, 1, DenseForward) { forward<LargestTile, true>(a); }

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

template <class T, bool WIDE>
DEVICE void input_gradient(const DenseInputGradient &a) {
    typedef Lines<T, T::HEIGHT> Left;
    typedef Lines<T, T::WIDTH> Right;
    __shared__ __align__(16) float room[T::STAGES][Left::ROOM + Right::ROOM];
    const u32 top = blockIdx.y * T::HEIGHT, left = blockIdx.x * T::WIDTH;
    const u32 parts = (a.outputs + T::DEPTH - 1) / T::DEPTH;
    let_next_begin();

    auto bring_weights = [&](u32 part, u32 stage) {
        const u32 output = part * T::DEPTH + Right::depth(), panel = output / PANEL * PANEL;
        const u32 width = panel < a.outputs ? min(a.outputs - panel, PANEL) : 0;
        const float *weight = a.weight + (u64)panel * a.inputs + (output - panel);
#pragma unroll
        for (u32 i = 0; i < Right::EACH; i++) {
            const u32 input = left + Right::edge(i);
            const u32 count = input < a.inputs ? inside<WIDE>(output, a.outputs) : 0;
            Right::template bring<WIDE>(room[stage] + Left::ROOM, i, weight + (u64)input * width, count);
        }
    };
    bring_ahead<T::STAGES>(parts, bring_weights);

    wait_for_previous();
    auto bring_gradients = [&](u32 part, u32 stage) {
        const u32 d = part * T::DEPTH + Left::depth();
#pragma unroll
        for (u32 i = 0; i < Left::EACH; i++) {
            const u32 row = top + Left::edge(i);
            const u32 count = row < a.rows ? inside<WIDE>(d, a.outputs) : 0;
            Left::template bring<WIDE>(room[stage], i, a.dy + (u64)row * a.outputs + d, count);
        }
    };
    bring_first<T::STAGES>(parts, bring_gradients);
    // A thread has columns that are ACROSS apart.
    u32 kept = ALL;
    if (a.below.count > 0) {
        kept = all_rows<T>([&](u32 i) {
            const u32 row = top + T::down() + i * T::DOWN;
            u32 bits = 0;
#pragma unroll
            for (u32 j = 0; j < T::COLUMNS; j++) {
                const u32 column = left + T::across() + j * T::ACROSS;
                if (row >= a.rows || column >= a.inputs) continue;
                const bool is_left = a.below.has_relu
                    ? !(a.x[(u64)row * a.inputs + column] == 0.0f)
                    : kept_neighbours<1>(a.below, a.below.progress->step, a.below.samples[row], column) & 1;
                bits |= (is_left ? 1u : 0u) << j;
            }
            return bits;
        });
    }
    float sums[T::ROWS][T::COLUMNS];
#pragma unroll
    for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
        for (u32 j = 0; j < T::COLUMNS; j++) sums[i][j] = 0.0f;
    }
    go_through<T::STAGES>(
        parts,
        [&](u32 part, u32 stage) {
            bring_weights(part, stage);
            bring_gradients(part, stage);
        },
        [&](u32 part, u32 stage) {
            const float *dy = room[stage], *w = dy + Left::ROOM;
            auto add_four = [&](u32 d) {
                float4 from[T::ROWS], weights[T::COLUMNS];
#pragma unroll
                for (u32 i = 0; i < T::ROWS; i++) from[i] = Left::read(dy, T::down() + i * T::DOWN, d);
#pragma unroll
                for (u32 j = 0; j < T::COLUMNS; j++) weights[j] = Right::read(w, T::across() + j * T::ACROSS, d);
#pragma unroll
                for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
                    for (u32 j = 0; j < T::COLUMNS; j++) {
                        float sum = fmaf(from[i].x, weights[j].x, sums[i][j]);
                        sum = fmaf(from[i].y, weights[j].y, sum);
                        sum = fmaf(from[i].z, weights[j].z, sum);
                        sums[i][j] = fmaf(from[i].w, weights[j].w, sum);
                    }
                }
            };
            const u32 depth = min(T::DEPTH, a.outputs - part * T::DEPTH);
            if (depth == T::DEPTH) {
                constexpr u32 UNROLLED = T::ROWS * T::COLUMNS <= 2 ? 8 : T::ROWS * T::COLUMNS <= 8 ? 4 : 2;
#pragma unroll UNROLLED
                for (u32 d = 0; d < T::DEPTH; d += 4) add_four(d);
            } else {
#pragma unroll 1
                for (u32 d = 0; d + 4 <= depth; d += 4) add_four(d);
#pragma unroll 1
                for (u32 d = depth / 4 * 4; d < depth; d++) {
#pragma unroll
                    for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
                        for (u32 j = 0; j < T::COLUMNS; j++) {
                            const float from = dy[(T::down() + i * T::DOWN) * Left::LINE + d];
                            const float weight = w[(T::across() + j * T::ACROSS) * Right::LINE + d];
                            sums[i][j] = fmaf(from, weight, sums[i][j]);
                        }
                    }
                }
            }
        });
    if (a.below.count > 0) pointwise_gradient_all(a.below, sums, kept);
#pragma unroll
    for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
        for (u32 j = 0; j < T::COLUMNS; j++) {
            const u32 row = top + T::down() + i * T::DOWN, column = left + T::across() + j * T::ACROSS;
            if (row < a.rows && column < a.inputs) a.dx[(u64)row * a.inputs + column] = sums[i][j];
        }
    }
}

KERNEL_AHEAD(dense_input_gradient_any, SmallTile::THREADS, 5, DenseInputGradient) { input_gradient<SmallTile, false>(a); }
KERNEL_AHEAD(dense_input_gradient_small, SmallTile::THREADS, 5, DenseInputGradient) { input_gradient<SmallTile, true>(a); }
KERNEL_AHEAD(dense_input_gradient_medium, MediumTile::THREADS, 1, DenseInputGradient) { input_gradient<MediumTile, true>(a); }
KERNEL_AHEAD(dense_input_gradient_large, LargeTile::THREADS, 1, DenseInputGradient) { input_gradient<LargeTile, true>(a); }
KERNEL_AHEAD(dense_input_gradient_largest, LargestTile::THREADS, 1, DenseInputGradient) { input_gradient<LargestTile, true>(a); }
