// Grouped convolutions: each output channel sees one group of the input channels. Windows are visited one by one, and
// products are rounded before they are added, as on the processor. What is beyond the image is left out.
#include "bias.cuh"
#include "pointwise.cuh"
#include "window.cuh"

constexpr u32 THREADS = 128;

// The shapes of a grouped convolution.
struct GroupedShape {
    Axis down;
    Axis across;
    // Channels of the image that comes in, and of the one that comes out.
    u32 inputs;
    u32 outputs;
    // Channels of a group.
    Divisor group_inputs;
    Divisor group_outputs;
};

struct GroupedForward {
    float *x;
    float *weight;
    float *bias;
    float *y;
    GroupedShape shape;
    // Groups of channels that a thread has, over the output.
    Pixels pixels;
    u32 count;
    Pointwise then;
};

// N channels of a pixel of the output: with several, each is a group of its own.
template <u32 N>
DEVICE void forward(const GroupedForward &a) {
    const GroupedShape &s = a.shape;
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        const Range rows = pixels_of(s.down, p.row), columns = pixels_of(s.across, p.column);
        const u32 first = p.channel / s.group_outputs * s.group_inputs.by;
        float y[N];
#pragma unroll
        for (u32 k = 0; k < N; k++) y[k] = a.bias ? a.bias[p.channel + k] : 0.0f;
        for (u32 row = rows.begin; row < rows.end; row++) {
            for (u32 column = columns.begin; column < columns.end; column++) {
                const u32 place = place_in(s.down, p.row, row) * s.across.kernel + place_in(s.across, p.column, column);
                const float *pixel = a.x + (((u64)p.image * s.down.input + row) * s.across.input + column) * s.inputs;
                const float *weight = a.weight + (u64)place * s.group_inputs.by * s.outputs + p.channel;
                if constexpr (N == 1) {
                    for (u32 input = 0; input < s.group_inputs.by; input++) {
                        y[0] += pixel[first + input] * weight[(u64)input * s.outputs];
                    }
                } else {
                    float x[N];
                    read(pixel + p.channel, x);
#pragma unroll
                    for (u32 k = 0; k < N; k++) y[k] += x[k] * weight[k];
                }
            }
        }
        const u64 image = (u64)s.down.output * s.across.output * s.outputs;
        const u32 feature = (p.row * s.across.output + p.column) * s.outputs + p.channel;
#pragma unroll
        for (u32 k = 0; k < N; k++) y[k] = pointwise(a.then, y[k], p.image, feature + k);
        write(y, a.y + p.image * image + feature);
    }
}

KERNEL(grouped_forward, THREADS, GroupedForward) { forward<1>(a); }
KERNEL(depthwise_forward, THREADS, GroupedForward) { forward<4>(a); }

struct GroupedInputGradient {
    float *dy;
    float *weight;
    float *x;
    float *dx;
    GroupedShape shape;
    // Groups of channels that a thread has, over the input.
    Pixels pixels;
    u32 count;
    // What was done to x where it lies.
    Pointwise below;
};

// N channels of a pixel of the input: with several, each is a group of its own.
template <u32 N>
DEVICE void input_gradient(const GroupedInputGradient &a) {
    const GroupedShape &s = a.shape;
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        const Range rows = windows_of(s.down, p.row), columns = windows_of(s.across, p.column);
        const u32 first = p.channel / s.group_inputs * s.group_outputs.by, input = p.channel % s.group_inputs;
        float dx[N] = {};
        for (u32 row = rows.begin; row < rows.end; row++) {
            for (u32 column = columns.begin; column < columns.end; column++) {
                const u32 place = place_in(s.down, row, p.row) * s.across.kernel + place_in(s.across, column, p.column);
                const u64 pixel = ((u64)p.image * s.down.output + row) * s.across.output + column;
                const float *gradient = a.dy + pixel * s.outputs;
                const float *weight = a.weight + ((u64)place * s.group_inputs.by + input) * s.outputs;
                if constexpr (N == 1) {
                    for (u32 output = first; output < first + s.group_outputs.by; output++) {
                        dx[0] += gradient[output] * weight[output];
                    }
                } else {
                    float dy[N];
                    read(gradient + p.channel, dy);
#pragma unroll
                    for (u32 k = 0; k < N; k++) dx[k] += dy[k] * weight[p.channel + k];
                }
            }
        }
        const u64 image = (u64)s.down.input * s.across.input * s.inputs;
        const u32 feature = (p.row * s.across.input + p.column) * s.inputs + p.channel;
        if (a.below.count > 0) {
#pragma unroll
            for (u32 k = 0; k < N; k++) {
                const float x = a.x[p.image * image + feature + k];
                dx[k] = pointwise_gradient(a.below, x, dx[k], p.image, feature + k);
            }
        }
        write(dx, a.dx + p.image * image + feature);
    }
}

KERNEL(grouped_input_gradient, THREADS, GroupedInputGradient) { input_gradient<1>(a); }
KERNEL(depthwise_input_gradient, THREADS, GroupedInputGradient) { input_gradient<4>(a); }

// The gradient by the weights of every image, of some of them.
struct GroupedParts {
    ImageSums sums;
    float *x;
    float *dy;
    float *to;
    GroupedShape shape;
    Divisor outputs;
    // Numbers of the kernels.
    u32 size;
    // The first image, and the blocks that each of them has.
    u32 first;
    Divisor blocks;
};

// The windows in which a place of the kernel is over a pixel.
DEVICE Range windows_at(const Axis &a, u32 place) {
    const u32 begin = place < a.padding ? (a.padding - place + a.stride.by - 1) / a.stride : 0;
    const u32 pixels = a.input + a.padding;
    const u32 end = place < pixels ? (pixels - place + a.stride.by - 1) / a.stride : 0;
    return {begin, min(end, a.output)};
}

KERNEL(grouped_parts, THREADS, GroupedParts) {
    static_assert(THREADS == BIAS_THREADS, "tasks of one kernel");
    __shared__ __align__(16) float room[BIAS_ROOM];
    if (blockIdx.x < a.sums.blocks) return sum_image(a.sums, blockIdx.x, room);
    const u32 block = blockIdx.x - a.sums.blocks, number = block / a.blocks, image = a.first + number;
    const u32 i = block % a.blocks * THREADS + threadIdx.x;
    if (i >= a.size) return;
    const GroupedShape &s = a.shape;
    const u32 output = i % a.outputs, row = i / a.outputs, place = row / s.group_inputs;
    const u32 input = output / s.group_outputs * s.group_inputs.by + row % s.group_inputs;
    const u32 down = place / s.across.kernel, right = place % s.across.kernel;
    const Range rows = windows_at(s.down, down), columns = windows_at(s.across, right);
    float sum = 0.0f;
    for (u32 top = rows.begin; top < rows.end; top++) {
        const u32 y = top * s.down.stride.by + down - s.down.padding;
        const u32 first = columns.begin * s.across.stride.by + right - s.across.padding;
        const float *x = a.x + (((u64)image * s.down.input + y) * s.across.input + first) * s.inputs + input;
        const u64 window = ((u64)image * s.down.output + top) * s.across.output + columns.begin;
        const float *dy = a.dy + window * s.outputs + output;
        const u64 step = (u64)s.across.stride.by * s.inputs;
#pragma unroll 8
        for (u32 left = 0; left < columns.end - columns.begin; left++) sum += x[left * step] * dy[(u64)left * s.outputs];
    }
    a.to[(u64)number * a.size + i] = sum;
}

// Adds up some images of every lane.
struct GroupedSums {
    BiasSums bias;
    float *parts;
    float *to;
    u64 stride;
    u32 *lane_rows;
    // The images that there are parts of.
    u32 first;
    u32 end;
    Divisor size;
    u32 lanes;
};

KERNEL(grouped_sums, THREADS, GroupedSums) {
    if (blockIdx.x < a.bias.blocks) return sum_images(a.bias, blockIdx.x * THREADS + threadIdx.x);
    const u32 i = (blockIdx.x - a.bias.blocks) * THREADS + threadIdx.x, lane = i / a.size, at = i % a.size;
    if (lane >= a.lanes) return;
    const u32 lane_begin = a.lane_rows[lane], begin = max(lane_begin, a.first), end = min(a.lane_rows[lane + 1], a.end);
    if (begin >= end) return;
    float *to = a.to + lane * a.stride + at;
    // The images before have been added up already.
    float sum = begin == lane_begin ? 0.0f : *to;
#pragma unroll 8
    for (u32 image = begin; image < end; image++) sum += a.parts[(u64)(image - a.first) * a.size.by + at];
    *to = sum;
}
