// Products of 16-bit fixed-point numbers in two slices of 8 bits, whose sums are exact: docs/decisions/0057-fixed16.md has the
// definition. So a depth may be cut, and its parts added up, in any way.
//
// A block computes a tile of sums from slices in shared memory. Of a tile's slices, four pieces of 16 numbers of the depth
// are there at a time, and some such parts are ahead. How threads hold the sums is the matrix unit's own way.
#pragma once
#include "lockstep.cuh"

// What numbers that are sliced together are multiplied by before they are rounded, and what the sums of their products are
// multiplied by. A largest magnitude without an exponent makes all that depends on it no number.
struct Fixed16Scale {
    float by;
    float factor;
};

DEVICE float power_of_two(int e) { return __uint_as_float((u32)(e + 127) << 23); }

// The scale of numbers whose largest magnitude has these bits.
DEVICE Fixed16Scale scale_of(u32 largest) {
    if (largest >= 0x7f800000u) return {0.0f, __uint_as_float(0x7fc00000u)};
    const int found = (int)((largest + 0x10100u) >> 23) - 126, e = found < -52 ? -52 : found;
    return {power_of_two(15 - e), power_of_two(e - 11)};
}

// The upper and the lower slices of four numbers, as the bytes of two words.
struct SlicedFour {
    u32 upper;
    u32 lower;
};

DEVICE SlicedFour slice_four(const float (&x)[4], float by) {
    SlicedFour four = {0, 0};
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        const int q = __float2int_rn(x[k] * by);
        four.upper |= ((u32)(q + 128) >> 8 & 0xffu) << 8 * k;
        four.lower |= ((u32)q & 0xffu) << 8 * k;
    }
    return four;
}

// Numbers of a piece, which is copied at once; pieces of a part of the depth; threads of a block that multiplies.
constexpr u32 PIECE = 16, PART = 4, FIXED16_THREADS = 128;

// A tile is 128 by 64 sums, and each of its four warps has 64 by 32: so many times 16, and 8, as the matrix unit has.
constexpr u32 FIXED16_ROWS = 128, FIXED16_COLUMNS = 64, WARP_ROWS = 64, WARP_COLUMNS = 32;
constexpr u32 TALL = WARP_ROWS / 16, BROAD = WARP_COLUMNS / 8;

// The sums of a thread: of both upper slices, and of an upper and a lower one. A depth of 65,536 does not overflow them.
struct Fixed16Sums {
    int upper[TALL][BROAD][4];
    int mixed[TALL][BROAD][4];

    DEVICE void clear() {
#pragma unroll
        for (u32 i = 0; i < TALL; i++) {
#pragma unroll
            for (u32 j = 0; j < BROAD; j++) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) upper[i][j][k] = mixed[i][j][k] = 0;
            }
        }
    }

    DEVICE long long sum(u32 i, u32 j, u32 k) const { return 256ll * upper[i][j][k] + mixed[i][j][k]; }
};

// Which warp of the tile this thread is in, down and across, and where it is in its warp.
struct WarpPlace {
    u32 down, across, group, within;
    static DEVICE WarpPlace own() {
        const u32 warp = threadIdx.x / WARP, thread = threadIdx.x % WARP;
        return {warp / 2 * WARP_ROWS, warp % 2 * WARP_COLUMNS, thread / 4, thread % 4};
    }
};

#ifndef EMULATED
// c += a b, 16 by 8 sums over 32 numbers of the depth.
DEVICE void multiply(int (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// All products of the slices of 32 numbers of the depth.
DEVICE void multiply_all(Fixed16Sums &sums, const u32 (&a)[2][TALL][4], const u32 (&b)[2][BROAD][2]) {
#pragma unroll
    for (u32 i = 0; i < TALL; i++) {
#pragma unroll
        for (u32 j = 0; j < BROAD; j++) {
            multiply(sums.upper[i][j], a[0][i], b[0][j]);
            multiply(sums.mixed[i][j], a[0][i], b[1][j]);
            multiply(sums.mixed[i][j], a[1][i], b[0][j]);
        }
    }
}

// Four pieces of 8 lines by 16 bytes; each eight threads of the warp say where the lines of one begin.
DEVICE void read_matrices(u32 (&to)[4], const u8 *line) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((u32)__cvta_generic_to_shared(line))
                 : "memory");
}

// The bytes of four words, byte by byte: word i of the result has byte i of each.
DEVICE void turn_bytes(u32 (&w)[4]) {
    const u32 low[2] = {__byte_perm(w[0], w[1], 0x5140), __byte_perm(w[2], w[3], 0x5140)};
    const u32 high[2] = {__byte_perm(w[0], w[1], 0x7362), __byte_perm(w[2], w[3], 0x7362)};
    w[0] = __byte_perm(low[0], low[1], 0x5410);
    w[1] = __byte_perm(low[0], low[1], 0x7632);
    w[2] = __byte_perm(high[0], high[1], 0x5410);
    w[3] = __byte_perm(high[0], high[1], 0x7632);
}
#endif

DEVICE void copy_word(u8 *shared, const u8 *from, bool is_inside) { copy4((float *)shared, (const float *)from, is_inside); }
DEVICE void copy_piece(u8 *shared, const u8 *from, bool is_inside) { copy16((float *)shared, (const float *)from, is_inside); }

// Slices in shared memory as lines along the depth. A line is a piece longer than the part, so that the same place of eight
// lines is in other banks.
struct DepthLines {
    static constexpr u32 LINE = (PART + 1) * PIECE, DEPTH = PART * PIECE;
    static constexpr u32 LEFT = FIXED16_ROWS * LINE, RIGHT = FIXED16_COLUMNS * LINE, ROOM = 2 * (LEFT + RIGHT);

    // Where the sums of a thread are in the tile of its warp.
    static DEVICE u32 row(const WarpPlace &own, u32 i, u32 k) { return own.down + i * 16 + own.group + k / 2 * 8; }
    static DEVICE u32 column(const WarpPlace &own, u32 j, u32 k) { return own.across + j * 8 + own.within * 2 + k % 2; }

    // Where a number of a slice lies.
    static DEVICE const u8 *left(const u8 *stage, u32 slice, u32 row, u32 depth) { return stage + slice * LEFT + row * LINE + depth; }
    static DEVICE const u8 *right(const u8 *stage, u32 slice, u32 column, u32 depth) {
        return stage + 2 * LEFT + slice * RIGHT + column * LINE + depth;
    }

#ifndef EMULATED
    static DEVICE void add(Fixed16Sums &sums, const u8 *stage, const WarpPlace &own) {
        const u32 thread = threadIdx.x % WARP;
#pragma unroll
        for (u32 depth = 0; depth < DEPTH; depth += 32) {
            u32 a[2][TALL][4], b[2][BROAD][2];
#pragma unroll
            for (u32 slice = 0; slice < 2; slice++) {
#pragma unroll
                for (u32 i = 0; i < TALL; i++) {
                    read_matrices(a[slice][i], left(stage, slice, own.down + i * 16 + thread % 16, depth + thread / 16 * 16));
                }
#pragma unroll
                for (u32 j = 0; j < BROAD; j += 2) {
                    u32 both[4];
                    const u32 line = own.across + j * 8 + thread % 8 + thread / 16 * 8;
                    read_matrices(both, right(stage, slice, line, depth + thread / 8 % 2 * 16));
                    b[slice][j][0] = both[0], b[slice][j][1] = both[1];
                    b[slice][j + 1][0] = both[2], b[slice][j + 1][1] = both[3];
                }
            }
            multiply_all(sums, a, b);
        }
    }
#endif
};

// Slices in shared memory as lines along the edge, of which the depth goes from line to line. Lines are so long that four of
// them that follow each other lie in other banks.
struct EdgeLines {
    static constexpr u32 LEFT_LINE = FIXED16_ROWS + 32, RIGHT_LINE = FIXED16_COLUMNS + 32, DEPTH = 64;
    static constexpr u32 LEFT = DEPTH * LEFT_LINE, RIGHT = DEPTH * RIGHT_LINE, ROOM = 2 * (LEFT + RIGHT);

    // A thread reads words of four neighbours of the edge, and turns four words of the depth: so its sums lie otherwise.
    static DEVICE u32 row(const WarpPlace &own, u32 i, u32 k) {
        return own.down + 4 * (own.group + 8 * (i / 2)) + 2 * (i % 2) + k / 2;
    }
    static DEVICE u32 column(const WarpPlace &own, u32 j, u32 k) { return own.across + 4 * (2 * own.within + k % 2) + j; }

    static DEVICE const u8 *left(const u8 *stage, u32 slice, u32 row, u32 depth) { return stage + slice * LEFT + depth * LEFT_LINE + row; }
    static DEVICE const u8 *right(const u8 *stage, u32 slice, u32 column, u32 depth) {
        return stage + 2 * LEFT + slice * RIGHT + depth * RIGHT_LINE + column;
    }

#ifndef EMULATED
    static DEVICE void add(Fixed16Sums &sums, const u8 *stage, const WarpPlace &own) {
#pragma unroll
        for (u32 depth = 0; depth < DEPTH; depth += 32) {
            u32 a[2][TALL][4], b[2][BROAD][2];
#pragma unroll
            for (u32 slice = 0; slice < 2; slice++) {
#pragma unroll
                for (u32 half = 0; half < 2; half++) {
                    // The depth's order within a product does not matter, if it is the same for both.
                    const u32 first = depth + half * 16 + own.within;
#pragma unroll
                    for (u32 i = 0; i < TALL; i += 2) {
                        u32 words[4];
#pragma unroll
                        for (u32 k = 0; k < 4; k++) {
                            words[k] = *(const u32 *)left(stage, slice, own.down + 4 * (own.group + 4 * i), first + 4 * k);
                        }
                        turn_bytes(words);
#pragma unroll
                        for (u32 k = 0; k < 4; k++) a[slice][i + k / 2][2 * half + k % 2] = words[k];
                    }
                    u32 words[4];
#pragma unroll
                    for (u32 k = 0; k < 4; k++) {
                        words[k] = *(const u32 *)right(stage, slice, own.across + 4 * own.group, first + 4 * k);
                    }
                    turn_bytes(words);
#pragma unroll
                    for (u32 j = 0; j < BROAD; j++) b[slice][j][half] = words[j];
                }
            }
            multiply_all(sums, a, b);
        }
    }
#endif
};

// Adds the products of a part of the depth to the sums.
template <class L>
DEVICE void add_part(Fixed16Sums &sums, const u8 *stage, const WarpPlace &own) {
#ifdef EMULATED
    for (u32 i = 0; i < TALL; i++) {
        for (u32 j = 0; j < BROAD; j++) {
            for (u32 k = 0; k < 4; k++) {
                const u32 row = L::row(own, i, k), column = L::column(own, j, k);
                for (u32 depth = 0; depth < L::DEPTH; depth++) {
                    const int a[2] = {(signed char)*L::left(stage, 0, row, depth), (signed char)*L::left(stage, 1, row, depth)};
                    const int b[2] = {(signed char)*L::right(stage, 0, column, depth), (signed char)*L::right(stage, 1, column, depth)};
                    sums.upper[i][j][k] += a[0] * b[0];
                    sums.mixed[i][j][k] += a[0] * b[1] + a[1] * b[0];
                }
            }
        }
    }
#else
    L::add(sums, stage, own);
#endif
}

// Goes through the parts of a depth: `bring(stage)` begins the copies of the next one.
template <class L, u32 STAGES, class Bring>
DEVICE void go_through_parts(Fixed16Sums &sums, u8 *room, u32 parts, Bring bring) {
    const WarpPlace own = WarpPlace::own();
    sums.clear();
#pragma unroll 1
    for (u32 part = 0; part < STAGES - 1; part++) {
        if (part < parts) bring(room + part * L::ROOM);
        end_copies();
    }
    u32 stage = 0;
#pragma unroll 1
    for (u32 part = 0; part < parts; part++) {
        wait_for_copies<STAGES - 2>();
        // Now all threads have brought this part, and all are done with the one before, whose stage is free.
        __syncthreads();
        if (part + STAGES - 1 < parts) bring(room + (stage == 0 ? STAGES - 1 : stage - 1) * L::ROOM);
        end_copies();
        add_part<L>(sums, room + stage * L::ROOM, own);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}
