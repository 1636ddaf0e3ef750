// Group-norm: groups of channels of a row are brought to mean 0 and variance 1 over their pixels, then every channel is
// scaled and shifted. Layer-norm is the same with one group and every pixel a row.
#include "chains.cuh"
#include "lanes.cuh"
#include "pointwise.cuh"

constexpr u32 CHAINS = 8;

// The mean and the inverse deviation of a group of a row.
struct GroupStatistics {
    float mean;
    float inverse;
};

struct GroupNormForward {
    float *x;
    float *y;
    float *scale;
    float *shift;
    GroupStatistics *statistics;
    // Rows, and their groups, channels and pixels.
    u32 rows;
    u32 groups;
    u32 channels;
    u32 pixels;
    double epsilon;
    Pointwise then;
};

// The sum over a group's numbers of `each(x)`: a chain for each of 8 threads that have the group together, and the chains
// in their order. All of a warp's threads come here.
template <class Each>
DEVICE double sum_group(const float *x, u32 own, u32 width, u32 channels, u32 pixels, Each each) {
    double chain = 0.0;
    for (u32 pixel = 0; pixel < pixels; pixel++) {
        const float *of_pixel = x + (u64)pixel * channels;
#pragma unroll 4
        for (u32 i = own; i < width; i += CHAINS) chain += each(of_pixel[i]);
    }
    double sum = 0.0;
    const u32 first = threadIdx.x % 32 / CHAINS * CHAINS;
#pragma unroll
    for (u32 k = 0; k < CHAINS; k++) sum += __shfl_sync(ALL, chain, first + k);
    return sum;
}

// 8 threads a group of a row.
KERNEL(group_norm_forward, 128, GroupNormForward) {
    const u64 at = thread_of_grid() / CHAINS;
    const bool is_inside = at < (u64)a.rows * a.groups;
    const u32 own = threadIdx.x % CHAINS, width = a.channels / a.groups, pixels = is_inside ? a.pixels : 0;
    const u32 row = at / a.groups, group = at % a.groups;
    const u64 first = (u64)row * a.pixels * a.channels + group * width;
    const float *x = a.x + first;
    const double members = (double)((u64)width * a.pixels);
    const double middle = sum_group(x, own, width, a.channels, pixels, [](float x) { return (double)x; }) / members;
    const double square = sum_group(x, own, width, a.channels, pixels, [=](float x) {
        const double distance = (double)x - middle;
        return distance * distance;
    });
    const float mean = (float)middle, inverse = (float)(1.0 / sqrt(square / members + a.epsilon));
    if (is_inside && own == 0) a.statistics[at] = {mean, inverse};
    const float *scale = a.scale + group * width, *shift = a.shift + group * width;
    for (u32 pixel = 0; pixel < pixels; pixel++) {
        const u64 of_pixel = (u64)pixel * a.channels;
#pragma unroll 4
        for (u32 i = own; i < width; i += CHAINS) {
            const float y = (x[of_pixel + i] - mean) * inverse * scale[i] + shift[i];
            a.y[first + of_pixel + i] = pointwise_at<true>(a.then, y, first + of_pixel + i);
        }
    }
}

struct GroupNormInputGradient {
    float *x;
    float *dy;
    float *dx;
    float *scale;
    GroupStatistics *statistics;
    u32 rows;
    u32 groups;
    u32 channels;
    u32 pixels;
    // What was done to the input where it lies, x.
    Pointwise below;
};

// A warp a group of a row. Two chains over the group's numbers, pixel by pixel: of the gradient by the normalised numbers,
// and of that times them. The warp brings 32 terms of both, and one thread a chain adds them.
KERNEL(group_norm_input_gradient, 128, GroupNormInputGradient) {
    __shared__ double terms[128 / 32][32][2];
    const u64 at = thread_of_grid() / 32;
    // Whole warps go: the others need nobody.
    if (at >= (u64)a.rows * a.groups) return;
    const u32 own = threadIdx.x % 32, width = a.channels / a.groups, group = at % a.groups;
    double(&shown)[32][2] = terms[threadIdx.x / 32];
    const u64 first = at / a.groups * a.pixels * a.channels + group * width;
    const float *scale = a.scale + group * width;
    const GroupStatistics s = a.statistics[at];
    const u32 members = width * a.pixels;
    auto place = [&](u32 i) { return first + (u64)(i / width) * a.channels + i % width; };
    auto normal = [&](u64 at) { return (double)((a.x[at] - s.mean) * s.inverse); };
    auto gradient = [&](u64 at, u32 i) { return (double)a.dy[at] * (double)scale[i % width]; };
    double sum = 0.0;
    for (u32 from = 0; from < members; from += 32) {
        const u32 i = from + own, count = members - from < 32 ? members - from : 32;
        double dy = 0.0, by_normal = 0.0;
        if (own < count) {
            const u64 at = place(i);
            dy = gradient(at, i);
            by_normal = dy * normal(at);
        }
        __syncwarp();
        shown[own][0] = dy;
        shown[own][1] = by_normal;
        __syncwarp();
        if (own >= 2) continue;
        if (count == 32) {
#pragma unroll
            for (u32 k = 0; k < 32; k++) sum += shown[k][own];
        } else {
            for (u32 k = 0; k < count; k++) sum += shown[k][own];
        }
    }
    const double mean = sum / (double)members;
    const double plain = __shfl_sync(ALL, mean, 0), by_normal = __shfl_sync(ALL, mean, 1);
    for (u32 i = own; i < members; i += 32) {
        const u64 at = place(i);
        const double slope = gradient(at, i) - plain - normal(at) * by_normal;
        a.dx[at] = pointwise_gradient_at<true>(a.below, a.x[at], (float)(slope * (double)s.inverse), at);
    }
}

struct GroupNormGradient {
    float *x;
    float *dy;
    GroupStatistics *statistics;
    // Of the first lane; those of the next begin `stride` numbers later.
    float *d_scale;
    float *d_shift;
    u64 stride;
    u32 *lane_rows;
    // Rows here that a row of the batch is, and their groups, channels and pixels.
    u32 each;
    u32 groups;
    u32 channels;
    u32 pixels;
};

// Columns whose chains a block has: one for the scale and one for the shift.
constexpr u32 COLUMNS = 8;

// For each channel of each lane two chains over all pixels of all rows.
KERNEL(group_norm_gradient, 256, GroupNormGradient) {
    const Rows rows = rows_of_lane(a.lane_rows, 0, a.each);
    const u32 first = blockIdx.x * COLUMNS, width = a.channels / a.groups;
    const double sum = chains<256, 2 * COLUMNS>(rows.count * a.pixels, [&](u32 i, u32 chain) {
        const u32 column = first + chain % COLUMNS;
        if (column >= a.channels) return 0.0;
        const u64 at = (rows.first * a.pixels + i) * a.channels + column;
        const double dy = a.dy[at];
        if (chain >= COLUMNS) return dy;
        const GroupStatistics s = a.statistics[(rows.first + i / a.pixels) * a.groups + column / width];
        return dy * (double)((a.x[at] - s.mean) * s.inverse);
    });
    const u32 column = first + threadIdx.x % COLUMNS;
    if (threadIdx.x >= 2 * COLUMNS || column >= a.channels) return;
    float *to = threadIdx.x < COLUMNS ? a.d_scale : a.d_shift;
    to[blockIdx.z * a.stride + column] = (float)sum;
}
