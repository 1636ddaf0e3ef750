// Outputs of dense layers and convolutions in fixed point, and their gradients by the input. Both are products of images, of
// which a row is what a window sees, and of weights. A dense layer is a convolution of images of one pixel.
#include "fixed16.cuh"
#include "pointwise.cuh"

struct Fixed16Product {
    // Slices of images, pixel by pixel, and the scale of each.
    u8 *upper;
    u8 *lower;
    Fixed16Scale *scales;
    // For every column the depth at every place of the kernel.
    u8 *right_upper;
    u8 *right_lower;
    Fixed16Scale *right_scale;
    float *bias;
    // What the layer had as its input, and what is computed.
    float *x;
    float *to;
    u32 images;
    // Of an image that is sliced, and of one that is computed.
    u32 height;
    u32 width;
    u32 height_to;
    u32 width_to;
    u32 columns;
    u32 kernel[2];
    u32 stride[2];
    u32 padding[2];
    // Of a pixel's slice.
    u32 pieces;
    Divisor across;
    // What is to be 0 afterwards.
    u32 *zeroed;
    u32 zeros;
    Pointwise pointwise;
};

// One axis: the pixels `first_to`, `first_to + step_to` and so on of what is computed. Pixel i sees, through place
// `place + t * places_step` of the kernel, pixel `first + i * step` and t times `direction` of what is sliced.
struct Axis {
    u32 first_to, step_to, count;
    u32 place, place_step, places;
    int first, step, direction;
};

// Of an output: all its pixels, through all places.
DEVICE Axis forward_axis(u32 count, u32 kernel, u32 stride, u32 padding) {
    return {0, 1, count, 0, 1, kernel, -(int)padding, (int)stride, 1};
}

// Of the gradient by an input. Pixels that lie alike to the windows' steps are seen through the same places: they are a class,
// of which there are as many as there are pixels from one window to the next.
DEVICE Axis backward_axis(u32 number, u32 pixels, u32 kernel, u32 stride, u32 padding) {
    const u32 place = (number + padding) % stride;
    return {number, stride, number < pixels ? (pixels - number + stride - 1) / stride : 0,
            place,  stride, place < kernel ? (kernel - place + stride - 1) / stride : 0,
            (int)((number + padding - place) / stride), 1, -1};
}

constexpr u32 STAGES = 3;
// A thread copies one piece of each of these rows.
constexpr u32 ROWS_EACH = FIXED16_ROWS * PART / FIXED16_THREADS, COLUMNS_EACH = FIXED16_COLUMNS * PART / FIXED16_THREADS;
constexpr u32 STEP = FIXED16_THREADS / PART;
// A line of finished numbers in shared memory.
constexpr u32 DONE_LINE = FIXED16_COLUMNS + 4;
// Where no pixel is, wherever a window is moved to from there.
constexpr int NOWHERE = -0x40000000;

template <bool BACK>
DEVICE void product(const Fixed16Product &a) {
    SHARED_ROOM(shared);
    u8 *room = (u8 *)shared;
    const u32 class_down = BACK ? blockIdx.z / a.stride[1] : 0, class_across = BACK ? blockIdx.z % a.stride[1] : 0;
    const Axis down = BACK ? backward_axis(class_down, a.height_to, a.kernel[0], a.stride[0], a.padding[0])
                           : forward_axis(a.height_to, a.kernel[0], a.stride[0], a.padding[0]);
    const Axis across = BACK ? backward_axis(class_across, a.width_to, a.kernel[1], a.stride[1], a.padding[1])
                             : forward_axis(a.width_to, a.kernel[1], a.stride[1], a.padding[1]);
    if (blockIdx.x == 0 && blockIdx.z == 0) {
        for (u32 i = threadIdx.x; i < a.zeros; i += FIXED16_THREADS) a.zeroed[i] = 0;
    }
    const u32 of_image = down.count * across.count, rows = a.images * of_image;
    const u32 left = blockIdx.x % a.across * FIXED16_COLUMNS, top = blockIdx.x / a.across * FIXED16_ROWS;
    if (top >= rows) return;
    // Where the windows of this thread's rows begin.
    int y[ROWS_EACH], x[ROWS_EACH];
    u32 image[ROWS_EACH];
    const u32 line = threadIdx.x / PART, piece_of_part = threadIdx.x % PART;
#pragma unroll
    for (u32 i = 0; i < ROWS_EACH; i++) {
        const u32 row = top + line + i * STEP, number = row / of_image, pixel = row % of_image;
        image[i] = number * a.height * a.width;
        y[i] = row < rows ? (int)(pixel / across.count) * down.step + down.first : NOWHERE;
        x[i] = (int)(pixel % across.count) * across.step + across.first;
    }
    // The piece of the depth that this thread copies next.
    u32 place_y = 0, place_x = 0, piece = piece_of_part;
    auto normalise = [&]() {
        while (piece >= a.pieces) {
            piece -= a.pieces;
            if (++place_x < across.places) continue;
            place_x = 0;
            if (++place_y >= down.places) return;
        }
    };
    const u32 pieces = down.places * across.places * a.pieces;
    if (pieces > 0) normalise();
    auto bring = [&](u8 *stage) {
        const bool is_there = place_y < down.places;
        const int far_y = down.direction * (int)place_y, far_x = across.direction * (int)place_x;
#pragma unroll
        for (u32 i = 0; i < ROWS_EACH; i++) {
            const int at_y = y[i] + far_y, at_x = x[i] + far_x;
            const bool is_inside = is_there & ((u32)at_y < a.height) & ((u32)at_x < a.width);
            const u64 at = is_inside ? ((u64)(image[i] + at_y * a.width + at_x) * a.pieces + piece) * PIECE : 0;
            const u32 to = (line + i * STEP) * DepthLines::LINE + piece_of_part * PIECE;
            copy_piece(stage + to, a.upper + at, is_inside);
            copy_piece(stage + DepthLines::LEFT + to, a.lower + at, is_inside);
        }
        const u32 place = (down.place + place_y * down.place_step) * a.kernel[1] + across.place + place_x * across.place_step;
        u8 *right = stage + 2 * DepthLines::LEFT;
#pragma unroll
        for (u32 i = 0; i < COLUMNS_EACH; i++) {
            const u32 column = left + line + i * STEP;
            const bool is_inside = is_there & (column < a.columns);
            const u64 at = is_inside ? (((u64)column * a.kernel[0] * a.kernel[1] + place) * a.pieces + piece) * PIECE : 0;
            const u32 to = (line + i * STEP) * DepthLines::LINE + piece_of_part * PIECE;
            copy_piece(right + to, a.right_upper + at, is_inside);
            copy_piece(right + DepthLines::RIGHT + to, a.right_lower + at, is_inside);
        }
        piece += PART;
        normalise();
    };
    Fixed16Sums sums;
    go_through_parts<DepthLines, STAGES>(sums, room, (pieces + PART - 1) / PART, bring);
    __syncthreads();
    const WarpPlace own = WarpPlace::own();
#pragma unroll
    for (u32 i = 0; i < TALL; i++) {
#pragma unroll
        for (u32 j = 0; j < BROAD; j++) {
#pragma unroll
            for (u32 k = 0; k < 4; k += 2) {
                float *to = shared + DepthLines::row(own, i, k) * DONE_LINE + DepthLines::column(own, j, k);
                *(float2 *)to = make_float2(__ll2float_rn(sums.sum(i, j, k)), __ll2float_rn(sums.sum(i, j, k + 1)));
            }
        }
    }
    __syncthreads();
    const float right_factor = a.right_scale->factor;
    constexpr u32 FOURS = FIXED16_COLUMNS / 4;
    const u32 column = threadIdx.x % FOURS * 4, first = left + column;
    if (first >= a.columns) return;
    float bias[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (u32 k = 0; k < 4 && a.bias; k++) bias[k] = first + k < a.columns ? a.bias[first + k] : 0.0f;
#pragma unroll 1
    for (u32 line = threadIdx.x / FOURS; line < FIXED16_ROWS; line += FIXED16_THREADS / FOURS) {
        const u32 row = top + line;
        if (row >= rows) return;
        const u32 number = row / of_image, pixel = row % of_image;
        const u32 to_y = down.first_to + pixel / across.count * down.step_to;
        const u32 to_x = across.first_to + pixel % across.count * across.step_to;
        const float factor = a.scales[number].factor;
        const float4 sum = *(const float4 *)(shared + line * DONE_LINE + column);
        float four[4] = {sum.x, sum.y, sum.z, sum.w};
        const u32 feature = (to_y * a.width_to + to_x) * a.columns + first;
        const u64 at = (u64)number * a.height_to * a.width_to * a.columns + feature;
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            four[k] = four[k] * factor * right_factor;
            if (!BACK && a.bias) four[k] += bias[k];
        }
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            if (a.pointwise.count == 0 || first + k >= a.columns) continue;
            four[k] = BACK ? pointwise_gradient(a.pointwise, a.x[at + k], four[k], number, feature + k)
                           : pointwise(a.pointwise, four[k], number, feature + k);
        }
        if (a.columns % 4 == 0) {
            *(float4 *)(a.to + at) = make_float4(four[0], four[1], four[2], four[3]);
        } else {
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                if (first + k < a.columns) a.to[at + k] = four[k];
            }
        }
    }
}

KERNEL_BESIDE(fixed16_forward, FIXED16_THREADS, 2, Fixed16Product) { product<false>(a); }
KERNEL_BESIDE(fixed16_input_gradient, FIXED16_THREADS, 2, Fixed16Product) { product<true>(a); }
