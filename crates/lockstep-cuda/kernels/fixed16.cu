// Outputs of dense layers and convolutions in fixed point, and their gradients by the input. Both are products of images, of
// which a row is what a window sees, and of weights. A dense layer is a convolution of images of one pixel.
#include "fixed16.cuh"
#include "numbers.cuh"
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
    // The pieces of the depth that are multiplied now. A depth that sums of 32 bits cannot hold is gone through in several
    // launches, and the totals of all sums are kept until the last of them.
    u32 first_piece;
    u32 end_piece;
    u64 *totals;
    // Of a class of pixels.
    u64 totals_of_class;
    u32 is_last;
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

// Where no pixel is, wherever a window is moved to from there.
constexpr int NOWHERE = -0x40000000;

// Where the rows of a tile go, and what their sums are multiplied by.
template <class T>
struct DoneRows {
    float factor[T::ROWS];
    u32 number[T::ROWS];
    u32 pixel[T::ROWS];
};

// Numbers of a line of finished sums in shared memory.
template <class T>
constexpr u32 DONE_LINE = T::COLUMNS + 4;

// Makes outputs or gradients of the sums in shared memory, W neighbours of some rows at a time.
template <class T, bool BACK, u32 W>
DEVICE void finish(const Fixed16Product &a, const float *sums, const DoneRows<T> &done, u32 left, u32 count) {
    constexpr u32 ACROSS = T::COLUMNS / W, STEP = T::THREADS / ACROSS, MANY = 4;
    const u32 column = threadIdx.x % ACROSS * W, first = left + column, of_image = a.height_to * a.width_to * a.columns;
    if (first >= a.columns) return;
    const Pointwise &p = a.pointwise;
    const float right_factor = a.right_scale->factor;
    const u64 step = p.has_dropout ? p.progress->step : 0;
    Numbers<W> bias = {};
    if (!BACK && a.bias) bias = read_one_by_one<W>(a.bias + first);
    const bool reads = BACK && p.has_relu;
#pragma unroll 1
    for (u32 from = threadIdx.x / ACROSS; from < count; from += MANY * STEP) {
        float numbers[MANY][W];
        u32 kept = ALL;
        float *to[MANY];
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            const u32 line = from + k * STEP, number = done.number[line % T::ROWS];
            const u32 feature = done.pixel[line % T::ROWS] * a.columns + first;
            const u64 at = (u64)number * of_image + feature;
            const bool is_inside = line < count;
            to[k] = is_inside ? a.to + at : nullptr;
            Numbers<W> x = {};
            if (reads && is_inside) x = read<W>(a.x + at);
            const float factor = done.factor[line % T::ROWS];
#pragma unroll
            for (u32 j = 0; j < W; j++) {
                numbers[k][j] = sums[line % T::ROWS * DONE_LINE<T> + column + j] * factor * right_factor;
                if (!BACK && a.bias) numbers[k][j] += bias.of[j];
                if (reads && x.of[j] == 0.0f) kept &= ~(1u << (k * W + j));
            }
            if (p.has_dropout && !reads && is_inside) {
                kept &= ~(~kept_neighbours<W>(p, step, p.samples[number], feature) % (1u << W) << (k * W));
            }
        }
        if (BACK) pointwise_gradient_all(p, numbers, kept);
        else pointwise_all(p, numbers, kept);
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            Numbers<W> made;
#pragma unroll
            for (u32 j = 0; j < W; j++) made.of[j] = numbers[k][j];
            if (to[k]) write<W>(to[k], made);
        }
    }
}

// Adds what earlier launches came to to the sums of two neighbouring columns, and keeps that if it is not all.
DEVICE void add_totals(const Fixed16Product &a, long long (&two)[2], u32 row, u32 rows, u32 column) {
#pragma unroll
    for (u32 k = 0; k < 2; k++) {
        if (row >= rows || column + k >= a.columns) continue;
        u64 *total = a.totals + blockIdx.z * a.totals_of_class + (u64)row * a.columns + column + k;
        if (a.first_piece > 0) two[k] += (long long)*total;
        if (!a.is_last) *total = (u64)two[k];
    }
}

// Where the window of a row begins: in its image, and where that begins among all pixels.
struct __align__(16) WindowPlace {
    int y;
    int x;
    u32 image;
    u32 unused;
};

// NARROW images have up to four channels, which are a word of a slice. Then a piece has four neighbouring pixels, and a place
// of the kernel is as many of its own.
template <class T, bool BACK, bool NARROW>
DEVICE void product(const Fixed16Product &a) {
    SHARED_MATRICES(shared);
    u8 *room = (u8 *)shared;
    typedef DepthLines<T> Lines;
    // A thread copies one piece of each of so many rows and columns.
    constexpr u32 STEP = T::THREADS / PART, ROWS_EACH = T::ROWS / STEP, COLUMNS_EACH = T::COLUMNS / STEP;
    WindowPlace *windows = (WindowPlace *)(room + T::STAGES * Lines::ROOM);
    DoneRows<T> &done = *(DoneRows<T> *)(windows + T::ROWS);
    const u32 class_down = BACK ? blockIdx.z / a.stride[1] : 0, class_across = BACK ? blockIdx.z % a.stride[1] : 0;
    const Axis down = BACK ? backward_axis(class_down, a.height_to, a.kernel[0], a.stride[0], a.padding[0])
                           : forward_axis(a.height_to, a.kernel[0], a.stride[0], a.padding[0]);
    const Axis across = BACK ? backward_axis(class_across, a.width_to, a.kernel[1], a.stride[1], a.padding[1])
                             : forward_axis(a.width_to, a.kernel[1], a.stride[1], a.padding[1]);
    if (blockIdx.x == 0 && blockIdx.z == 0) {
        for (u32 i = threadIdx.x; i < a.zeros; i += T::THREADS) a.zeroed[i] = 0;
    }
    const u32 of_image = down.count * across.count, rows = a.images * of_image;
    const u32 left = blockIdx.x % a.across * T::COLUMNS, top = blockIdx.x / a.across * T::ROWS;
    if (top >= rows) return;
    if (threadIdx.x < T::ROWS) {
        const u32 row = top + threadIdx.x, number = row / of_image, pixel = row % of_image;
        const u32 y = pixel / across.count, x = pixel % across.count;
        windows[threadIdx.x] = {row < rows ? (int)y * down.step + down.first : NOWHERE, (int)x * across.step + across.first,
                                number * a.height * a.width, 0};
        done.factor[threadIdx.x] = row < rows ? a.scales[number].factor : 0.0f;
        done.number[threadIdx.x] = number;
        done.pixel[threadIdx.x] = (down.first_to + y * down.step_to) * a.width_to + across.first_to + x * across.step_to;
    }
    __syncthreads();
    // The piece of the depth that this thread copies next.
    const u32 line = threadIdx.x / PART, to = Lines::place(line, threadIdx.x % PART * PIECE);
    static_assert(STEP % 8 == 0, "a piece has the same place in all lines of a thread");
    const u32 places_across = NARROW ? (a.kernel[1] + 3) / 4 : a.kernel[1], places = NARROW ? places_across : across.places;
    u32 place_y = 0, place_x = 0, piece = a.first_piece + threadIdx.x % PART;
    auto normalise = [&]() {
        while (piece >= a.pieces) {
            piece -= a.pieces;
            if (++place_x < places) continue;
            place_x = 0;
            if (++place_y >= down.places) return;
        }
    };
    const u32 all = down.places * places * a.pieces, end = all < a.end_piece ? all : a.end_piece;
    const u32 pieces = a.first_piece < end ? end - a.first_piece : 0;
    if (pieces > 0) normalise();
    auto bring = [&](u8 *stage) {
        const bool is_there = place_y < down.places;
        const int far_y = down.direction * (int)place_y, far_x = across.direction * (int)place_x * (NARROW ? 4 : 1);
#pragma unroll
        for (u32 i = 0; i < ROWS_EACH; i++) {
            const WindowPlace window = windows[line + i * STEP];
            const int at_y = window.y + far_y, at_x = window.x + far_x;
            const bool is_line = is_there & ((u32)at_y < a.height);
            u8 *piece_to = stage + to + i * STEP * Lines::LINE;
            const u32 pixel = window.image + at_y * a.width + at_x;
            if (NARROW) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) {
                    const bool is_inside = is_line & ((u32)at_x + k < a.width);
                    const u64 at = is_inside ? (u64)(pixel + k) * 4 : 0;
                    copy_word(piece_to + 4 * k, a.upper + at, is_inside);
                    copy_word(piece_to + Lines::LEFT + 4 * k, a.lower + at, is_inside);
                }
            } else {
                const bool is_inside = is_line & ((u32)at_x < a.width);
                const u64 at = is_inside ? ((u64)pixel * a.pieces + piece) * PIECE : 0;
                copy_piece_again(piece_to, a.upper + at, is_inside);
                copy_piece_again(piece_to + Lines::LEFT, a.lower + at, is_inside);
            }
        }
        const u32 place = (down.place + place_y * down.place_step) * places_across + across.place + place_x * across.place_step;
        const u32 of_column = a.kernel[0] * places_across;
        u8 *right = stage + 2 * Lines::LEFT + to;
#pragma unroll
        for (u32 i = 0; i < COLUMNS_EACH; i++) {
            const u32 column = left + line + i * STEP;
            const bool is_inside = is_there & (column < a.columns);
            const u64 at = is_inside ? ((u64)(column * of_column + place) * a.pieces + piece) * PIECE : 0;
            copy_piece(right + i * STEP * Lines::LINE, a.right_upper + at, is_inside);
            copy_piece(right + Lines::RIGHT + i * STEP * Lines::LINE, a.right_lower + at, is_inside);
        }
        piece += PART;
        normalise();
    };
    typename Lines::Sums sums;
    go_through_parts<Lines>(sums, room, (pieces + PART - 1) / PART, bring);
#pragma unroll
    for (u32 i = 0; i < Lines::TALL; i++) {
#pragma unroll
        for (u32 j = 0; j < Lines::BROAD; j++) {
#pragma unroll
            for (u32 k = 0; k < 4; k += 2) {
                const u32 row = Lines::row(i, k), column = Lines::column(j, k);
                long long two[2] = {sums.sum(i, j, k), sums.sum(i, j, k + 1)};
                if (a.totals) add_totals(a, two, top + row, rows, left + column);
                float *to = shared + row * DONE_LINE<T> + column;
                *(float2 *)to = make_float2(__ll2float_rn(two[0]), __ll2float_rn(two[1]));
            }
        }
    }
    if (a.totals && !a.is_last) return;
    __syncthreads();
    const u32 count = rows - top < T::ROWS ? rows - top : T::ROWS;
    if (a.columns % 4 == 0) finish<T, BACK, 4>(a, shared, done, left, count);
    else finish<T, BACK, 1>(a, shared, done, left, count);
}

typedef Fixed16Tile<2, 4, 4, 4, 2> LargeTile;
typedef Fixed16Tile<2, 2, 4, 4, 3> MediumTile;
typedef Fixed16Tile<4, 1, 2, 4, 3> TallTile;
typedef Fixed16Tile<2, 2, 2, 2, 3> SmallTile;

#define PRODUCTS(name, BACK, NARROW)                                                                                               \
    KERNEL_BESIDE(name##_large, LargeTile::THREADS, 1, Fixed16Product) { product<LargeTile, BACK, NARROW>(a); }                    \
    KERNEL_BESIDE(name##_medium, MediumTile::THREADS, 2, Fixed16Product) { product<MediumTile, BACK, NARROW>(a); }                 \
    KERNEL_BESIDE(name##_tall, TallTile::THREADS, 3, Fixed16Product) { product<TallTile, BACK, NARROW>(a); }                       \
    KERNEL_BESIDE(name##_small, SmallTile::THREADS, 4, Fixed16Product) { product<SmallTile, BACK, NARROW>(a); }

PRODUCTS(fixed16_forward, false, false)
// Few have images of so few channels: the largest tiles are left out.
KERNEL_BESIDE(fixed16_forward_narrow_medium, MediumTile::THREADS, 2, Fixed16Product) { product<MediumTile, false, true>(a); }
KERNEL_BESIDE(fixed16_forward_narrow_tall, TallTile::THREADS, 3, Fixed16Product) { product<TallTile, false, true>(a); }
PRODUCTS(fixed16_input_gradient, true, false)
