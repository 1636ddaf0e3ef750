// Windows that slide over images, as lockstep-nn's `window.rs` has them: which pixels a window covers, and which windows
// cover a pixel. A margin around the image belongs to windows, but has no pixels.
#pragma once
#include "lockstep.cuh"

// Windows along one axis.
struct Axis {
    // Pixels of the image, and windows.
    u32 input;
    u32 output;
    u32 kernel;
    Divisor stride;
    u32 padding;
};

// From a first number to one past the last.
struct Range {
    u32 begin;
    u32 end;
};

// The pixels that a window covers.
DEVICE Range pixels_of(const Axis &a, u32 window) {
    const u32 begin = window * a.stride.by, end = min(begin + a.kernel, a.input + a.padding);
    return {begin < a.padding ? 0 : begin - a.padding, end < a.padding ? 0 : end - a.padding};
}

// The windows that cover a pixel.
DEVICE Range windows_of(const Axis &a, u32 pixel) {
    const u32 at = pixel + a.padding, beyond = at + 1 < a.kernel ? 0 : at + 1 - a.kernel;
    return {(beyond + a.stride.by - 1) / a.stride, min(at / a.stride + 1, a.output)};
}

// Where in a window a pixel lies that it covers.
DEVICE u32 place_in(const Axis &a, u32 window, u32 pixel) { return pixel + a.padding - window * a.stride.by; }

// Some channels of a pixel of an image.
struct PixelPlace {
    u32 image;
    u32 row;
    u32 column;
    u32 channel;
};

// How groups of channels, which are as many as a thread has, lie on images: channels innermost.
struct Pixels {
    Divisor groups;
    Divisor width;
    Divisor height;
};

// Where group i of all images lies. A group has N channels.
template <u32 N>
DEVICE PixelPlace pixel_place(const Pixels &p, u32 i) {
    const u32 pixel = i / p.groups, line = pixel / p.width;
    return {line / p.height, line % p.height, pixel % p.width, i % p.groups * N};
}

// Reads N numbers side by side, 1 or 4.
template <u32 N>
DEVICE void read(const float *from, float (&to)[N]) {
    if constexpr (N == 4) {
        const float4 four = *(const float4 *)from;
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
        to[0] = *from;
    }
}

// Writes them.
template <u32 N>
DEVICE void write(const float (&from)[N], float *to) {
    if constexpr (N == 4) *(float4 *)to = make_float4(from[0], from[1], from[2], from[3]);
    else *to = from[0];
}
