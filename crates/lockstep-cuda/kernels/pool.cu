// Pools: the largest number or the mean of every window, or of the whole image, channel by channel. A thread has one
// channel of a pixel, or four where channels come in fours.
#include "pointwise.cuh"
#include "window.cuh"

struct Pool {
    float *x;
    float *y;
    float *dy;
    float *dx;
    // Of a pool of largest numbers: where in its window the largest lies.
    u8 *winners;
    Axis down;
    Axis across;
    // Of the numbers that are computed: the output on the way there, the input on the way back.
    Pixels pixels;
    u32 channels;
    // Groups of channels of all pixels.
    u32 count;
    // What a sum is multiplied by.
    float share;
    // On the way there, what is done to y then; on the way back, what was done to x where it lies.
    Pointwise pointwise;
};

// Where a pixel's first channel lies in images of this width and height.
DEVICE u64 place_of(const Pool &a, u32 image, u32 row, u32 column, u32 height, u32 width) {
    return (((u64)image * height + row) * width + column) * a.channels;
}

// Writes what the way there came to.
template <u32 N>
DEVICE void end_forward(const Pool &a, const PixelPlace &p, float (&y)[N]) {
    const u32 feature = (p.row * a.across.output + p.column) * a.channels + p.channel;
#pragma unroll
    for (u32 k = 0; k < N; k++) y[k] = pointwise(a.pointwise, y[k], p.image, feature + k);
    write(y, a.y + place_of(a, p.image, p.row, p.column, a.down.output, a.across.output) + p.channel);
}

// Writes what the way back came to.
template <u32 N>
DEVICE void end_backward(const Pool &a, const PixelPlace &p, float (&dx)[N]) {
    const u32 feature = (p.row * a.across.input + p.column) * a.channels + p.channel;
    const u64 place = place_of(a, p.image, p.row, p.column, a.down.input, a.across.input) + p.channel;
    if (a.pointwise.count > 0) {
#pragma unroll
        for (u32 k = 0; k < N; k++) {
            dx[k] = pointwise_gradient(a.pointwise, a.x[place + k], dx[k], p.image, feature + k);
        }
    }
    write(dx, a.dx + place);
}

template <u32 N>
DEVICE void max_forward(const Pool &a) {
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        const Range rows = pixels_of(a.down, p.row), columns = pixels_of(a.across, p.column);
        const u32 first = place_in(a.down, p.row, rows.begin) * a.across.kernel;
        float best[N];
        u32 winner[N];
#pragma unroll
        for (u32 k = 0; k < N; k++) {
            best[k] = __uint_as_float(0xff800000u);
            winner[k] = first + place_in(a.across, p.column, columns.begin);
        }
        for (u32 row = rows.begin; row < rows.end; row++) {
            for (u32 column = columns.begin; column < columns.end; column++) {
                const u32 place = place_in(a.down, p.row, row) * a.across.kernel + place_in(a.across, p.column, column);
                float x[N];
                read(a.x + place_of(a, p.image, row, column, a.down.input, a.across.input) + p.channel, x);
#pragma unroll
                for (u32 k = 0; k < N; k++) {
                    // The first of equals wins, and a NaN over all.
                    const bool wins = x[k] > best[k] || x[k] != x[k];
                    best[k] = wins ? x[k] : best[k];
                    winner[k] = wins ? place : winner[k];
                }
            }
        }
        if constexpr (N == 4) {
            ((u32 *)a.winners)[i] = winner[0] | winner[1] << 8 | winner[2] << 16 | winner[3] << 24;
        } else {
            a.winners[i] = (u8)winner[0];
        }
        end_forward(a, p, best);
    }
}

// Every pixel collects from the windows that it won.
template <u32 N>
DEVICE void max_backward(const Pool &a) {
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        const Range rows = windows_of(a.down, p.row), columns = windows_of(a.across, p.column);
        float sum[N] = {};
        for (u32 row = rows.begin; row < rows.end; row++) {
            for (u32 column = columns.begin; column < columns.end; column++) {
                const u32 place = place_in(a.down, row, p.row) * a.across.kernel + place_in(a.across, column, p.column);
                const u64 from = place_of(a, p.image, row, column, a.down.output, a.across.output) + p.channel;
                float dy[N];
                read(a.dy + from, dy);
                const u32 winners = N == 4 ? *(const u32 *)(a.winners + from) : a.winners[from];
#pragma unroll
                for (u32 k = 0; k < N; k++) sum[k] += (winners >> 8 * k & 0xff) == place ? dy[k] : 0.0f;
            }
        }
        end_backward(a, p, sum);
    }
}

template <u32 N>
DEVICE void mean_forward(const Pool &a) {
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        const Range rows = pixels_of(a.down, p.row), columns = pixels_of(a.across, p.column);
        float sum[N] = {};
        for (u32 row = rows.begin; row < rows.end; row++) {
            for (u32 column = columns.begin; column < columns.end; column++) {
                float x[N];
                read(a.x + place_of(a, p.image, row, column, a.down.input, a.across.input) + p.channel, x);
#pragma unroll
                for (u32 k = 0; k < N; k++) sum[k] += x[k];
            }
        }
#pragma unroll
        for (u32 k = 0; k < N; k++) sum[k] *= a.share;
        end_forward(a, p, sum);
    }
}

template <u32 N>
DEVICE void mean_backward(const Pool &a) {
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        const Range rows = windows_of(a.down, p.row), columns = windows_of(a.across, p.column);
        float sum[N] = {};
        for (u32 row = rows.begin; row < rows.end; row++) {
            for (u32 column = columns.begin; column < columns.end; column++) {
                float dy[N];
                read(a.dy + place_of(a, p.image, row, column, a.down.output, a.across.output) + p.channel, dy);
#pragma unroll
                for (u32 k = 0; k < N; k++) sum[k] += dy[k];
            }
        }
#pragma unroll
        for (u32 k = 0; k < N; k++) sum[k] *= a.share;
        end_backward(a, p, sum);
    }
}

// The mean of an image, whose window is all of it: line by line, as a large image would lose too much in a row.
template <u32 N>
DEVICE void image_forward(const Pool &a) {
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        const float *from = a.x + place_of(a, p.image, 0, 0, a.down.input, a.across.input) + p.channel;
        float sum[N] = {};
        for (u32 row = 0; row < a.down.input; row++) {
            float line[N] = {};
#pragma unroll 4
            for (u32 column = 0; column < a.across.input; column++) {
                float x[N];
                read(from + (u64)(row * a.across.input + column) * a.channels, x);
#pragma unroll
                for (u32 k = 0; k < N; k++) line[k] += x[k];
            }
#pragma unroll
            for (u32 k = 0; k < N; k++) sum[k] += line[k];
        }
#pragma unroll
        for (u32 k = 0; k < N; k++) sum[k] *= a.share;
        end_forward(a, p, sum);
    }
}

template <u32 N>
DEVICE void image_backward(const Pool &a) {
    for (u32 i = (u32)thread_of_grid(); i < a.count; i += (u32)threads_of_grid()) {
        const PixelPlace p = pixel_place<N>(a.pixels, i);
        float dx[N];
        read(a.dy + (u64)p.image * a.channels + p.channel, dx);
#pragma unroll
        for (u32 k = 0; k < N; k++) dx[k] *= a.share;
        end_backward(a, p, dx);
    }
}

// A kernel for channels that come in fours, and one for any channels.
#define POOL(name)                                       \
    KERNEL(name##_of_fours, 256, Pool) { name<4>(a); } \
    KERNEL(name##_of_ones, 256, Pool) { name<1>(a); }

POOL(max_forward)
POOL(max_backward)
POOL(mean_forward)
POOL(mean_backward)
POOL(image_forward)
POOL(image_backward)
