// Winograd's convolution with 3 x 3 windows that move by one pixel, F(4 x 4, 3 x 3), as lockstep-nn has it.
//
// Pixels and weights are transformed to 36 planes, one for each place in a tile; between planes nothing is summed. Then
// there are 36 matrix products, and what they come to is transformed back. So there are three kernels, each with several
// tasks: the first blocks have the first task, those after them the next, and the tasks of a launch share the GPU.
#include "bias.cuh"
#include "pointwise.cuh"
#include "tiles.cuh"
#include "transform.cuh"

constexpr u32 PLANES = 36, THREADS = 128;

// How tiles lie on images: tile (i, j) of an image begins at pixel (4 i - top, 4 j - left).
struct Tiling {
    u32 height;
    u32 width;
    Divisor channels;
    u32 top;
    u32 left;
    // Tiles of an image, and from left to right.
    Divisor tiles;
    Divisor across;
    // Tiles of all images.
    u32 count;
};

// A channel of a tile: its image, and the first of its pixels.
struct TilePlace {
    u32 image;
    int row;
    int column;
    u32 channel;
};

DEVICE TilePlace place_of(const Tiling &t, u32 i) {
    const u32 tile = i / t.channels, at = tile % t.tiles;
    return {tile / t.tiles, (int)(4 * (at / t.across) - t.top), (int)(4 * (at % t.across) - t.left), i % t.channels};
}

// Where the first pixel of a tile lies, which may be outside of all images.
DEVICE long long first_pixel(const Tiling &t, const TilePlace &p) {
    return (((long long)p.image * t.height + p.row) * t.width + p.column) * t.channels.by + p.channel;
}

// Weights to planes: [in][out], or of weights that are turned about, [out][in].
struct WeightTask {
    float *from;
    float *to;
    u32 inputs;
    u32 outputs;
    // Groups of 16 inputs. Not used, unless the weights are turned.
    Divisor groups;
    u32 is_turned;
    u32 blocks;
};

DEVICE void transform_weights(const WeightTask &a, u32 block) {
    const u32 size = a.inputs * a.outputs;
    u32 from_at = block * THREADS + threadIdx.x, to_at = from_at;
    if (a.is_turned) {
        // A block has 8 outputs of 16 inputs: both what is read and what is written lies side by side then.
        const u32 output = block / a.groups * 8 + threadIdx.x % 8, input = block % a.groups * 16 + threadIdx.x / 8;
        from_at = input * a.outputs + output;
        to_at = output * a.inputs + input;
    }
    float from[3][3], to[6][6];
#pragma unroll
    for (u32 place = 0; place < 9; place++) {
        from[place / 3][place % 3] = a.from[(u64)(a.is_turned ? 8 - place : place) * size + from_at];
    }
    square<OfWeights>(from, to);
    spread(to, a.to + to_at, size);
}

// The pixels under tiles to planes: [tile][channel].
struct TileTask {
    float *from;
    float *to;
    Tiling tiling;
    u32 blocks;
};

template <class T>
DEVICE void transform_tiles(const TileTask &a, u32 block) {
    const u32 i = block * THREADS + threadIdx.x, channels = a.tiling.channels.by;
    if (i >= a.tiling.count * channels) return;
    const TilePlace at = place_of(a.tiling, i);
    const float *pixel = a.from + first_pixel(a.tiling, at);
    float from[T::FROM][T::FROM], to[6][6];
#pragma unroll
    for (u32 row = 0; row < T::FROM; row++) {
        const bool is_row = (u32)(at.row + (int)row) < a.tiling.height;
        const float *line = pixel + (u64)row * a.tiling.width * channels;
#pragma unroll
        for (u32 column = 0; column < T::FROM; column++) {
            const bool is_inside = is_row && (u32)(at.column + (int)column) < a.tiling.width;
            from[row][column] = is_inside ? line[(u64)column * channels] : 0.0f;
        }
    }
    square<T>(from, to);
    spread(to, a.to + i, (u64)a.tiling.count * channels);
}

// What comes before the products: the tasks of a forward pass are the weights and the first pixels.
struct WinogradBegin {
    WeightTask weights;
    // By images and their pixels, for the gradient of the bias.
    ImageSums sums;
    // What is multiplied by the weights.
    TileTask pixels;
    // What the gradient of the weights is a product of.
    TileTask inputs;
    TileTask gradients;
};

KERNEL(winograd_begin, THREADS, WinogradBegin) {
    static_assert(THREADS == BIAS_THREADS, "tasks of one kernel");
    __shared__ __align__(16) float room[BIAS_ROOM];
    u32 block = blockIdx.x;
    if (block < a.sums.blocks) return sum_image(a.sums, block, room);
    block -= a.sums.blocks;
    if (block < a.weights.blocks) return transform_weights(a.weights, block);
    block -= a.weights.blocks;
    if (block < a.gradients.blocks) return transform_tiles<OfOutputGradients>(a.gradients, block);
    block -= a.gradients.blocks;
    if (block < a.inputs.blocks) return transform_tiles<OfPixels>(a.inputs, block);
    transform_tiles<OfPixels>(a.pixels, block - a.inputs.blocks);
}

// Of every plane the product of transformed pixels and transformed weights.
struct PixelProducts {
    float *pixels;
    float *weights;
    float *to;
    u32 tiles;
    u32 inputs;
    u32 outputs;
    // Blocks across and down of a plane.
    Divisor across;
    Divisor down;
    u32 blocks;
};

template <class T>
DEVICE void multiply_pixels(const PixelProducts &a, u32 block, float *room) {
    const u32 left = block % a.across * T::WIDTH, line = block / a.across;
    const u32 top = line % a.down * T::HEIGHT, plane = line / a.down;
    const float *pixels = a.pixels + (u64)plane * a.tiles * a.inputs;
    const float *weights = a.weights + (u64)plane * a.inputs * a.outputs;
    float *to = a.to + (u64)plane * a.tiles * a.outputs;
    T tile;
    tile.begin([](u32) { return 0.0f; });
    in_stages<T>(
        room, a.inputs / T::DEPTH,
        [&](u32 s, float *stage) {
            const u32 depth = s * T::DEPTH;
            copy_lines<4, T::HEIGHT, T::DEPTH, T::LEFT_LINE>(stage, [&](u32 row, u32 d, bool &is_inside) {
                is_inside = top + row < a.tiles;
                return pixels + (u64)(top + row) * a.inputs + depth + d;
            });
            copy_lines<4, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, [&](u32 d, u32 column, bool &is_inside) {
                is_inside = left + column < a.outputs;
                return weights + (u64)(depth + d) * a.outputs + left + column;
            });
        },
        [&](u32, const float *stage) { tile.template add_stage<false>(stage, ~0u); });
    tile.end(room, [&](u32 row, u32 column, float4 four) {
        if (top + row < a.tiles && left + column < a.outputs) {
            *(float4 *)(to + (u64)(top + row) * a.outputs + left + column) = four;
        }
    });
}

// Of every plane and lane the product of transformed inputs and transformed gradients: chains over all tiles of the lane.
struct WeightProducts {
    float *inputs_from;
    float *gradients;
    float *to;
    u32 *lane_rows;
    // Tiles of an image, and of all of them.
    u32 tiles;
    u32 count;
    u32 inputs;
    u32 outputs;
    // Rows and columns that a thread has: 8, 4 or 2.
    u32 side;
    // Blocks across and down of a plane.
    Divisor across;
    Divisor down;
    u32 blocks;
};

template <class T>
DEVICE void multiply_gradients(const WeightProducts &a, u32 block, float *room) {
    const u32 left = block % a.across * T::WIDTH, line = block / a.across;
    const u32 top = line % a.down * T::HEIGHT, number = line / a.down, plane = number % PLANES, lane = number / PLANES;
    const u32 first = a.lane_rows[lane] * a.tiles, tiles = a.lane_rows[lane + 1] * a.tiles - first;
    const float *inputs = a.inputs_from + ((u64)plane * a.count + first) * a.inputs;
    const float *gradients = a.gradients + ((u64)plane * a.count + first) * a.outputs;
    float *to = a.to + (u64)number * a.inputs * a.outputs;
    T tile;
    tile.begin([](u32) { return 0.0f; });
    in_stages<T>(
        room, (tiles + T::DEPTH - 1) / T::DEPTH,
        [&](u32 s, float *stage) {
            const u32 depth = s * T::DEPTH;
            copy_lines<4, T::DEPTH, T::HEIGHT, T::LEFT_LINE>(stage, [&](u32 d, u32 row, bool &is_inside) {
                is_inside = depth + d < tiles && top + row < a.inputs;
                return inputs + (u64)(depth + d) * a.inputs + top + row;
            });
            copy_lines<4, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, [&](u32 d, u32 column, bool &is_inside) {
                is_inside = depth + d < tiles && left + column < a.outputs;
                return gradients + (u64)(depth + d) * a.outputs + left + column;
            });
        },
        [&](u32 s, const float *stage) { tile.add(stage, tiles - s * T::DEPTH); });
    tile.end(room, [&](u32 row, u32 column, float4 four) {
        if (top + row < a.inputs && left + column < a.outputs) {
            *(float4 *)(to + (u64)(top + row) * a.outputs + left + column) = four;
        }
    });
}

// The products. Chains over tiles are long, and so come first.
struct WinogradProducts {
    WeightProducts weights;
    PixelProducts pixels;
};

typedef Tile<8, 8, 16, 2, DEPTH_FIRST> WideTile;
typedef Tile<8, 4, 16, 3, DEPTH_FIRST> NarrowTile;
typedef Tile<8, 8, 16, 3, EDGE_FIRST> LargeTile;
typedef Tile<4, 4, 32, 3, EDGE_FIRST> MiddleTile;
typedef Tile<2, 2, 32, 6, EDGE_FIRST> SmallTile;
constexpr u32 PRODUCT_ROOM = LargeTile::ROOM;

KERNEL_BESIDE(winograd_products, TILE_THREADS, 8, WinogradProducts) {
    static_assert(WideTile::ROOM <= PRODUCT_ROOM && NarrowTile::ROOM <= PRODUCT_ROOM, "room for all tiles");
    static_assert(MiddleTile::ROOM <= PRODUCT_ROOM && SmallTile::ROOM <= PRODUCT_ROOM, "room for all tiles");
    __shared__ __align__(16) float room[PRODUCT_ROOM];
    const u32 block = blockIdx.x;
    if (block < a.weights.blocks) {
        if (a.weights.side == 8) multiply_gradients<LargeTile>(a.weights, block, room);
        else if (a.weights.side == 4) multiply_gradients<MiddleTile>(a.weights, block, room);
        else multiply_gradients<SmallTile>(a.weights, block, room);
    } else if (a.pixels.outputs % WideTile::WIDTH == 0) {
        multiply_pixels<WideTile>(a.pixels, block - a.weights.blocks, room);
    } else {
        multiply_pixels<NarrowTile>(a.pixels, block - a.weights.blocks, room);
    }
}

// Planes of products to pixels.
struct OutputTask {
    float *from;
    float *bias;
    float *to;
    Tiling tiling;
    // On the way there, what is done to the pixels then; on the way back, what was done to x where it lies.
    Pointwise pointwise;
    float *x;
    u32 is_backward;
    u32 blocks;
};

DEVICE void transform_outputs(const OutputTask &a, u32 block) {
    const Tiling &t = a.tiling;
    const u32 i = block * THREADS + threadIdx.x, channels = t.channels.by;
    if (i >= t.count * channels) return;
    const TilePlace at = place_of(t, i);
    float from[6][6], to[4][4];
    gather(a.from + i, (u64)t.count * channels, from);
    square<OfOutputs>(from, to);
    const float bias = a.bias ? a.bias[at.channel] : 0.0f;
    const long long first = first_pixel(t, at);
#pragma unroll
    for (u32 row = 0; row < 4; row++) {
#pragma unroll
        for (u32 column = 0; column < 4; column++) {
            if (at.row + row < t.height && at.column + column < t.width) {
                const u64 place = first + ((u64)row * t.width + column) * channels;
                const u32 feature = (u32)(place - (u64)at.image * t.height * t.width * channels);
                float y = to[row][column] + bias;
                if (a.pointwise.count > 0) {
                    y = a.is_backward ? pointwise_gradient(a.pointwise, a.x[place], y, at.image, feature)
                                      : pointwise(a.pointwise, y, at.image, feature);
                }
                a.to[place] = y;
            }
        }
    }
}

// Planes of products to the gradient of the weights, lane by lane.
struct WeightGradientTask {
    float *from;
    float *to;
    u64 stride;
    // Numbers of a plane.
    Divisor size;
    u32 lanes;
    u32 blocks;
};

DEVICE void transform_weight_gradients(const WeightGradientTask &a, u32 block) {
    const u32 i = block * THREADS + threadIdx.x, lane = i / a.size, at = i % a.size, size = a.size.by;
    if (lane >= a.lanes) return;
    float from[6][6], to[3][3];
    gather(a.from + (u64)lane * PLANES * size + at, size, from);
    square<OfWeightGradients>(from, to);
    spread(to, a.to + lane * a.stride + at, size);
}

// What comes after the products.
struct WinogradEnd {
    OutputTask outputs;
    WeightGradientTask weights;
    BiasSums bias;
};

KERNEL(winograd_end, THREADS, WinogradEnd) {
    u32 block = blockIdx.x;
    if (block < a.bias.blocks) return sum_images(a.bias, block * THREADS + threadIdx.x);
    block -= a.bias.blocks;
    if (block < a.weights.blocks) return transform_weight_gradients(a.weights, block);
    transform_outputs(a.outputs, block - a.weights.blocks);
}
