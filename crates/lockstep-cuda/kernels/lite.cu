// What EfficientNet-Lite has beside products: its first convolution, convolutions of each channel by itself, and averages.
// Pictures are squares, channels innermost. A thread has 4 channels of some neighbouring pixels of a line.
#include "numbers.cuh"
#include "relu6.cuh"

constexpr u32 THREADS = 128, PIXELS = 4;

// How windows lie on a picture that has been widened by a margin.
struct LiteWindows {
    u32 input;
    // Pixels of a line of the output, which are so many tiles.
    Divisor output;
    Divisor tiles;
    u32 margin;
    // Channels, and groups of four of them.
    u32 channels;
    Divisor groups;
    // Threads that have something to do.
    u32 count;
};

struct LiteConvolution {
    float *x;
    // A window's pixels, line by line, channels innermost, then outputs if each has all channels.
    float *weight;
    float *bias;
    float *y;
    LiteWindows windows;
};

// What a thread has.
struct LitePlace {
    u32 picture;
    u32 row;
    u32 column;
    u32 channel;
    DEVICE LitePlace(const LiteWindows &w, u32 i) {
        const u32 tile = i / w.groups, line = tile / w.tiles;
        channel = i % w.groups * 4;
        column = tile % w.tiles * PIXELS;
        row = line % w.output;
        picture = line / w.output;
    }
};

DEVICE void begin(const LiteConvolution &a, const LitePlace &place, float (&sums)[PIXELS][4]) {
    const Numbers<4> bias = read<4>(a.bias + place.channel);
#pragma unroll
    for (u32 p = 0; p < PIXELS; p++) {
#pragma unroll
        for (u32 k = 0; k < 4; k++) sums[p][k] = bias.of[k];
    }
}

DEVICE void end(const LiteConvolution &a, const LitePlace &place, const float (&sums)[PIXELS][4]) {
    const LiteWindows &w = a.windows;
    const u64 line = (u64)place.picture * w.output.by + place.row;
    float *to = a.y + (line * w.output.by + place.column) * w.channels + place.channel;
#pragma unroll
    for (u32 p = 0; p < PIXELS; p++) {
        if (place.column + p >= w.output.by) return;
        Numbers<4> made;
#pragma unroll
        for (u32 k = 0; k < 4; k++) made.of[k] = relu6(sums[p][k]);
        write(to + p * w.channels, made);
    }
}

// A convolution of each channel by itself, with windows of K x K pixels, S apart. Lines beyond the picture are left out,
// and columns beyond it are multiplied as zeros.
template <u32 K, u32 S>
DEVICE void depthwise(const LiteConvolution &a) {
    constexpr u32 READ = (PIXELS - 1) * S + K;
    const LiteWindows &w = a.windows;
    const u32 i = thread_of_grid();
    if (i >= w.count) return;
    const LitePlace place(w, i);
    float sums[PIXELS][4];
    begin(a, place, sums);
#pragma unroll 1
    for (u32 line = 0; line < K; line++) {
        const u32 row = place.row * S + line - w.margin;
        if (row >= w.input) continue;
        const float *from = a.x + ((u64)place.picture * w.input + row) * w.input * w.channels + place.channel;
        const float *weight = a.weight + line * K * w.channels + place.channel;
        Numbers<4> pixels[READ];
#pragma unroll
        for (u32 p = 0; p < READ; p++) {
            const u32 column = place.column * S + p - w.margin;
            pixels[p] = column < w.input ? read<4>(from + column * w.channels) : Numbers<4>{};
        }
#pragma unroll
        for (u32 at = 0; at < K; at++) {
            const Numbers<4> of_place = read<4>(weight + at * w.channels);
#pragma unroll
            for (u32 p = 0; p < PIXELS; p++) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) sums[p][k] = fmaf(pixels[p * S + at].of[k], of_place.of[k], sums[p][k]);
            }
        }
    }
    end(a, place, sums);
}

KERNEL(lite_depthwise_3_1, THREADS, LiteConvolution) { depthwise<3, 1>(a); }
KERNEL(lite_depthwise_3_2, THREADS, LiteConvolution) { depthwise<3, 2>(a); }
KERNEL(lite_depthwise_5_1, THREADS, LiteConvolution) { depthwise<5, 1>(a); }
KERNEL(lite_depthwise_5_2, THREADS, LiteConvolution) { depthwise<5, 2>(a); }

// The first convolution, of pictures in colour: windows of 3 x 3 pixels, 2 apart. All that is beyond the picture is
// multiplied as zeros.
KERNEL(lite_stem, THREADS, LiteConvolution) {
    constexpr u32 K = 3, S = 2, CHANNELS = 3, READ = (PIXELS - 1) * S + K;
    const LiteWindows &w = a.windows;
    const u32 i = thread_of_grid();
    if (i >= w.count) return;
    const LitePlace place(w, i);
    float sums[PIXELS][4];
    begin(a, place, sums);
#pragma unroll 1
    for (u32 line = 0; line < K; line++) {
        const u32 row = place.row * S + line - w.margin;
        const float *from = a.x + ((u64)place.picture * w.input + row) * w.input * CHANNELS;
        float pixels[READ][CHANNELS];
#pragma unroll
        for (u32 p = 0; p < READ; p++) {
            const u32 column = place.column * S + p - w.margin;
            const bool is_inside = row < w.input && column < w.input;
#pragma unroll
            for (u32 c = 0; c < CHANNELS; c++) pixels[p][c] = is_inside ? from[column * CHANNELS + c] : 0.0f;
        }
#pragma unroll
        for (u32 at = 0; at < K * CHANNELS; at++) {
            const Numbers<4> weight = read<4>(a.weight + (line * K * CHANNELS + at) * w.channels + place.channel);
#pragma unroll
            for (u32 p = 0; p < PIXELS; p++) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) {
                    sums[p][k] = fmaf(pixels[p * S + at / CHANNELS][at % CHANNELS], weight.of[k], sums[p][k]);
                }
            }
        }
    }
    end(a, place, sums);
}

struct LitePool {
    float *x;
    float *y;
    Divisor features;
    u32 pixels;
    float share;
    u32 count;
};

// The average of each feature over all pixels: a chain in their order.
KERNEL(lite_pool, THREADS, LitePool) {
    const u32 i = thread_of_grid();
    if (i >= a.count) return;
    const u32 features = a.features.by;
    const float *x = a.x + (u64)(i / a.features) * a.pixels * features + i % a.features;
    float sum = 0.0f;
#pragma unroll 8
    for (u32 pixel = 0; pixel < a.pixels; pixel++) sum += x[(u64)pixel * features];
    a.y[i] = sum * a.share;
}
