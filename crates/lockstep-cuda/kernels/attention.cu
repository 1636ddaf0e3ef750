// Attention of a picture's tokens to each other, head by head, and the normalisation of tokens. A token of x is its queries,
// keys and values one after the other.
#include "normal.cuh"
#include "tiles.cuh"

typedef Tile<8, 8, 16, 2, DEPTH_FIRST> T;

// What all heads of all pictures have in common.
struct AttentionShape {
    u32 tokens;
    Divisor heads;
    // Numbers of a token in one head, and in all.
    u32 width;
    u32 hidden;
    // Numbers from one row of scores to the next, a multiple of 4.
    u32 stride;
    // Blocks of a head, and across.
    Divisor blocks;
    Divisor across;
    // Whether queries and values are copied by fours.
    u32 fours;
};

// The part of a block.
struct HeadPlace {
    // Which head of which picture, of all of them.
    u32 pair;
    // The first token of the picture, and where the head begins in a token.
    u64 token;
    u32 at;
    u32 top;
    u32 left;
    DEVICE HeadPlace(const AttentionShape &s) {
        const u32 block = blockIdx.x % s.blocks;
        pair = blockIdx.x / s.blocks;
        token = (u64)(pair / s.heads) * s.tokens;
        at = pair % s.heads * s.width;
        top = block / s.across * T::HEIGHT;
        left = block % s.across * T::WIDTH;
    }
};

struct AttentionScores {
    float *x;
    float *scores;
    AttentionShape shape;
};

// What each token thinks of each: chains over the head's numbers.
KERNEL_BESIDE(attention_scores, TILE_THREADS, 8, AttentionScores) {
    __shared__ __align__(16) float room[T::ROOM];
    const AttentionShape &s = a.shape;
    const HeadPlace place(s);
    const float *queries = a.x + place.token * 3 * s.hidden + place.at, *keys = queries + s.hidden;
    T tile;
    tile.begin([](u32) { return 0.0f; });
    multiply(
        tile, room, s.width, s.fours, false,
        [&](u32 d) {
            return [=, &s](u32 row, bool &is_inside) {
                is_inside &= place.top + row < s.tokens;
                return queries + (u64)(place.top + row) * 3 * s.hidden + d;
            };
        },
        [&](u32 d, u32 column, bool &is_inside) {
            is_inside &= place.left + column < s.tokens;
            return keys + (u64)(place.left + column) * 3 * s.hidden + d;
        });
    float *scores = a.scores + (u64)place.pair * s.tokens * s.stride;
    tile.end(room, [&](u32 row, u32 column, float4 sums) {
        const u32 token = place.top + row, first = place.left + column;
        if (token < s.tokens && first < s.stride) *(float4 *)(scores + (u64)token * s.stride + first) = sums;
    });
}

// Threads that have a row together, each a lane of its sums.
constexpr u32 LANES = 16;

// The sum of a row's numbers, of which each thread has added up every 16th: a tree over the lanes, which all of them get.
DEVICE float sum_of_lanes(float lane) {
#pragma unroll
    for (u32 half = LANES / 2; half > 0; half /= 2) lane += __shfl_xor_sync(ALL, lane, half);
    return lane;
}

struct AttentionShares {
    float *scores;
    u32 rows;
    u32 tokens;
    u32 stride;
    float scale;
};

// Turns each row of scores into shares of 1.
KERNEL(attention_shares, 128, AttentionShares) {
    const u64 row = thread_of_grid() / LANES;
    const u32 own = threadIdx.x % LANES, tokens = row < a.rows ? a.tokens : 0;
    float *x = a.scores + row * a.stride;
    float highest = __uint_as_float(0xff800000u);
    for (u32 i = own; i < tokens; i += LANES) highest = x[i] > highest ? x[i] : highest;
#pragma unroll
    for (u32 half = LANES / 2; half > 0; half /= 2) {
        const float other = __shfl_xor_sync(ALL, highest, half);
        highest = other > highest ? other : highest;
    }
    float lane = 0.0f;
    for (u32 i = own; i < tokens; i += LANES) {
        const float share = exp_of_negative((highest - x[i]) * a.scale);
        x[i] = share;
        lane += share;
    }
    const float factor = 1.0f / sum_of_lanes(lane);
    for (u32 i = own; i < tokens; i += LANES) x[i] *= factor;
}

struct AttentionMix {
    float *x;
    float *shares;
    float *y;
    AttentionShape shape;
};

// The values of all tokens, each as much as its share: chains over the tokens.
KERNEL_BESIDE(attention_mix, TILE_THREADS, 8, AttentionMix) {
    __shared__ __align__(16) float room[T::ROOM];
    const AttentionShape &s = a.shape;
    const HeadPlace place(s);
    const float *values = a.x + place.token * 3 * s.hidden + 2 * s.hidden + place.at;
    const float *shares = a.shares + (u64)place.pair * s.tokens * s.stride;
    T tile;
    tile.begin([](u32) { return 0.0f; });
    multiply(
        tile, room, s.tokens, true, s.fours,
        [&](u32 d) {
            return [=, &s](u32 row, bool &is_inside) {
                is_inside &= place.top + row < s.tokens;
                return shares + (u64)(place.top + row) * s.stride + d;
            };
        },
        [&](u32 d, u32 column, bool &is_inside) {
            is_inside &= place.left + column < s.width;
            return values + (u64)d * 3 * s.hidden + place.left + column;
        });
    tile.end(room, [&](u32 row, u32 column, float4 sums) {
        const u32 first = place.left + column;
        if (place.top + row >= s.tokens || first >= s.width) return;
        const float four[4] = {sums.x, sums.y, sums.z, sums.w};
        write_four(four, a.y + (place.token + place.top + row) * s.hidden + place.at, first, s.width);
    });
}

struct EncoderNorm {
    float *x;
    float *y;
    float *scale;
    float *shift;
    u32 rows;
    u32 width;
    // Numbers from one row of x to the next.
    u64 stride;
    float epsilon;
};

// Each token to mean 0 and variance 1, then scaled and shifted a channel.
KERNEL(encoder_norm, 128, EncoderNorm) {
    const u64 row = thread_of_grid() / LANES;
    const u32 own = threadIdx.x % LANES, width = row < a.rows ? a.width : 0;
    const float *x = a.x + row * a.stride;
    float lane = 0.0f;
#pragma unroll 4
    for (u32 i = own; i < width; i += LANES) lane += x[i];
    const float mean = sum_of_lanes(lane) / (float)a.width;
    lane = 0.0f;
#pragma unroll 4
    for (u32 i = own; i < width; i += LANES) lane += (x[i] - mean) * (x[i] - mean);
    const float variance = sum_of_lanes(lane) / (float)a.width, factor = 1.0f / sqrtf(variance + a.epsilon);
    float *y = a.y + row * a.width;
#pragma unroll 4
    for (u32 i = own; i < width; i += LANES) y[i] = (x[i] - mean) * factor * a.scale[i] + a.shift[i];
}
