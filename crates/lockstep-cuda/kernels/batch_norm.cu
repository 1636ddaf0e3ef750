// Batch-norm: every column is brought to mean 0 and variance 1 over a lane's rows, then scaled and shifted. Of an image,
// every pixel is a row.
//
// Blocks of 64 rows are summed in single precision, and the blocks in double precision, in their order: a chain for each
// column. `parts` holds what each block comes to, two numbers for every column. A lane's lie behind those of the lanes
// before it, which have at most as many as `first_part` says.
#include "chains.cuh"
#include "lanes.cuh"
#include "numbers.cuh"
#include "pointwise.cuh"

constexpr u32 BLOCK = 64;

// Where the parts of a lane with these rows begin.
DEVICE double *first_part(double *parts, const Rows &rows, u32 features) {
    return parts + (rows.first / BLOCK + blockIdx.z) * 2 * features;
}

DEVICE u32 blocks_of(const Rows &rows) { return (rows.count + BLOCK - 1) / BLOCK; }

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
    DEVICE void end(double *parts, u32 features, double one, double other) const {
        parts[(u64)block * 2 * features + column] = one;
        parts[((u64)block * 2 + 1) * features + column] = other;
    }
};

struct BatchNormObserve {
    float *x;
    double *parts;
    u32 *lane_rows;
    u32 pixels;
    u32 features;
};

// Of each block its mean, and the squares of the distances from it; both so that the blocks' can be added.
KERNEL(batch_norm_observe, 128, BatchNormObserve) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    const BlockColumn own(rows, a.features);
    if (!own.is_inside) return;
    const float *x = a.x + own.first;
    float sum = 0.0f, square = 0.0f, mean;
    if (own.rows == BLOCK) {
        // All are read at once, and only once.
        float all[BLOCK];
#pragma unroll
        for (u32 i = 0; i < BLOCK; i++) all[i] = x[(u64)i * a.features];
#pragma unroll
        for (u32 i = 0; i < BLOCK; i++) sum += all[i];
        mean = sum * (1.0f / (float)BLOCK);
#pragma unroll
        for (u32 i = 0; i < BLOCK; i++) square += (all[i] - mean) * (all[i] - mean);
    } else {
        for (u32 i = 0; i < own.rows; i++) sum += x[(u64)i * a.features];
        mean = sum * (1.0f / (float)own.rows);
        for (u32 i = 0; i < own.rows; i++) {
            const float distance = x[(u64)i * a.features] - mean;
            square += distance * distance;
        }
    }
    const double count = own.rows, middle = mean;
    double *parts = first_part(a.parts, rows, a.features);
    own.end(parts, a.features, count * middle, (double)square + count * (middle * middle));
}

// Columns whose chains a block has, two each.
constexpr u32 COLUMNS = 4;

// The sums over all blocks of a lane, of 4 columns: the thread of a column gets both of its. Only the first warp's threads
// have them.
DEVICE void sum_blocks(double *parts, const Rows &rows, u32 features, double &one, double &other) {
    parts = first_part(parts, rows, features);
    const u32 first = blockIdx.x * COLUMNS;
    one = chains<256, 2 * COLUMNS>(blocks_of(rows), [&](u32 block, u32 chain) {
        const u32 column = first + chain % COLUMNS;
        return column < features ? parts[((u64)block * 2 + chain / COLUMNS) * features + column] : 0.0;
    });
    other = threadIdx.x < WARP ? __shfl_xor_sync(ALL, one, COLUMNS) : 0.0;
}

// The line of a column: `(x - mean) * factor + shift`. Of every lane there are the means of all columns, the inverse
// deviations and the factors.
struct Line {
    float *mean, *inverse, *factor;
    DEVICE Line(float *lines, u32 features) {
        mean = lines + (u64)blockIdx.z * 3 * features;
        inverse = mean + features;
        factor = inverse + features;
    }
    DEVICE void set(u32 column, float its_mean, float variance, float epsilon, float scale) const {
        const float its_inverse = 1.0f / sqrtf(variance + epsilon);
        mean[column] = its_mean;
        inverse[column] = its_inverse;
        factor[column] = its_inverse * scale;
    }
};

struct BatchNormFinish {
    double *parts;
    float *scale;
    float *lines;
    // Where what the first lane observed goes: the "gradient" of the running statistics. That of the next lanes goes
    // `stride` numbers later.
    float *d_mean;
    float *d_variance;
    u64 stride;
    u32 *lane_rows;
    u32 pixels;
    u32 features;
    // Samples of the whole batch.
    u32 batch;
    float epsilon;
};

KERNEL(batch_norm_finish, 256, BatchNormFinish) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    double sum, squares;
    sum_blocks(a.parts, rows, a.features, sum, squares);
    const u32 column = blockIdx.x * COLUMNS + threadIdx.x;
    if (threadIdx.x >= COLUMNS || column >= a.features) return;
    const double share = 1.0 / (double)rows.count, middle = sum * share, square = squares * share - middle * middle;
    const float mean = (float)middle, variance = square < 0.0 ? 0.0f : (float)square;
    Line(a.lines, a.features).set(column, mean, variance, a.epsilon, a.scale[column]);
    const float count = (float)rows.count, of_batch = (float)(rows.count / a.pixels) / (float)a.batch;
    const float unbiased = count / (count - 1.0f) * of_batch;
    a.d_mean[blockIdx.z * a.stride + column] = mean * of_batch;
    a.d_variance[blockIdx.z * a.stride + column] = variance * unbiased;
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

struct BatchNormForward {
    float *x;
    float *y;
    float *lines;
    float *shift;
    // No lanes if all have the same line.
    u32 *lane_rows;
    u32 rows;
    u32 pixels;
    u32 features;
    u32 relu;
    Pointwise then;
};

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
                const float value = (x.of[j] - mean.of[j]) * factor.of[j] + shift.of[j];
                // NaN stays NaN, so that a diverged run shows.
                y.of[j] = pointwise_at<DRAWS>(a.then, a.relu && value < 0.0f ? 0.0f : value, at + j);
            }
            write(a.y + at, y);
        });
}

KERNEL(batch_norm_forward, 256, BatchNormForward) { VARIANTS(forward, a, a.features, a.then); }

// The gradient where the ReLU let something through.
DEVICE float passed(bool relu, float distance, float factor, float shift, float dy) {
    return relu && distance * factor + shift <= 0.0f ? 0.0f : dy;
}

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

// Of each block the sums of dy, and of dy times the distance of x from its mean.
KERNEL(batch_norm_sums, 128, BatchNormSums) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    const BlockColumn own(rows, a.features);
    if (!own.is_inside) return;
    const Line line(a.lines, a.features);
    const float mean = line.mean[own.column], factor = line.factor[own.column], shift = a.shift[own.column];
    float plain = 0.0f, by_distance = 0.0f;
    auto add = [&](float x, float dy) {
        const float distance = x - mean;
        dy = passed(a.relu, distance, factor, shift, dy);
        plain += dy;
        by_distance += dy * distance;
    };
    const float *x = a.x + own.first, *dy = a.dy + own.first;
    if (own.rows == BLOCK) {
        constexpr u32 AHEAD = 16;
#pragma unroll 1
        for (u32 from = 0; from < BLOCK; from += AHEAD) {
            float some_x[AHEAD], some_dy[AHEAD];
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++) {
                some_x[i] = x[(u64)(from + i) * a.features];
                some_dy[i] = dy[(u64)(from + i) * a.features];
            }
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++) add(some_x[i], some_dy[i]);
        }
    } else {
        for (u32 i = 0; i < own.rows; i++) add(x[(u64)i * a.features], dy[(u64)i * a.features]);
    }
    own.end(first_part(a.parts, rows, a.features), a.features, (double)plain, (double)by_distance);
}

struct BatchNormGradient {
    double *parts;
    float *lines;
    // Of every lane what is taken off every gradient of a column, and what is taken off it for the distance from the mean.
    float *slopes;
    float *d_scale;
    float *d_shift;
    u64 stride;
    u32 *lane_rows;
    u32 pixels;
    u32 features;
};

KERNEL(batch_norm_gradient, 256, BatchNormGradient) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.pixels);
    double d_shift, by_distance;
    sum_blocks(a.parts, rows, a.features, d_shift, by_distance);
    const u32 column = blockIdx.x * COLUMNS + threadIdx.x;
    if (threadIdx.x >= COLUMNS || column >= a.features) return;
    const double inverse = Line(a.lines, a.features).inverse[column], share = 1.0 / (double)rows.count;
    const double d_scale = by_distance * inverse;
    float *slopes = a.slopes + (u64)blockIdx.z * 2 * a.features;
    slopes[column] = (float)(d_shift * share);
    slopes[a.features + column] = (float)(d_scale * share * inverse);
    a.d_scale[blockIdx.z * a.stride + column] = (float)d_scale;
    a.d_shift[blockIdx.z * a.stride + column] = (float)d_shift;
}

struct BatchNormBackward {
    float *x;
    float *dy;
    float *dx;
    float *lines;
    float *shift;
    // None if the statistics do not follow from x.
    float *slopes;
    u32 *lane_rows;
    u32 rows;
    u32 pixels;
    u32 features;
    u32 relu;
    // What was done to the input where it lies, x.
    Pointwise below;
};

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
                const float distance = in.x.of[j] - mean.of[j];
                const float dy = passed(a.relu, distance, factor.of[j], shift.of[j], in.dy.of[j]);
                const float value = factor.of[j] * (dy - offset.of[j] - slope.of[j] * distance);
                dx.of[j] = pointwise_gradient_at<DRAWS>(a.below, in.x.of[j], value, at + j);
            }
            write(a.dx + at, dx);
        });
}

KERNEL(batch_norm_backward, 256, BatchNormBackward) { VARIANTS(backward, a, a.features, a.below); }
