// What comes before products in fixed point: the largest magnitudes of their operands, and the slices of them.
#include "fixed16.cuh"

constexpr u32 THREADS = 128;

// Numbers, of which those of a group of rows have a largest magnitude.
struct LargestTask {
    float *from;
    // For every group. It was 0 before.
    u32 *largest;
    // The first row of every group, and where the last one ends; without it every row is one.
    u32 *lane_rows;
    // Numbers of a row, and blocks of a group.
    u64 width;
    Divisor parts;
    u32 blocks;
};

DEVICE u32 larger(u32 largest, float x) { return max(largest, __float_as_uint(x) & 0x7fffffffu); }

DEVICE void find_largest(const LargestTask &a, u32 block) {
    const u32 group = block / a.parts, part = block % a.parts;
    const u32 first_row = a.lane_rows ? a.lane_rows[group] : group, end_row = a.lane_rows ? a.lane_rows[group + 1] : group + 1;
    const u64 numbers = (end_row - first_row) * a.width;
    const u64 each = (numbers / a.parts.by / 4 + 1) * 4, begin = part * each;
    const u64 end = begin + each < numbers ? begin + each : numbers;
    const float *from = a.from + first_row * a.width;
    u32 largest = 0;
    u64 i = begin + threadIdx.x;
    if ((u64)from % 16 == 0) {
        i = begin + 4 * threadIdx.x;
        for (; i + 4 * 3 * THREADS + 4 <= end; i += 4 * 4 * THREADS) {
            float4 x[4];
#pragma unroll
            for (u32 k = 0; k < 4; k++) x[k] = *(const float4 *)(from + i + 4 * k * THREADS);
#pragma unroll
            for (u32 k = 0; k < 4; k++) largest = larger(larger(larger(larger(largest, x[k].x), x[k].y), x[k].z), x[k].w);
        }
        for (; i + 4 <= end; i += 4 * THREADS) {
            const float4 x = *(const float4 *)(from + i);
            largest = larger(larger(larger(larger(largest, x.x), x.y), x.z), x.w);
        }
        i = end / 4 * 4 < begin ? end : end / 4 * 4 + threadIdx.x;
    }
    for (; i < end; i += THREADS) largest = larger(largest, from[i]);
#pragma unroll
    for (u32 far = WARP / 2; far > 0; far /= 2) largest = max(largest, __shfl_xor_sync(ALL, largest, far));
    if (threadIdx.x % WARP == 0) atomicMax(a.largest + group, largest);
}

struct Fixed16Begin {
    LargestTask rows;
    LargestTask weights;
    // What is to be 0 afterwards.
    u32 *zeroed;
    u32 zeros;
};

KERNEL(fixed16_begin, THREADS, Fixed16Begin) {
    if (blockIdx.x == 0) {
        for (u32 i = threadIdx.x; i < a.zeros; i += THREADS) a.zeroed[i] = 0;
    }
    if (blockIdx.x < a.rows.blocks) return find_largest(a.rows, blockIdx.x);
    find_largest(a.weights, blockIdx.x - a.rows.blocks);
}

// Rows of pixels, sliced as they lie. The channels of a pixel are filled up to whole pieces.
struct SlicedRows {
    float *from;
    u32 *largest;
    // The first row of every lane whose rows have a scale in common; without lanes every row has its own.
    u32 *lane_rows;
    u32 lanes;
    u8 *upper;
    u8 *lower;
    // For every row.
    Fixed16Scale *scales;
    u32 channels;
    // Words of a pixel's slice, and of a row's.
    Divisor pixel;
    Divisor row;
    u32 words;
    u32 blocks;
};

constexpr u32 WORDS_EACH = 4;

DEVICE void slice_rows(const SlicedRows &a, u32 block) {
    const bool in_fours = a.channels % 4 == 0;
#pragma unroll
    for (u32 k = 0; k < WORDS_EACH; k++) {
        const u32 word = block * THREADS * WORDS_EACH + k * THREADS + threadIdx.x;
        if (word >= a.words) return;
        const u32 row = word / a.row, pixel = word / a.pixel, channel = (word - pixel * a.pixel.by) * 4;
        u32 group = a.lanes ? 0 : row;
        while (group + 1 < a.lanes && row >= a.lane_rows[group + 1]) group++;
        const Fixed16Scale scale = scale_of(a.largest[group]);
        if (word == row * a.row.by) a.scales[row] = scale;
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        const float *from = a.from + (u64)pixel * a.channels + channel;
        if (in_fours) {
            if (channel < a.channels) {
                const float4 four = *(const float4 *)from;
                x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
            }
        } else {
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                if (channel + j < a.channels) x[j] = from[j];
            }
        }
        const SlicedFour four = slice_four(x, scale.by);
        ((u32 *)a.upper)[word] = four.upper;
        ((u32 *)a.lower)[word] = four.lower;
    }
}

// Weights: for every column of a product the depth, filled up to whole pieces at every place of the kernel. If a word is a
// place, because inputs have few channels, lines of the kernel are filled up to whole pieces.
struct SlicedWeights {
    // A row for every input at every place, in panels of columns.
    float *from;
    // Their largest magnitude, of which the scale is made; without it, that is there.
    u32 *largest;
    Fixed16Scale *scale;
    u8 *upper;
    u8 *lower;
    u32 inputs;
    Divisor outputs;
    // Of the kernel and of its lines, filled up; and of its lines as they are.
    Divisor places;
    Divisor across;
    u32 width;
    // Rows of the matrix, and columns that lie together.
    u32 rows;
    Divisor panel;
    // Whether the depth is the outputs. Else it is the inputs.
    u32 turned;
    // Words of a place's slice.
    Divisor words_of_place;
    u32 words;
    u32 blocks;
};

DEVICE float weight(const SlicedWeights &a, u32 place, u32 input, u32 output) {
    const u32 across = place % a.across, outputs = a.outputs.by;
    if (across >= a.width || input >= a.inputs || output >= outputs) return 0.0f;
    const u32 row = (place / a.across * a.width + across) * a.inputs + input, left = output / a.panel * a.panel.by;
    const u32 width = outputs - left < a.panel.by ? outputs - left : a.panel.by;
    return a.from[(u64)left * a.rows + (u64)row * width + output - left];
}

DEVICE void slice_weights(const SlicedWeights &a, u32 block) {
    const Fixed16Scale scale = a.largest ? scale_of(*a.largest) : *a.scale;
    if (a.largest && block == 0 && threadIdx.x == 0) *a.scale = scale;
    const u32 i = block * THREADS + threadIdx.x;
    if (i >= a.words) return;
    float x[4];
    u32 at;
    if (a.turned) {
        // Neighbours are outputs, side by side in both.
        const u32 line = i / a.words_of_place, output = (i - line * a.words_of_place.by) * 4;
        const u32 input = line / a.places, place = line % a.places;
#pragma unroll
        for (u32 k = 0; k < 4; k++) x[k] = weight(a, place, input, output + k);
        at = i;
    } else {
        const u32 line = i / a.outputs, output = i % a.outputs;
        const u32 place = line / a.words_of_place, word = line % a.words_of_place;
#pragma unroll
        for (u32 k = 0; k < 4; k++) x[k] = weight(a, place, word * 4 + k, output);
        at = (output * a.places.by + place) * a.words_of_place.by + word;
    }
    const SlicedFour four = slice_four(x, scale.by);
    ((u32 *)a.upper)[at] = four.upper;
    ((u32 *)a.lower)[at] = four.lower;
}

struct Fixed16Slice {
    SlicedRows rows;
    SlicedWeights weights;
};

KERNEL(fixed16_slice, THREADS, Fixed16Slice) {
    if (blockIdx.x < a.rows.blocks) return slice_rows(a.rows, blockIdx.x);
    slice_weights(a.weights, blockIdx.x - a.rows.blocks);
}
