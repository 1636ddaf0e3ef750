// Products of an encoder, which only computes forwards: rows times a matrix, finished where they are made; and the first one
// of a CLIP, over the patches of pictures where they lie.
#include "normal.cuh"
#include "relu6.cuh"
#include "tiles.cuh"

// What becomes of a product: it is left as it is, bent by a function, or added to something.
constexpr u32 RELU6 = 1, GELU = 2, QUICK_GELU = 3, ADD = 4;

typedef Tile<8, 8, 16, 2, DEPTH_FIRST> WideTile;
typedef Tile<8, 4, 16, 3, DEPTH_FIRST> NarrowTile;

// x times the logistic function of 1.702 x.
DEVICE float quick_gelu(float x) {
    const float z = 1.702f * x, e = exp_of_negative(fabsf(z));
    return x * (z < 0.0f ? e : 1.0f) / (1.0f + e);
}

DEVICE float bent(u32 how, float x) {
    return how == RELU6 ? relu6(x) : how == GELU ? x * Normal(x).share : how == QUICK_GELU ? quick_gelu(x) : x;
}

struct EncoderDense {
    float *x;
    // Inputs x outputs.
    float *weight;
    float *bias;
    // What the product is added to.
    float *before;
    float *y;
    u32 rows;
    u32 inputs;
    u32 outputs;
    u32 finish;
    // Whether inputs, and outputs of the weights, are copied by fours.
    u32 fours_of_input;
    u32 fours_of_weight;
    // Blocks across.
    Divisor across;
};

template <class T>
DEVICE void dense(const EncoderDense &a) {
    __shared__ __align__(16) float room[T::ROOM];
    const u32 left = blockIdx.x % a.across * T::WIDTH, top = blockIdx.x / a.across * T::HEIGHT;
    const float *x = a.x + (u64)top * a.inputs;
    const u32 rows = a.rows - top;
    T tile;
    tile.begin([&](u32 column) { return left + column < a.outputs ? a.bias[left + column] : 0.0f; });
    multiply(
        tile, room, a.inputs, a.fours_of_input, a.fours_of_weight,
        [&](u32 d) {
            return [=, &a](u32 row, bool &is_inside) {
                is_inside &= row < rows;
                return x + row * a.inputs + d;
            };
        },
        [&](u32 d, u32 column, bool &is_inside) {
            is_inside &= left + column < a.outputs;
            return a.weight + (u64)d * a.outputs + left + column;
        });
    tile.end(room, [&](u32 row, u32 column, float4 sums) {
        const u32 first = left + column;
        if (row >= rows || first >= a.outputs) return;
        float four[4] = {sums.x, sums.y, sums.z, sums.w};
        const u64 line = (u64)(top + row) * a.outputs;
        if (a.finish == ADD) {
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                if (first + k < a.outputs) four[k] = a.before[line + first + k] + four[k];
            }
        } else {
#pragma unroll
            for (u32 k = 0; k < 4; k++) four[k] = bent(a.finish, four[k]);
        }
        write_four(four, a.y + line, first, a.outputs);
    });
}

KERNEL_BESIDE(encoder_dense_wide, TILE_THREADS, 8, EncoderDense) { dense<WideTile>(a); }
KERNEL_BESIDE(encoder_dense_narrow, TILE_THREADS, 8, EncoderDense) { dense<NarrowTile>(a); }

// The tokens that a transformer begins with: every patch's pixels times a matrix, on what its place begins with.
struct EncoderPatches {
    float *images;
    // Lines x columns x channels of a patch, x hidden size.
    float *weight;
    // A row for the token of the picture, and one for each patch.
    float *start;
    float *y;
    u32 pictures;
    u32 hidden;
    // Patches along a side, and of a picture.
    Divisor grid;
    Divisor patches;
    // Numbers of a line of a patch, of all its lines, and of a line of a picture and of a picture.
    Divisor line;
    u32 depths;
    u32 image_line;
    u32 image;
    u32 fours_of_input;
    u32 fours_of_weight;
    Divisor across;
};

KERNEL_BESIDE(encoder_patches, TILE_THREADS, 8, EncoderPatches) {
    typedef WideTile T;
    static_assert(T::HEIGHT == TILE_THREADS, "a thread notes a patch");
    __shared__ __align__(16) float room[T::ROOM];
    // Where the patch of a row lies, and where its token begins.
    __shared__ u32 at[TILE_THREADS], token[TILE_THREADS];
    const u32 left = blockIdx.x % a.across * T::WIDTH, top = blockIdx.x / a.across * T::HEIGHT;
    const u32 rows = a.pictures * a.patches.by - top, patches = a.patches.by;
    {
        const u32 row = top + threadIdx.x, picture = row / a.patches, place = row % a.patches;
        at[threadIdx.x] = picture * a.image + place / a.grid * (a.depths / a.line) * a.image_line + place % a.grid * a.line.by;
        token[threadIdx.x] = place;
    }
    // The token of a picture is what it begins with.
    if (top == 0) {
        for (u32 i = threadIdx.x; i < a.pictures * T::WIDTH; i += TILE_THREADS) {
            const u32 column = left + i % T::WIDTH;
            if (column < a.hidden) a.y[(u64)(i / T::WIDTH) * (patches + 1) * a.hidden + column] = a.start[column];
        }
    }
    __syncthreads();
    T tile;
#pragma unroll
    for (u32 i = 0; i < T::ROWS; i++) {
        const u32 row = T::row(i);
#pragma unroll
        for (u32 j = 0; j < T::COLUMNS; j++) {
            const u32 column = left + T::column(j);
            const bool is_inside = row < rows && column < a.hidden;
            tile.sums[i][j] = is_inside ? a.start[(u64)(1 + token[row]) * a.hidden + column] : 0.0f;
        }
    }
    multiply(
        tile, room, a.depths, a.fours_of_input, a.fours_of_weight,
        [&](u32 d) {
            const u32 offset = d / a.line * a.image_line + d % a.line;
            return [=, &a](u32 row, bool &is_inside) {
                is_inside &= row < rows;
                return a.images + (at[row] + offset);
            };
        },
        [&](u32 d, u32 column, bool &is_inside) {
            is_inside &= left + column < a.hidden;
            return a.weight + (u64)d * a.hidden + left + column;
        });
    tile.end(room, [&](u32 row, u32 column, float4 sums) {
        const u32 first = left + column;
        if (row >= rows || first >= a.hidden) return;
        const float four[4] = {sums.x, sums.y, sums.z, sums.w};
        const u64 to = (u64)((top + row) / a.patches) * (patches + 1) + 1 + token[row];
        write_four(four, a.y + to * a.hidden, first, a.hidden);
    });
}
