// The gradient by the weights of a convolution with any windows, as a matrix product over the images where they lie: a row for
// every number of a window, and the depth is the pixels of the output.
#include "bias.cuh"
#include "window_table.cuh"

constexpr u32 THREADS = 128;

// The gradient by the weights, of groups of a lane's images: the groups are added up afterwards. In the grid, groups are the
// second direction and lanes the third.
struct DirectWeightGradient {
    float *x;
    float *dy;
    float *to;
    u64 lane_stride;
    u64 group_stride;
    u32 *lane_rows;
    // Images of a group.
    u32 group;
    Image image;
    Windows windows;
    u32 fours_of_input;
    u32 fours_of_gradient;
    Divisor across;
};

// Every number is a chain over the group's images and their pixels.
template <class T>
DEVICE void weight_gradient(const DirectWeightGradient &a) {
    static_assert((T::STAGES - 1) * T::DEPTH <= TILE_THREADS, "the table is not written again while it is read");
    __shared__ __align__(16) float room[T::ROOM];
    __shared__ WindowTable table;
    const Windows &w = a.windows;
    const u32 first_image = a.lane_rows[blockIdx.z] + blockIdx.y * a.group, end = a.lane_rows[blockIdx.z + 1];
    if (first_image >= end) return;
    const u32 pixels = min(end - first_image, a.group) * w.pixels.by;
    const u32 left = blockIdx.x % a.across * T::WIDTH, top = blockIdx.x / a.across * T::HEIGHT;
    const u32 rows = w.area * a.image.channels.by, outputs = w.channels;
    const float *images = a.x + (u64)first_image * a.image.height * a.image.width * a.image.channels.by;
    const float *dy = a.dy + (u64)first_image * w.pixels.by * outputs;
    T tile;
    tile.begin([](u32) { return 0.0f; });
    in_stages<T>(
        room, (pixels + T::DEPTH - 1) / T::DEPTH,
        [&](u32 s, float *stage) {
            const u32 depth = s * T::DEPTH;
            // All threads are done with what is noted, since they have waited for each other since then.
            if (depth % TILE_THREADS == 0) {
                const u32 pixel = depth + threadIdx.x;
                note(table, threadIdx.x, a.image, w, pixel / w.pixels, pixel % w.pixels);
                if (pixel >= pixels) table.row[threadIdx.x] = NOWHERE;
                __syncthreads();
            }
            auto input = [&](u32 row) {
                const WindowPlace number = window_place(a.image, w, top + row);
                return [&, row, number](u32 d, bool &is_inside) {
                    const float *place = find(table, depth % TILE_THREADS + d, images, a.image, number, is_inside);
                    is_inside = is_inside & (top + row < rows);
                    return place;
                };
            };
            auto gradient = [&](u32 column) {
                return [&, column](u32 d, bool &is_inside) {
                    is_inside = (depth + d < pixels) & (left + column < outputs);
                    return dy + (u64)(depth + d) * outputs + left + column;
                };
            };
            if (a.fours_of_input) copy_lines<4, T::DEPTH, T::HEIGHT, T::LEFT_LINE>(stage, input);
            else copy_lines<1, T::DEPTH, T::HEIGHT, T::LEFT_LINE>(stage, input);
            if (a.fours_of_gradient) copy_lines<4, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, gradient);
            else copy_lines<1, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, gradient);
        },
        [&](u32 s, const float *stage) { tile.add(stage, pixels - s * T::DEPTH); });
    float *to = a.to + blockIdx.z * a.lane_stride + blockIdx.y * a.group_stride;
    tile.end(room, [&](u32 row, u32 column, float4 sums) {
        const u32 first = left + column;
        const float four[4] = {sums.x, sums.y, sums.z, sums.w};
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            if (top + row < rows && first + k < outputs) to[(u64)(top + row) * outputs + first + k] = four[k];
        }
    });
}

typedef Tile<8, 8, 16, 3, EDGE_FIRST> LargeTile;
typedef Tile<4, 4, 32, 3, EDGE_FIRST> SmallTile;

KERNEL_BESIDE(direct_weight_gradient_large, TILE_THREADS, 8, DirectWeightGradient) { weight_gradient<LargeTile>(a); }
KERNEL(direct_weight_gradient_small, TILE_THREADS, DirectWeightGradient) { weight_gradient<SmallTile>(a); }

// The groups of every lane, added up in order.
struct GroupSums {
    float *from;
    float *to;
    u64 stride;
    u32 *lane_rows;
    // Images of a group, and room for how many groups a lane has.
    u32 group;
    u32 groups;
    // Numbers of a group.
    Divisor size;
    u32 lanes;
    u32 blocks;
};

DEVICE void sum_groups(const GroupSums &a, u32 block) {
    const u32 i = block * THREADS + threadIdx.x, lane = i / a.size, at = i % a.size;
    if (lane >= a.lanes) return;
    const u32 images = a.lane_rows[lane + 1] - a.lane_rows[lane], groups = (images + a.group - 1) / a.group;
    const float *from = a.from + (u64)lane * a.groups * a.size.by + at;
    float sum = from[0];
#pragma unroll 8
    for (u32 group = 1; group < groups; group++) sum += from[(u64)group * a.size.by];
    a.to[lane * a.stride + at] = sum;
}

// What comes after the gradients.
struct DirectEnd {
    BiasSums bias;
    GroupSums weights;
};

KERNEL(direct_end, THREADS, DirectEnd) {
    if (blockIdx.x < a.bias.blocks) return sum_images(a.bias, blockIdx.x * THREADS + threadIdx.x);
    sum_groups(a.weights, blockIdx.x - a.bias.blocks);
}
