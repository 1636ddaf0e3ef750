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

// Numbers of a piece, which is copied at once; pieces of a part of the depth.
constexpr u32 PIECE = 16, PART = 4;

// A tile has DOWN x ACROSS warps, and each of them so many times 16 rows and 8 columns, as the matrix unit has. STAGES parts of
// the depth are in shared memory or on their way.
template <u32 DOWN_, u32 ACROSS_, u32 TALL_, u32 BROAD_, u32 STAGES_>
struct Fixed16Tile {
    static constexpr u32 DOWN = DOWN_, ACROSS = ACROSS_, TALL = TALL_, BROAD = BROAD_, STAGES = STAGES_;
    static constexpr u32 THREADS = DOWN * ACROSS * WARP, ROWS = DOWN * TALL * 16, COLUMNS = ACROSS * BROAD * 8;
    static_assert(BROAD % 2 == 0, "columns are read in pairs of 8");
};

// The sums of a thread: of both upper slices, and of an upper and a lower one. A depth of 65,536 does not overflow them.
template <class T>
struct Fixed16Sums {
    int upper[T::TALL][T::BROAD][4];
    int mixed[T::TALL][T::BROAD][4];

    DEVICE void clear() {
#pragma unroll
        for (u32 i = 0; i < T::TALL; i++) {
#pragma unroll
            for (u32 j = 0; j < T::BROAD; j++) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) upper[i][j][k] = mixed[i][j][k] = 0;
            }
        }
    }

    DEVICE long long sum(u32 i, u32 j, u32 k) const { return 256ll * upper[i][j][k] + mixed[i][j][k]; }
};

// The slices that a warp multiplies: 32 numbers of the depth of its rows and columns.
template <class T>
struct Operands {
    u32 left[2][T::TALL][4];
    u32 right[2][T::BROAD][2];
};

// Where the tile of this thread's warp begins, and where the thread is in its warp.
struct WarpPlace {
    u32 down, across, group, within;
    template <class T>
    static DEVICE WarpPlace own() {
        const u32 warp = threadIdx.x / WARP, thread = threadIdx.x % WARP;
        return {warp / T::ACROSS * T::TALL * 16, warp % T::ACROSS * T::BROAD * 8, thread / 4, thread % 4};
    }
};

#ifndef EMULATED
// c += a b, 16 by 8 sums over 32 numbers of the depth.
DEVICE void multiply(int (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <class T>
DEVICE void multiply_all(Fixed16Sums<T> &sums, const Operands<T> &x) {
#pragma unroll
    for (u32 i = 0; i < T::TALL; i++) {
#pragma unroll
        for (u32 j = 0; j < T::BROAD; j++) {
            multiply(sums.upper[i][j], x.left[0][i], x.right[0][j]);
            multiply(sums.mixed[i][j], x.left[0][i], x.right[1][j]);
            multiply(sums.mixed[i][j], x.left[1][i], x.right[0][j]);
        }
    }
}

// Four matrices of 8 lines by 16 bytes; each eight threads of the warp say where the lines of one begin. A thread has four
// bytes of a line of each.
DEVICE void read_lines(u32 (&to)[4], const u8 *line) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((u32)__cvta_generic_to_shared(line))
                 : "memory");
}

// The same turned: a thread has two neighbouring bytes of two lines of each.
DEVICE void read_turned(u32 (&to)[4], const u8 *line) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((u32)__cvta_generic_to_shared(line))
                 : "memory");
}

// Of four lines that two words have two neighbouring bytes of, the first ones or the second ones.
DEVICE u32 first_of_pairs(u32 a, u32 b) { return __byte_perm(a, b, 0x6420); }
DEVICE u32 second_of_pairs(u32 a, u32 b) { return __byte_perm(a, b, 0x7531); }
#endif

DEVICE void copy_word(u8 *shared, const u8 *from, bool is_inside) { copy4((float *)shared, (const float *)from, is_inside); }
DEVICE void copy_piece(u8 *shared, const u8 *from, bool is_inside) { copy16((float *)shared, (const float *)from, is_inside); }

// The same of what is soon copied again.
DEVICE void copy_piece_again(u8 *shared, const u8 *from, bool is_inside) { copy16_again((float *)shared, (const float *)from, is_inside); }

// Slices in shared memory as lines along the depth. A line is a piece longer than the part, so that the same place of eight
// lines is in other banks.
template <class T>
struct DepthLines {
    typedef T Tile;
    static constexpr u32 LINE = (PART + 1) * PIECE, DEPTH = PART * PIECE;
    static constexpr u32 LEFT = T::ROWS * LINE, RIGHT = T::COLUMNS * LINE, ROOM = 2 * (LEFT + RIGHT);

    // Where the sums of a thread are in the tile.
    static DEVICE u32 row(const WarpPlace &own, u32 i, u32 k) { return own.down + i * 16 + own.group + k / 2 * 8; }
    static DEVICE u32 column(const WarpPlace &own, u32 j, u32 k) { return own.across + j * 8 + own.within * 2 + k % 2; }

    // Where a number of a slice lies.
    static DEVICE const u8 *left(const u8 *stage, u32 slice, u32 row, u32 depth) { return stage + slice * LEFT + row * LINE + depth; }
    static DEVICE const u8 *right(const u8 *stage, u32 slice, u32 column, u32 depth) {
        return stage + 2 * LEFT + slice * RIGHT + column * LINE + depth;
    }

#ifndef EMULATED
    static DEVICE void read(Operands<T> &x, const u8 *stage, const WarpPlace &own, u32 depth) {
        const u32 thread = threadIdx.x % WARP;
#pragma unroll
        for (u32 slice = 0; slice < 2; slice++) {
#pragma unroll
            for (u32 i = 0; i < T::TALL; i++) {
                read_lines(x.left[slice][i], left(stage, slice, own.down + i * 16 + thread % 16, depth + thread / 16 * 16));
            }
#pragma unroll
            for (u32 j = 0; j < T::BROAD; j += 2) {
                u32 both[4];
                const u32 line = own.across + j * 8 + thread % 8 + thread / 16 * 8;
                read_lines(both, right(stage, slice, line, depth + thread / 8 % 2 * 16));
                x.right[slice][j][0] = both[0], x.right[slice][j][1] = both[1];
                x.right[slice][j + 1][0] = both[2], x.right[slice][j + 1][1] = both[3];
            }
        }
    }
#endif
};

// Slices in shared memory as lines along the edge, of which the depth goes from line to line. They are a piece longer too.
template <class T>
struct EdgeLines {
    typedef T Tile;
    static constexpr u32 LEFT_LINE = T::ROWS + PIECE, RIGHT_LINE = T::COLUMNS + PIECE, DEPTH = PART * PIECE;
    static constexpr u32 LEFT = DEPTH * LEFT_LINE, RIGHT = DEPTH * RIGHT_LINE, ROOM = 2 * (LEFT + RIGHT);

    // A thread reads neighbours of the edge in pairs, and makes one operand of the first ones and one of the second ones.
    static DEVICE u32 row(const WarpPlace &own, u32 i, u32 k) { return own.down + i * 16 + 2 * own.group + k / 2; }
    static DEVICE u32 column(const WarpPlace &own, u32 j, u32 k) {
        return own.across + j / 2 * 16 + 2 * (2 * own.within + k % 2) + j % 2;
    }

    static DEVICE const u8 *left(const u8 *stage, u32 slice, u32 row, u32 depth) { return stage + slice * LEFT + depth * LEFT_LINE + row; }
    static DEVICE const u8 *right(const u8 *stage, u32 slice, u32 column, u32 depth) {
        return stage + 2 * LEFT + slice * RIGHT + depth * RIGHT_LINE + column;
    }

#ifndef EMULATED
    // The depth's order within a product does not matter, if it is the same for both.
    static DEVICE void read(Operands<T> &x, const u8 *stage, const WarpPlace &own, u32 depth) {
        const u32 line = depth + threadIdx.x % WARP;
#pragma unroll
        for (u32 slice = 0; slice < 2; slice++) {
#pragma unroll
            for (u32 i = 0; i < T::TALL; i++) {
                u32 pairs[4];
                read_turned(pairs, left(stage, slice, own.down + i * 16, line));
                x.left[slice][i][0] = first_of_pairs(pairs[0], pairs[1]), x.left[slice][i][1] = second_of_pairs(pairs[0], pairs[1]);
                x.left[slice][i][2] = first_of_pairs(pairs[2], pairs[3]), x.left[slice][i][3] = second_of_pairs(pairs[2], pairs[3]);
            }
#pragma unroll
            for (u32 j = 0; j < T::BROAD; j += 2) {
                u32 pairs[4];
                read_turned(pairs, right(stage, slice, own.across + j * 8, line));
                x.right[slice][j][0] = first_of_pairs(pairs[0], pairs[1]), x.right[slice][j + 1][0] = second_of_pairs(pairs[0], pairs[1]);
                x.right[slice][j][1] = first_of_pairs(pairs[2], pairs[3]), x.right[slice][j + 1][1] = second_of_pairs(pairs[2], pairs[3]);
            }
        }
    }
#endif
};

// Adds the products of a part of the depth to the sums.
template <class L, class T = typename L::Tile>
DEVICE void add_part(Fixed16Sums<T> &sums, const u8 *stage, const WarpPlace &own) {
#ifdef EMULATED
    for (u32 i = 0; i < T::TALL; i++) {
        for (u32 j = 0; j < T::BROAD; j++) {
            for (u32 k = 0; k < 4; k++) {
                const u32 row = L::row(own, i, k), column = L::column(own, j, k);
                int upper = 0, mixed = 0;
                for (u32 depth = 0; depth < L::DEPTH; depth++) {
                    const int a[2] = {(signed char)*L::left(stage, 0, row, depth), (signed char)*L::left(stage, 1, row, depth)};
                    const int b[2] = {(signed char)*L::right(stage, 0, column, depth), (signed char)*L::right(stage, 1, column, depth)};
                    upper += a[0] * b[0];
                    mixed += a[0] * b[1] + a[1] * b[0];
                }
                sums.upper[i][j][k] += upper;
                sums.mixed[i][j][k] += mixed;
            }
        }
    }
#else
#pragma unroll
    for (u32 depth = 0; depth < L::DEPTH; depth += 32) {
        Operands<T> operands;
        L::read(operands, stage, own, depth);
        multiply_all(sums, operands);
    }
#endif
}

// Goes through the parts of a depth: `bring(stage)` begins the copies of the next one.
template <class L, class Bring, class T = typename L::Tile>
DEVICE void go_through_parts(Fixed16Sums<T> &sums, u8 *room, u32 parts, Bring bring) {
    const WarpPlace own = WarpPlace::own<T>();
    sums.clear();
#pragma unroll 1
    for (u32 part = 0; part < T::STAGES - 1; part++) {
        if (part < parts) bring(room + part * L::ROOM);
        end_copies();
    }
    u32 stage = 0;
#pragma unroll 1
    for (u32 part = 0; part < parts; part++) {
        wait_for_copies<T::STAGES - 2>();
        // Now all threads have brought this part, and all are done with the one before, whose stage is free.
        __syncthreads();
        if (part + T::STAGES - 1 < parts) bring(room + (stage == 0 ? T::STAGES - 1 : stage - 1) * L::ROOM);
        end_copies();
        add_part<L>(sums, room + stage * L::ROOM, own);
        stage = stage + 1 == T::STAGES ? 0 : stage + 1;
    }
    __syncthreads();
}
