// Convolutions with any windows, as matrix products over the images where they lie: a row for every pixel of one image, and
// of the other image whatever a window has there. Nothing is copied but to shared memory.
#include "bias.cuh"
#include "pointwise.cuh"
#include "window_table.cuh"

constexpr u32 THREADS = 128;

struct DirectForward {
    float *x;
    float *weight;
    float *bias;
    float *y;
    Image image;
    Windows windows;
    // Pixels of all images of the output.
    u32 pixels;
    // Whether channels of the input, and outputs of the weights, are copied by fours.
    u32 fours_of_input;
    u32 fours_of_weight;
    // Blocks across.
    Divisor across;
    Pointwise then;
};

// Every number is a chain over the rows, columns and channels of its window. What is beyond the image is multiplied too.
template <class T>
DEVICE void forward(const DirectForward &a) {
    static_assert(T::HEIGHT == TILE_THREADS, "a thread notes the window of a row");
    __shared__ __align__(16) float room[T::ROOM];
    __shared__ WindowTable table;
    const Windows &w = a.windows;
    const u32 left = blockIdx.x % a.across * T::WIDTH, top = blockIdx.x / a.across * T::HEIGHT;
    const u32 first_image = top / w.pixels, outputs = w.channels, depths = w.area * a.image.channels.by;
    const float *images = a.x + (u64)first_image * a.image.height * a.image.width * a.image.channels.by;
    const u32 pixel = top + threadIdx.x;
    note(table, threadIdx.x, a.image, w, pixel / w.pixels - first_image, pixel % w.pixels);
    if (pixel >= a.pixels) table.row[threadIdx.x] = NOWHERE;
    __syncthreads();
    T tile;
    tile.begin([&](u32 column) { return a.bias && left + column < outputs ? a.bias[left + column] : 0.0f; });
    in_stages<T>(
        room, (depths + T::DEPTH - 1) / T::DEPTH,
        [&](u32 s, float *stage) {
            const u32 depth = s * T::DEPTH;
            auto input = [&](u32 d) {
                const WindowPlace number = window_place(a.image, w, depth + d);
                return [&, d, number](u32 row, bool &is_inside) {
                    const float *place = find(table, row, images, a.image, number, is_inside);
                    is_inside = is_inside & (depth + d < depths);
                    return place;
                };
            };
            auto weight = [&](u32 column) {
                return [&, column](u32 d, bool &is_inside) {
                    is_inside = (depth + d < depths) & (left + column < outputs);
                    return a.weight + (u64)(depth + d) * outputs + left + column;
                };
            };
            if (a.fours_of_input) copy_lines<4, T::HEIGHT, T::DEPTH, T::LEFT_LINE>(stage, input);
            else copy_lines<1, T::HEIGHT, T::DEPTH, T::LEFT_LINE>(stage, input);
            if (a.fours_of_weight) copy_lines<4, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, weight);
            else copy_lines<1, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, weight);
        },
        [&](u32 s, const float *stage) { tile.add(stage, depths - s * T::DEPTH); });
    tile.end(room, [&](u32 row, u32 column, float4 sums) {
        const u32 pixel = top + row, first = left + column;
        if (pixel >= a.pixels || first >= outputs) return;
        float four[4] = {sums.x, sums.y, sums.z, sums.w};
        const u32 feature = pixel % w.pixels * outputs + first;
#pragma unroll
        for (u32 k = 0; k < 4; k++) four[k] = pointwise(a.then, four[k], pixel / w.pixels, feature + k);
        write_four(four, a.y + (u64)pixel * outputs, first, outputs);
    });
}

typedef Tile<8, 8, 16, 2, DEPTH_FIRST> WideTile;
typedef Tile<8, 4, 16, 3, DEPTH_FIRST> NarrowTile;

KERNEL_BESIDE(direct_forward_wide, TILE_THREADS, 8, DirectForward) { forward<WideTile>(a); }
KERNEL_BESIDE(direct_forward_narrow, TILE_THREADS, 8, DirectForward) { forward<NarrowTile>(a); }

// The gradient by the input. Pixels that lie alike to the windows' steps are seen through the same places of the kernel: as
// many classes of them as there are pixels from one window to the next are computed apart from each other.
struct DirectInputGradient {
    float *dy;
    // Place by place, of each [out][in].
    float *weight;
    float *x;
    float *dx;
    Image image;
    Windows windows;
    // Lines of an image of the output.
    u32 height;
    u32 images;
    // Whether outputs and inputs are copied by fours.
    u32 fours_of_gradient;
    u32 fours_of_weight;
    Divisor across;
    // What was done to x where it lies.
    Pointwise below;
};

// One axis of a class: its pixels are `first`, `first + stride` and so on.
struct ClassAxis {
    u32 first;
    // Pixels of an image.
    u32 count;
    // The first place of the kernel that they are seen through, and how many there are: each is a stride further.
    u32 place;
    u32 places;
    // The window in which the first pixel is at the first place. It may be beyond the image's.
    u32 window;
};

DEVICE ClassAxis class_axis(u32 first, u32 pixels, u32 kernel, u32 stride, u32 padding) {
    const u32 place = (first + padding) % stride;
    return {first, first < pixels ? (pixels - first + stride - 1) / stride : 0, place,
            place < kernel ? (kernel - place + stride - 1) / stride : 0, (first + padding - place) / stride};
}

// A part of the outputs at a place of the kernel.
struct Walk {
    u32 row;
    u32 column;
    u32 depth;
    // Goes on to the next part.
    DEVICE void advance(u32 columns, u32 depths, u32 by) {
        depth += by;
        if (depth < depths) return;
        depth = 0;
        column += 1;
        if (column < columns) return;
        column = 0;
        row += 1;
    }
};

// Where the pixels of a class lie.
struct PixelTable {
    // The window in which a pixel is at the first place, and where the gradient by it lies.
    int row[TILE_THREADS];
    int column[TILE_THREADS];
    int at[TILE_THREADS];
    // Where the pixel lies in its image, and the image after the first.
    u32 to[TILE_THREADS];
    u32 image[TILE_THREADS];
};

// Every number is a chain over the places of the kernel and the outputs. A place that no window has over the pixel is left
// out, and not multiplied by 0.
template <class T>
DEVICE void input_gradient(const DirectInputGradient &a) {
    static_assert(T::HEIGHT == TILE_THREADS, "a thread notes a row");
    __shared__ __align__(16) float room[T::ROOM];
    __shared__ PixelTable table;
    const Windows &w = a.windows;
    const u32 inputs = a.image.channels.by, outputs = w.channels;
    // The last class has the most places if there is a margin.
    const u32 number = gridDim.z - 1 - blockIdx.z;
    const ClassAxis down = class_axis(number / w.stride[1], a.image.height, w.kernel[0], w.stride[0], w.padding[0]);
    const ClassAxis right = class_axis(number % w.stride[1], a.image.width, w.kernel[1], w.stride[1], w.padding[1]);
    const u32 left = blockIdx.x % a.across * T::WIDTH, top = blockIdx.x / a.across * T::HEIGHT;
    const u32 pixels = down.count * right.count, rows = a.images * pixels;
    if (top >= rows) return;
    const u32 first_image = top / pixels;
    const float *dy = a.dy + (u64)first_image * w.pixels.by * outputs;
    const u64 numbers = (u64)a.image.height * a.image.width * inputs;
    {
        const u32 row = top + threadIdx.x, image = row / pixels - first_image, at = row % pixels;
        const u32 i = at / right.count, j = at % right.count, t = threadIdx.x;
        table.row[t] = row < rows ? (int)(down.window + i) : NOWHERE;
        table.column[t] = (int)(right.window + j);
        table.at[t] = (int)(((image * a.height + down.window + i) * w.width.by + right.window + j) * outputs);
        table.to[t] = ((down.first + i * w.stride[0]) * a.image.width + right.first + j * w.stride[1]) * inputs;
        table.image[t] = image;
    }
    __syncthreads();
    T tile;
    tile.begin([](u32) { return 0.0f; });
    const u32 stages = down.places * right.places * ((outputs + T::DEPTH - 1) / T::DEPTH);
    Walk brought = {}, added = {};
    u32 mask = 0;
    auto is_window = [&](u32 row, const Walk &at) {
        return ((u32)(table.row[row] - (int)at.row) < a.height) &
               ((u32)(table.column[row] - (int)at.column) < w.width.by);
    };
    in_stages<T>(
        room, stages,
        [&](u32, float *stage) {
            const Walk at = brought;
            brought.advance(right.places, outputs, T::DEPTH);
            const int back = (int)((at.row * w.width.by + at.column) * outputs) - (int)at.depth;
            const u32 place = (down.place + at.row * w.stride[0]) * w.kernel[1] + right.place + at.column * w.stride[1];
            auto gradient = [&](u32 d) {
                return [&, d](u32 row, bool &is_inside) {
                    is_inside = is_window(row, at) & (at.depth + d < outputs);
                    return dy + (table.at[row] - back + (int)d);
                };
            };
            auto weight = [&](u32 column) {
                return [&, column](u32 d, bool &is_inside) {
                    is_inside = (at.depth + d < outputs) & (left + column < inputs);
                    return a.weight + ((u64)place * outputs + at.depth + d) * inputs + left + column;
                };
            };
            if (a.fours_of_gradient) copy_lines<4, T::HEIGHT, T::DEPTH, T::LEFT_LINE>(stage, gradient);
            else copy_lines<1, T::HEIGHT, T::DEPTH, T::LEFT_LINE>(stage, gradient);
            if (a.fours_of_weight) copy_lines<4, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, weight);
            else copy_lines<1, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, weight);
        },
        [&](u32, const float *stage) {
            const Walk at = added;
            added.advance(right.places, outputs, T::DEPTH);
            if (at.depth == 0) {
                mask = 0;
#pragma unroll
                for (u32 i = 0; i < T::ROWS; i++) mask |= (is_window(T::row(i), at) ? 1u : 0u) << i;
            }
            const u32 depth = outputs - at.depth;
            if (depth < T::DEPTH) tile.add_end(stage, depth, mask);
            else if (__all_sync(0xffffffffu, mask == (1u << T::ROWS) - 1)) tile.template add_stage<false>(stage, mask);
            else tile.template add_stage<true>(stage, mask);
        });
    tile.end(room, [&](u32 row, u32 column, float4 sums) {
        const u32 first = left + column;
        if (top + row >= rows || first >= inputs) return;
        const u32 image = first_image + table.image[row], feature = table.to[row] + first;
        const u64 at = image * numbers + feature;
        float four[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            if (a.below.count > 0 && first + k < inputs) {
                four[k] = pointwise_gradient(a.below, a.x[at + k], four[k], image, feature + k);
            }
        }
        write_four(four, a.dx + at - first, first, inputs);
    });
}

KERNEL_BESIDE(direct_input_gradient_wide, TILE_THREADS, 8, DirectInputGradient) { input_gradient<WideTile>(a); }
KERNEL_BESIDE(direct_input_gradient_narrow, TILE_THREADS, 8, DirectInputGradient) { input_gradient<NarrowTile>(a); }

// Weights with inputs and outputs exchanged, place by place.
struct TurnTask {
    float *from;
    float *to;
    u32 inputs;
    u32 outputs;
    // Blocks of 16 inputs, and of 8 outputs.
    Divisor across;
    Divisor down;
    u32 blocks;
};

DEVICE void turn(const TurnTask &a, u32 block) {
    const u32 line = block / a.across, place = line / a.down;
    const u32 output = line % a.down * 8 + threadIdx.x % 8, input = block % a.across * 16 + threadIdx.x / 8;
    if (output >= a.outputs || input >= a.inputs) return;
    const u64 first = (u64)place * a.inputs * a.outputs;
    a.to[first + (u64)output * a.inputs + input] = a.from[first + (u64)input * a.outputs + output];
}

// What comes before the gradients.
struct DirectBegin {
    ImageSums sums;
    TurnTask weights;
};

KERNEL(direct_begin, THREADS, DirectBegin) {
    static_assert(THREADS == BIAS_THREADS, "tasks of one kernel");
    __shared__ __align__(16) float room[BIAS_ROOM];
    if (blockIdx.x < a.sums.blocks) return sum_image(a.sums, blockIdx.x, room);
    turn(a.weights, blockIdx.x - a.sums.blocks);
}
