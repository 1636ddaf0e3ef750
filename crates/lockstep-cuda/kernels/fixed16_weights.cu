// The gradient of weights in fixed point: sums over all pixels of a lane's images. A lane is cut into parts, whose sums are added
// up as integers.
#include "bias.cuh"
#include "fixed16.cuh"

constexpr u32 THREADS = 128;

struct Fixed16WeightGradient {
    // Slices of the layer's input and of the gradient by its output, pixel by pixel, and the scale of each image.
    u8 *upper;
    u8 *lower;
    u8 *error_upper;
    u8 *error_lower;
    Fixed16Scale *scales;
    Fixed16Scale *error_scales;
    // Where a lane's gradient goes if it has one part, else where the sums of each part go.
    float *to;
    u64 lane_stride;
    u64 *sums;
    u32 *lane_rows;
    // Pixels of a part.
    u32 part;
    u32 height;
    u32 width;
    // Of an image of errors.
    Divisor width_to;
    Divisor pixels;
    u32 kernel[2];
    u32 stride[2];
    u32 padding[2];
    // Pieces of a pixel's slice, of both. NARROW images have a word; then they are those of a line of the kernel, and have
    // four neighbouring pixels.
    Divisor pieces;
    u32 error_pieces;
    u32 inputs;
    u32 outputs;
    Divisor panel;
    // Tiles across, and all of them; parts of a lane.
    Divisor across;
    Divisor tiles;
    Divisor parts;
    u32 blocks;
    // What else is summed, beside the products.
    ImageSums bias;
};

typedef Fixed16Tile<2, 2, 4, 4, 3> GradientTile;
typedef EdgeLines<GradientTile> Lines;
// Pieces of a line along the edge, and how many lines a thread copies one of.
constexpr u32 LEFT_PIECES = GradientTile::ROWS / PIECE, RIGHT_PIECES = GradientTile::COLUMNS / PIECE;
constexpr u32 LEFT_STEP = GradientTile::THREADS / LEFT_PIECES, RIGHT_STEP = GradientTile::THREADS / RIGHT_PIECES;
// Numbers of a line of sums in shared memory.
constexpr u32 DONE_LINE = GradientTile::COLUMNS + 2;

template <bool NARROW>
DEVICE void weight_gradient(const Fixed16WeightGradient &a) {
    SHARED_ROOM(shared);
    if (blockIdx.x >= a.blocks) return sum_image(a.bias, blockIdx.x - a.blocks, shared);
    const u32 tile = blockIdx.x % a.tiles, part_of_all = blockIdx.x / a.tiles;
    const u32 lane = part_of_all / a.parts, part = part_of_all % a.parts;
    const u32 first_image = a.lane_rows[lane], pixels = (a.lane_rows[lane + 1] - first_image) * a.pixels.by;
    const u32 begin = part * a.part;
    const u32 end = begin + a.part < pixels ? begin + a.part : pixels;
    const u32 places = a.kernel[0] * a.kernel[1], pieces = (NARROW ? a.kernel[0] : places) * a.pieces.by;
    const u32 top = tile / a.across * LEFT_PIECES, left = tile % a.across * RIGHT_PIECES;
    // What this thread copies of every pixel: a piece of the channels that the windows have at one place, and one of the errors.
    const u32 left_piece = top + threadIdx.x % LEFT_PIECES, left_line = threadIdx.x / LEFT_PIECES;
    const u32 place = left_piece / a.pieces, piece = left_piece % a.pieces;
    const u32 place_y = NARROW ? place : place / a.kernel[1], place_x = NARROW ? 4 * piece : place % a.kernel[1];
    const u32 right_piece = left + threadIdx.x % RIGHT_PIECES, right_line = threadIdx.x / RIGHT_PIECES;
    u32 next = begin;
    auto bring = [&](u8 *stage) {
#pragma unroll
        for (u32 i = 0; i < Lines::DEPTH / LEFT_STEP; i++) {
            const u32 line = left_line + i * LEFT_STEP, number = next + line;
            const u32 image = number / a.pixels, pixel = number % a.pixels;
            const u32 y = pixel / a.width_to * a.stride[0] + place_y - a.padding[0];
            const u32 x = pixel % a.width_to * a.stride[1] + place_x - a.padding[1];
            const bool is_line = (number < end) & (left_piece < pieces) & (y < a.height);
            const u32 at_pixel = ((first_image + image) * a.height + y) * a.width + x;
            u8 *to = stage + line * Lines::LEFT_LINE + threadIdx.x % LEFT_PIECES * PIECE;
            if (NARROW) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) {
                    const bool is_inside = is_line & (x + k < a.width);
                    const u64 at = is_inside ? (u64)(at_pixel + k) * 4 : 0;
                    copy_word(to + 4 * k, a.upper + at, is_inside);
                    copy_word(to + Lines::LEFT + 4 * k, a.lower + at, is_inside);
                }
            } else {
                const bool is_inside = is_line & (x < a.width);
                const u64 at = is_inside ? ((u64)at_pixel * a.pieces.by + piece) * PIECE : 0;
                copy_piece(to, a.upper + at, is_inside);
                copy_piece(to + Lines::LEFT, a.lower + at, is_inside);
            }
        }
#pragma unroll
        for (u32 i = 0; i < Lines::DEPTH / RIGHT_STEP; i++) {
            const u32 line = right_line + i * RIGHT_STEP, number = next + line;
            const bool is_inside = (number < end) & (right_piece < a.error_pieces);
            const u64 of_lane = (u64)first_image * a.pixels.by;
            const u64 at = is_inside ? ((of_lane + number) * a.error_pieces + right_piece) * PIECE : 0;
            u8 *to = stage + 2 * Lines::LEFT + line * Lines::RIGHT_LINE + threadIdx.x % RIGHT_PIECES * PIECE;
            copy_piece(to, a.error_upper + at, is_inside);
            copy_piece(to + Lines::RIGHT, a.error_lower + at, is_inside);
        }
        next += Lines::DEPTH;
    };
    const u32 parts = begin < end ? (end - begin + Lines::DEPTH - 1) / Lines::DEPTH : 0;
    Lines::Sums sums;
    go_through_parts<Lines>(sums, (u8 *)shared, parts, bring);
    long long *done = (long long *)shared;
#pragma unroll
    for (u32 i = 0; i < Lines::TALL; i++) {
#pragma unroll
        for (u32 j = 0; j < Lines::BROAD; j++) {
#pragma unroll
            for (u32 k = 0; k < 4; k++) done[Lines::row(i, k) * DONE_LINE + Lines::column(j, k)] = sums.sum(i, j, k);
        }
    }
    __syncthreads();
    const float factor = a.scales[first_image].factor, error_factor = a.error_scales[first_image].factor;
    const u32 rows = places * a.inputs, column = threadIdx.x % GradientTile::COLUMNS, output = left * PIECE + column;
    if (output >= a.outputs) return;
    const u32 edge = output / a.panel * a.panel.by, wide = a.outputs - edge < a.panel.by ? a.outputs - edge : a.panel.by;
    const u64 to = (u64)edge * rows + output - edge;
    constexpr u32 STEP = GradientTile::THREADS / GradientTile::COLUMNS;
#pragma unroll 4
    for (u32 line = threadIdx.x / GradientTile::COLUMNS; line < GradientTile::ROWS; line += STEP) {
        const u32 at = top + line / PIECE, across = 4 * (at % a.pieces) + line % PIECE / 4;
        const u32 place = NARROW ? at / a.pieces * a.kernel[1] + across : at / a.pieces;
        const u32 input = NARROW ? line % 4 : at % a.pieces * PIECE + line % PIECE, row = place * a.inputs + input;
        if (at >= pieces || input >= a.inputs || (NARROW && across >= a.kernel[1])) continue;
        const long long sum = done[line * DONE_LINE + column];
        const u64 number = to + (u64)row * wide;
        if (a.sums) a.sums[(u64)part_of_all * rows * a.outputs + number] = (u64)sum;
        else a.to[lane * a.lane_stride + number] = __ll2float_rn(sum) * factor * error_factor;
    }
}

KERNEL_BESIDE(fixed16_weight_gradient, GradientTile::THREADS, 2, Fixed16WeightGradient) { weight_gradient<false>(a); }
KERNEL_BESIDE(fixed16_weight_gradient_narrow, GradientTile::THREADS, 2, Fixed16WeightGradient) { weight_gradient<true>(a); }

// The parts of every lane.
struct PartSums {
    u64 *from;
    float *to;
    u64 stride;
    u32 *lane_rows;
    Fixed16Scale *scales;
    Fixed16Scale *error_scales;
    Divisor parts;
    // Numbers of a part.
    Divisor size;
    u32 lanes;
    u32 blocks;
};

DEVICE void sum_parts(const PartSums &a, u32 block) {
    const u32 i = block * THREADS + threadIdx.x, lane = i / a.size, at = i % a.size;
    if (lane >= a.lanes) return;
    const u64 *from = a.from + (u64)lane * a.parts.by * a.size.by + at;
    long long sum = 0;
#pragma unroll 8
    for (u32 part = 0; part < a.parts.by; part++) sum += (long long)from[(u64)part * a.size.by];
    const u32 first = a.lane_rows[lane];
    a.to[lane * a.stride + at] = __ll2float_rn(sum) * a.scales[first].factor * a.error_scales[first].factor;
}

struct Fixed16End {
    BiasSums bias;
    PartSums weights;
};

KERNEL(fixed16_end, THREADS, Fixed16End) {
    if (blockIdx.x < a.bias.blocks) return sum_images(a.bias, blockIdx.x * THREADS + threadIdx.x);
    sum_parts(a.weights, blockIdx.x - a.bias.blocks);
}
