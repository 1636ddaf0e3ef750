// Batch-norm: every column is brought to mean 0 and variance 1 over a lane's rows, then scaled and shifted. Of an image,
// every pixel is a row.
//
// `parts` holds what each block of rows comes to, two numbers for every column. A lane's lie behind those of the lanes
// before it, which have at most as many as `first_part` says.
#include "batch_norm.cuh"
#include "chains.cuh"
#include "numbers.cuh"

// Where the parts of a lane with these rows begin.
DEVICE double *first_part(double *parts, const Rows &rows, u32 features) {
    return parts + (rows.first / BLOCK + blockIdx.z) * 2 * features;
}

// Which block of 64 rows, and which column of it, a thread has.
struct BlockColumn {
    u32 block, column;
    // The block's rows, and its first number of this column.
    u32 rows;
    u64 first;
    bool is_inside;
    DEVICE BlockColumn(const Rows &all, u32 features) {
        const u64 at = thread_of_grid();
        block = at / features;
        column = at % features;
        is_inside = block < blocks_of(all);
        const u32 rest = all.count - block * BLOCK;
        rows = rest < BLOCK ? rest : BLOCK;
        first = (all.first + (u64)block * BLOCK) * features + column;
    }
    DEVICE void end(double *parts, u32 features, const Part &part) const {
        parts[(u64)block * 2 * features + column] = part.one;
        parts[((u64)block * 2 + 1) * features + column] = part.other;
    }
};

struct BatchNormObserve {
    float *x;
    double *parts;
    u32 *lane_rows;
    u32 pixels;
    u32 features;
};

KERNEL(batch_norm_observe, 128, BatchNormObserve) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    const BlockColumn own(rows, a.features);
    if (!own.is_inside) return;
    const Part part = observed(a.x + own.first, own.rows, a.features);
    own.end(first_part(a.parts, rows, a.features), a.features, part);
}

// Columns whose chains a block has, two each.
constexpr u32 COLUMNS = 4;

// The sums over all blocks of a lane, of 4 columns: the thread of a column gets both of its. Only the first warp's threads
// have them.
DEVICE Part sum_blocks(double *parts, const Rows &rows, u32 features) {
    parts = first_part(parts, rows, features);
    const u32 first = blockIdx.x * COLUMNS;
    const double one = chains<256, 2 * COLUMNS>(blocks_of(rows), [&](u32 block, u32 chain) {
        const u32 column = first + chain % COLUMNS;
        return column < features ? parts[((u64)block * 2 + chain / COLUMNS) * features + column] : 0.0;
    });
    return {one, threadIdx.x < WARP ? __shfl_xor_sync(ALL, one, COLUMNS) : 0.0};
}

KERNEL(batch_norm_finish, 256, BatchNormFinish) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    const Part sums = sum_blocks(a.parts, rows, a.features);
    const u32 column = blockIdx.x * COLUMNS + threadIdx.x;
    if (threadIdx.x < COLUMNS && column < a.features) finish(a, rows, column, sums);
}

struct BatchNormRunning {
    float *mean;
    float *variance;
    float *scale;
    float *lines;
    u32 features;
    float epsilon;
};

// The lines by the running statistics: all lanes have the same.
KERNEL(batch_norm_running, 128, BatchNormRunning) {
    const u32 column = thread_of_grid();
    if (column >= a.features) return;
    Line(a.lines, a.features).set(column, a.mean[column], a.variance[column], a.epsilon, a.scale[column]);
}

template <u32 W, bool DRAWS>
DEVICE void forward(const BatchNormForward &a) {
    const Rows rows = rows_of_lane(a.lane_rows, a.rows, a.pixels);
    const Walk<W> walk(a.features);
    if (!walk.is_inside) return;
    const Line line(a.lines, a.features);
    const Numbers<W> mean = read_one_by_one<W>(line.mean + walk.column);
    const Numbers<W> factor = read_one_by_one<W>(line.factor + walk.column);
    const Numbers<W> shift = read_one_by_one<W>(a.shift + walk.column);
    const u64 first = rows.first * a.features + walk.column;
    for_many<W>(
        walk.row, rows.count, walk.step,
        [&](u32 row) { return read<W>(a.x + first + (u64)row * a.features); },
        [&](u32 row, const Numbers<W> &x) {
            const u64 at = first + (u64)row * a.features;
            Numbers<W> y;
#pragma unroll
            for (u32 j = 0; j < W; j++) {
                const float value = normalised(a, x.of[j], mean.of[j], factor.of[j], shift.of[j]);
                y.of[j] = pointwise_at<DRAWS>(a.then, value, at + j);
            }
            write(a.y + at, y);
        });
}

KERNEL(batch_norm_forward, 256, BatchNormForward) { VARIANTS(forward, a, a.features, a.then); }

struct BatchNormSums {
    float *x;
    float *dy;
    float *lines;
    float *shift;
    double *parts;
    u32 *lane_rows;
    u32 pixels;
    u32 features;
    u32 relu;
};

KERNEL(batch_norm_sums, 128, BatchNormSums) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    const BlockColumn own(rows, a.features);
    if (!own.is_inside) return;
    const Line line(a.lines, a.features);
    const float mean = line.mean[own.column], factor = line.factor[own.column], shift = a.shift[own.column];
    const Part part = summed(a.x + own.first, a.dy + own.first, own.rows, a.features, a.relu, mean, factor, shift);
    own.end(first_part(a.parts, rows, a.features), a.features, part);
}

KERNEL(batch_norm_gradient, 256, BatchNormGradient) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    const Part sums = sum_blocks(a.parts, rows, a.features);
    const u32 column = blockIdx.x * COLUMNS + threadIdx.x;
    if (threadIdx.x < COLUMNS && column < a.features) learn(a, rows, column, sums);
}

template <u32 W>
struct InputAndGradient {
    Numbers<W> x, dy;
};

template <u32 W, bool DRAWS>
DEVICE void backward(const BatchNormBackward &a) {
    const Rows rows = rows_of_lane(a.lane_rows, a.rows, a.pixels);
    const Walk<W> walk(a.features);
    if (!walk.is_inside) return;
    const Line line(a.lines, a.features);
    const Numbers<W> mean = read_one_by_one<W>(line.mean + walk.column);
    const Numbers<W> factor = read_one_by_one<W>(line.factor + walk.column);
    const Numbers<W> shift = read_one_by_one<W>(a.shift + walk.column);
    Numbers<W> offset = {}, slope = {};
    if (a.slopes) {
        const float *slopes = a.slopes + (u64)blockIdx.z * 2 * a.features + walk.column;
        offset = read_one_by_one<W>(slopes);
        slope = read_one_by_one<W>(slopes + a.features);
    }
    const u64 first = rows.first * a.features + walk.column;
    for_many<W>(
        walk.row, rows.count, walk.step,
        [&](u32 row) {
            const u64 at = first + (u64)row * a.features;
            return InputAndGradient<W>{read<W>(a.x + at), read<W>(a.dy + at)};
        },
        [&](u32 row, const InputAndGradient<W> &in) {
            const u64 at = first + (u64)row * a.features;
            Numbers<W> dx;
#pragma unroll
            for (u32 j = 0; j < W; j++) {
                const Slope its = {mean.of[j], factor.of[j], shift.of[j], offset.of[j], slope.of[j]};
                dx.of[j] = gradient_at<DRAWS>(a, in.x.of[j], in.dy.of[j], its, at + j);
            }
            write(a.dx + at, dx);
        });
}

KERNEL(batch_norm_backward, 256, BatchNormBackward) { VARIANTS(backward, a, a.features, a.below); }
