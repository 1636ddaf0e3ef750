// Images of a data set that lies in the device's memory, as a network sees them in a step: parts of them, mirrored, turned,
// scaled, in other colours, normalised, and mixed with others. How each is seen, the host says; what it comes to has the bits
// of the processor.
#include "lockstep.cuh"

constexpr u32 THREADS = 256;

// How an image is seen.
struct SeenImage {
    // Whether it is interpolated. Without, it is a part of the image as it is, which begins with this row and column.
    u32 is_mapped;
    u32 flip;
    u32 top;
    u32 left;
    // The place in the image of the middle of what is seen, and how it moves for a pixel to the right, and for one down.
    float middle[2];
    float right[2];
    float down[2];
    float brightness;
    float contrast;
    float saturation;
    // Rows and columns that are blotted out: first ones, and those after the last.
    u32 erased_rows[2];
    u32 erased_columns[2];
};

struct SeeImages {
    // The images: bytes, or else numbers.
    u8 *bytes;
    float *numbers;
    u32 *samples;
    SeenImage *seen;
    float *x;
    u32 channels;
    u32 height;
    u32 width;
    Divisor line;
    // Of each channel what is subtracted and divided by, and the most that a value may become.
    float shift[4];
    float scale[4];
    float most;
};

// With what the image of a row is mixed.
struct MixedImage {
    u32 sample;
    // Its share of each value; or whether it lies over the image instead, and which rows and columns show it then.
    float share;
    u32 is_over;
    u32 rows[2];
    u32 columns[2];
    SeenImage seen;
};

struct MixImages {
    SeeImages images;
    MixedImage *mixed;
};

// A pixel of at most 4 channels.
struct Pixel {
    float values[4];
};

DEVICE float stored(const SeeImages &a, u64 at) { return a.bytes ? (float)a.bytes[at] : a.numbers[at]; }

DEVICE float clamped(float x, float least, float most) {
    if (x < least) x = least;
    if (x > most) x = most;
    return x;
}

// How bright a pixel is; without three colours, the mean.
DEVICE float grey(const SeeImages &a, const Pixel &pixel) {
    if (a.channels == 3) return 0.299f * pixel.values[0] + 0.587f * pixel.values[1] + 0.114f * pixel.values[2];
    float sum = -0.0f;
#pragma unroll
    for (u32 c = 0; c < 4; c++) {
        if (c < a.channels) sum += pixel.values[c];
    }
    return sum / (float)a.channels;
}

DEVICE float normalised(const SeeImages &a, const Pixel &pixel, u32 c) {
    return (pixel.values[c] - a.shift[c]) / a.scale[c];
}

DEVICE bool is_within(const u32 rows[2], const u32 columns[2], u32 row, u32 column) {
    return (row >= rows[0]) & (row < rows[1]) & (column >= columns[0]) & (column < columns[1]);
}

DEVICE Pixel black() { return {{0.0f, 0.0f, 0.0f, 0.0f}}; }

// A pixel of a part of the image as it is; black outside.
DEVICE Pixel part_of(const SeeImages &a, const SeenImage &seen, u64 image, u32 row, u32 column) {
    const u32 y = row + seen.top, x = (seen.flip ? a.width - 1 - column : column) + seen.left;
    Pixel pixel = black();
    if (y >= a.height || x >= a.width) return pixel;
    const u64 at = image + ((u64)y * a.width + x) * a.channels;
#pragma unroll
    for (u32 c = 0; c < 4; c++) {
        if (c < a.channels) pixel.values[c] = stored(a, at + c);
    }
    return pixel;
}

// The two pixels beside a place along one axis, the same one at an edge, and how near it is to the second.
struct Beside {
    u32 first;
    u32 second;
    float share;
};

DEVICE Beside beside(float place, u32 whole) {
    place = clamped(place - 0.5f, 0.0f, (float)(whole - 1));
    const u32 first = (u32)place;
    return {first, min(first + 1, whole - 1), place - (float)first};
}

// The image at the place that a pixel shows, brighter or darker; black outside.
DEVICE Pixel mapped(const SeeImages &a, const SeenImage &seen, u64 image, u32 row, u32 column) {
    const float dy = (float)row + 0.5f - (float)a.height / 2.0f, dx = (float)column + 0.5f - (float)a.width / 2.0f;
    const float x = seen.middle[0] + dx * seen.right[0] + dy * seen.down[0];
    const float y = seen.middle[1] + dx * seen.right[1] + dy * seen.down[1];
    Pixel pixel = black();
    if (x >= 0.0f && x <= (float)a.width && y >= 0.0f && y <= (float)a.height) {
        const Beside across = beside(x, a.width), down = beside(y, a.height);
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            if (c >= a.channels) continue;
            auto at = [&](u32 y, u32 x) { return stored(a, image + ((u64)y * a.width + x) * a.channels + c); };
            const float left_above = at(down.first, across.first), left_below = at(down.second, across.first);
            const float above = left_above + across.share * (at(down.first, across.second) - left_above);
            const float below = left_below + across.share * (at(down.second, across.second) - left_below);
            pixel.values[c] = above + down.share * (below - above);
        }
    }
    if (seen.brightness != 1.0f) {
#pragma unroll
        for (u32 c = 0; c < 4; c++) pixel.values[c] = fminf(pixel.values[c] * seen.brightness, a.most);
    }
    return pixel;
}

// Contrast about the mean grey of the image, then saturation about the pixel's grey, and what is blotted out.
DEVICE Pixel coloured(const SeeImages &a, const SeenImage &seen, Pixel pixel, float mean, u32 row, u32 column) {
    if (seen.contrast != 1.0f) {
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            pixel.values[c] = clamped(mean + seen.contrast * (pixel.values[c] - mean), 0.0f, a.most);
        }
    }
    if (seen.saturation != 1.0f) {
        const float own = grey(a, pixel);
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            pixel.values[c] = clamped(own + seen.saturation * (pixel.values[c] - own), 0.0f, a.most);
        }
    }
    return is_within(seen.erased_rows, seen.erased_columns, row, column) ? black() : pixel;
}

// The mean grey of an image, added up pixel by pixel in their order: one thread adds what all have found. Pixels are kept in x,
// if it is there.
DEVICE float mean_grey(const SeeImages &a, const SeenImage &seen, u64 image, float *x) {
    __shared__ float greys[THREADS];
    __shared__ float mean;
    const u32 pixels = a.height * a.width;
    double sum = -0.0;
    for (u32 first = 0; first < pixels; first += THREADS) {
        const u32 i = first + threadIdx.x;
        if (i < pixels) {
            const Pixel pixel = mapped(a, seen, image, i / a.line, i % a.line);
            greys[threadIdx.x] = grey(a, pixel);
#pragma unroll
            for (u32 c = 0; c < 4; c++) {
                if (x && c < a.channels) x[(u64)i * a.channels + c] = pixel.values[c];
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
#pragma unroll 8
            for (u32 k = 0; k < min(THREADS, pixels - first); k++) sum += (double)greys[k];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) mean = (float)(sum / (double)pixels);
    __syncthreads();
    return mean;
}

DEVICE bool has_contrast(const SeenImage &seen) { return seen.is_mapped && seen.contrast != 1.0f; }

// A pixel as it is seen, before it is normalised.
DEVICE Pixel seen_pixel(const SeeImages &a, const SeenImage &seen, u64 image, float mean, u32 row, u32 column) {
    if (!seen.is_mapped) return part_of(a, seen, image, row, column);
    return coloured(a, seen, mapped(a, seen, image, row, column), mean, row, column);
}

// The first direction of the grid has a row of the batch, the second parts of its image; there is one part where contrast changes.
KERNEL(see_images, THREADS, SeeImages) {
    const u32 pixels = a.height * a.width;
    const SeenImage &seen = a.seen[blockIdx.x];
    const u64 len = (u64)pixels * a.channels, image = a.samples[blockIdx.x] * len;
    float *x = a.x + blockIdx.x * len;
    const bool is_contrast = has_contrast(seen);
    const float mean = is_contrast ? mean_grey(a, seen, image, x) : 0.0f;
    for (u32 i = blockIdx.y * THREADS + threadIdx.x; i < pixels; i += gridDim.y * THREADS) {
        const u32 row = i / a.line, column = i % a.line;
        float *to = x + (u64)i * a.channels;
        Pixel pixel;
        if (!is_contrast) {
            pixel = seen_pixel(a, seen, image, mean, row, column);
        } else {
            pixel = black();
#pragma unroll
            for (u32 c = 0; c < 4; c++) {
                if (c < a.channels) pixel.values[c] = to[c];
            }
            pixel = coloured(a, seen, pixel, mean, row, column);
        }
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            if (c < a.channels) to[c] = normalised(a, pixel, c);
        }
    }
}

// Mixes what see_images has written with the other image of each row.
KERNEL(mix_images, THREADS, MixImages) {
    const SeeImages &images = a.images;
    const u32 pixels = images.height * images.width;
    const MixedImage &mixed = a.mixed[blockIdx.x];
    const u64 len = (u64)pixels * images.channels, other = mixed.sample * len;
    float *x = images.x + blockIdx.x * len;
    const float mean = has_contrast(mixed.seen) ? mean_grey(images, mixed.seen, other, nullptr) : 0.0f;
    for (u32 i = blockIdx.y * THREADS + threadIdx.x; i < pixels; i += gridDim.y * THREADS) {
        const u32 row = i / images.line, column = i % images.line;
        if (mixed.is_over && !is_within(mixed.rows, mixed.columns, row, column)) continue;
        const Pixel pixel = seen_pixel(images, mixed.seen, other, mean, row, column);
        float *to = x + (u64)i * images.channels;
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            if (c >= images.channels) continue;
            const float value = normalised(images, pixel, c);
            to[c] = mixed.is_over ? value : to[c] + mixed.share * (value - to[c]);
        }
    }
}
