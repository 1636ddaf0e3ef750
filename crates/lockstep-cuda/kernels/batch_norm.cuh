// What batch-norm comes to, of a block of rows and of a column.
//
// Blocks of 64 rows are summed in single precision, and the blocks in double precision, in their order: a chain for each
// column.
#pragma once
#include "lanes.cuh"
#include "pointwise.cuh"

constexpr u32 BLOCK = 64;

DEVICE u32 blocks_of(const Rows &rows) { return (rows.count + BLOCK - 1) / BLOCK; }

// What a block of rows comes to in a column: two numbers that can be added to those of other blocks.
struct Part {
    double one, other;
};

// The mean of a block, and the squares of the distances from it.
DEVICE Part observed(const float *x, u32 rows, u32 line) {
    float sum = 0.0f, square = 0.0f, mean;
    if (rows == BLOCK) {
        // All are read at once, and only once.
        float all[BLOCK];
#pragma unroll
        for (u32 i = 0; i < BLOCK; i++) all[i] = x[(u64)i * line];
#pragma unroll
        for (u32 i = 0; i < BLOCK; i++) sum += all[i];
        mean = sum * (1.0f / (float)BLOCK);
#pragma unroll
        for (u32 i = 0; i < BLOCK; i++) square += (all[i] - mean) * (all[i] - mean);
    } else {
        for (u32 i = 0; i < rows; i++) sum += x[(u64)i * line];
        mean = sum * (1.0f / (float)rows);
        for (u32 i = 0; i < rows; i++) {
            const float distance = x[(u64)i * line] - mean;
            square += distance * distance;
        }
    }
    const double count = rows, middle = mean;
    return {count * middle, (double)square + count * (middle * middle)};
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

// The line of a column, and what the running statistics learn of it, from the sums of its blocks.
DEVICE void finish(const BatchNormFinish &a, const Rows &rows, u32 column, const Part &sums) {
    const double share = 1.0 / (double)rows.count, middle = sums.one * share;
    const double square = sums.other * share - middle * middle;
    const float mean = (float)middle, variance = square < 0.0 ? 0.0f : (float)square;
    Line(a.lines, a.features).set(column, mean, variance, a.epsilon, a.scale[column]);
    const float count = (float)rows.count, of_batch = (float)(rows.count / a.pixels) / (float)a.batch;
    const float unbiased = count / (count - 1.0f) * of_batch;
    a.d_mean[blockIdx.z * a.stride + column] = mean * of_batch;
    a.d_variance[blockIdx.z * a.stride + column] = variance * unbiased;
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

// What becomes of a number of x, before what is pointwise.
DEVICE float normalised(const BatchNormForward &a, float x, float mean, float factor, float shift) {
    const float value = (x - mean) * factor + shift;
    // NaN stays NaN, so that a diverged run shows.
    return a.relu && value < 0.0f ? 0.0f : value;
}

// The gradient where the ReLU let something through.
DEVICE float passed(bool relu, float distance, float factor, float shift, float dy) {
    return relu && distance * factor + shift <= 0.0f ? 0.0f : dy;
}

// Of a block the sums of dy, and of dy times the distance of x from its mean.
DEVICE Part summed(const float *x, const float *dy, u32 rows, u32 line, bool relu, float mean, float factor, float shift) {
    float plain = 0.0f, by_distance = 0.0f;
    auto add = [&](float x, float dy) {
        const float distance = x - mean;
        dy = passed(relu, distance, factor, shift, dy);
        plain += dy;
        by_distance += dy * distance;
    };
    if (rows == BLOCK) {
        constexpr u32 AHEAD = 16;
#pragma unroll 1
        for (u32 from = 0; from < BLOCK; from += AHEAD) {
            float some_x[AHEAD], some_dy[AHEAD];
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++) {
                some_x[i] = x[(u64)(from + i) * line];
                some_dy[i] = dy[(u64)(from + i) * line];
            }
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++) add(some_x[i], some_dy[i]);
        }
    } else {
        for (u32 i = 0; i < rows; i++) add(x[(u64)i * line], dy[(u64)i * line]);
    }
    return {(double)plain, (double)by_distance};
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

// What a column takes off its gradients, and the gradients by its scale and shift, from the sums of its blocks.
DEVICE void learn(const BatchNormGradient &a, const Rows &rows, u32 column, const Part &sums) {
    const double inverse = Line(a.lines, a.features).inverse[column], share = 1.0 / (double)rows.count;
    const double d_scale = sums.other * inverse;
    float *slopes = a.slopes + (u64)blockIdx.z * 2 * a.features;
    slopes[column] = (float)(sums.one * share);
    slopes[a.features + column] = (float)(d_scale * share * inverse);
    a.d_scale[blockIdx.z * a.stride + column] = (float)d_scale;
    a.d_shift[blockIdx.z * a.stride + column] = (float)sums.one;
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

// What the gradients of a column are made with.
struct Slope {
    float mean, factor, shift, offset, slope;
};

template <bool DRAWS>
DEVICE float gradient_at(const BatchNormBackward &a, float x, float dy, const Slope &its, u64 at) {
    const float distance = x - its.mean;
    dy = passed(a.relu, distance, its.factor, its.shift, dy);
    return pointwise_gradient_at<DRAWS>(a.below, x, its.factor * (dy - its.offset - its.slope * distance), at);
}
