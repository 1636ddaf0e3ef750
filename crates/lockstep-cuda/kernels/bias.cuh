// The gradient of a convolution's bias: the pixels of an image are added up in order, then the images.
#pragma once
#include "lockstep.cuh"

// The pixels of every image; or of every lane, if images have one pixel.
struct ImageSums {
    float *dy;
    // For every image a number for each channel, and how far it is to those of the next.
    float *to;
    u64 stride;
    // The first pixel of every lane, and where the last one ends; without it every image has as many.
    u32 *lane_rows;
    u32 pixels;
    Divisor channels;
    // Groups of channels that a block has one of.
    Divisor groups;
    u32 blocks;
};

// What the images of a lane come to.
struct BiasSums {
    float *images;
    float *to;
    u64 stride;
    u32 *lane_rows;
    Divisor channels;
    u32 lanes;
    u32 blocks;
};

// Channels that a block has, and pixels of a part: STAGES parts are in shared memory or on their way.
constexpr u32 BIAS_THREADS = 128, BIAS_CHANNELS = 32, BIAS_PIXELS = 64, BIAS_STAGES = 3;
constexpr u32 BIAS_PART = BIAS_CHANNELS * BIAS_PIXELS, BIAS_ROOM = BIAS_STAGES * BIAS_PART;

// Adds up some channels of an image. All threads bring numbers to shared memory, from which one warp adds them up: so no
// addition waits for the memory.
DEVICE void sum_image(const ImageSums &a, u32 block, float *room) {
    const u32 channels = a.channels.by, image = block / a.groups, first = block % a.groups * BIAS_CHANNELS;
    const u64 begin = a.lane_rows ? a.lane_rows[image] : (u64)image * a.pixels;
    const u32 pixels = a.lane_rows ? (u32)(a.lane_rows[image + 1] - begin) : a.pixels;
    const float *dy = a.dy + begin * channels + first;
    const u32 width = channels - first < BIAS_CHANNELS ? channels - first : BIAS_CHANNELS;
    const u32 parts = (pixels + BIAS_PIXELS - 1) / BIAS_PIXELS;
    const bool is_aligned = channels % 4 == 0;
    auto bring = [&](u32 part) {
        float *to = room + part % BIAS_STAGES * BIAS_PART;
        if (is_aligned) {
#pragma unroll
            for (u32 j = 0; j < BIAS_PART / 4 / BIAS_THREADS; j++) {
                const u32 i = (threadIdx.x + j * BIAS_THREADS) * 4, channel = i % BIAS_CHANNELS;
                const u32 pixel = part * BIAS_PIXELS + i / BIAS_CHANNELS;
                copy16(to + i, dy + (u64)pixel * channels + channel, pixel < pixels && channel < width);
            }
        } else {
#pragma unroll 4
            for (u32 i = threadIdx.x; i < BIAS_PART; i += BIAS_THREADS) {
                const u32 channel = i % BIAS_CHANNELS, pixel = part * BIAS_PIXELS + i / BIAS_CHANNELS;
                copy4(to + i, dy + (u64)pixel * channels + channel, pixel < pixels && channel < width);
            }
        }
    };
#pragma unroll
    for (u32 part = 0; part < BIAS_STAGES - 1; part++) {
        if (part < parts) bring(part);
        end_copies();
    }
    float sum = 0.0f;
    for (u32 part = 0; part < parts; part++) {
        wait_for_copies<BIAS_STAGES - 2>();
        __syncthreads();
        if (part + BIAS_STAGES - 1 < parts) bring(part + BIAS_STAGES - 1);
        end_copies();
        if (threadIdx.x < BIAS_CHANNELS) {
            const float *from = room + part % BIAS_STAGES * BIAS_PART + threadIdx.x;
            const u32 left = pixels - part * BIAS_PIXELS;
            if (left >= BIAS_PIXELS) {
#pragma unroll 16
                for (u32 pixel = 0; pixel < BIAS_PIXELS; pixel++) sum += from[pixel * BIAS_CHANNELS];
            } else {
                for (u32 pixel = 0; pixel < left; pixel++) sum += from[pixel * BIAS_CHANNELS];
            }
        }
    }
    if (threadIdx.x < width) a.to[image * a.stride + first + threadIdx.x] = sum;
}

// Adds up the images of a lane, for one channel.
DEVICE void sum_images(const BiasSums &a, u32 i) {
    const u32 channels = a.channels.by, lane = i / a.channels, channel = i % a.channels;
    if (lane >= a.lanes) return;
    float sum = 0.0f;
    const u32 end = a.lane_rows[lane + 1];
#pragma unroll 8
    for (u32 image = a.lane_rows[lane]; image < end; image++) sum += a.images[(u64)image * channels + channel];
    a.to[lane * a.stride + channel] = sum;
}
