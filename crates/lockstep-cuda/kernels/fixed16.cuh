// Products of 16-bit fixed-point numbers in two slices of 8 bits, whose sums are exact: docs/decisions/0057-fixed16.md has the
// definition. So a depth may be cut, and its parts added up, in any way.
//
// A block computes a tile of sums from slices in shared memory. Of a tile's slices, four pieces of 16 numbers of the depth
// are there at a time, and some such parts are ahead. How threads hold the sums is the matrix unit's own way.
#pragma once
#include "lockstep.cuh"

// On an H100 and its like, matrix units multiply what lies in shared memory by themselves. Instructions for that are in no other
// GPU's PTX, so files of kernels with them are compiled once more.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER
#endif

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
template <u32 TALL, u32 BROAD>
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

// c += a b, 16 by 8 sums over 32 numbers of the depth.
DEVICE void multiply(int (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#ifdef EMULATED
    emulator::multiply_bytes(c, a, b);
#else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

template <class T>
DEVICE void multiply_all(Fixed16Sums<T::TALL, T::BROAD> &sums, const Operands<T> &x) {
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
#ifdef EMULATED
    emulator::read_matrices(to, line, false);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((u32)__cvta_generic_to_shared(line))
                 : "memory");
#endif
}

// The same turned: a thread has two neighbouring bytes of two lines of each.
DEVICE void read_turned(u32 (&to)[4], const u8 *line) {
#ifdef EMULATED
    emulator::read_matrices(to, line, true);
#else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"((u32)__cvta_generic_to_shared(line))
                 : "memory");
#endif
}

// Of four lines that two words have two neighbouring bytes of, the first ones or the second ones.
DEVICE u32 first_of_pairs(u32 a, u32 b) { return __byte_perm(a, b, 0x6420); }
DEVICE u32 second_of_pairs(u32 a, u32 b) { return __byte_perm(a, b, 0x7531); }

DEVICE void copy_word(u8 *shared, const u8 *from, bool is_inside) { copy4((float *)shared, (const float *)from, is_inside); }
DEVICE void copy_piece(u8 *shared, const u8 *from, bool is_inside) { copy16((float *)shared, (const float *)from, is_inside); }

// The same of what is soon copied again.
DEVICE void copy_piece_again(u8 *shared, const u8 *from, bool is_inside) { copy16_again((float *)shared, (const float *)from, is_inside); }

#ifdef HOPPER
// A matrix of lines of 64 bytes in shared memory, as the matrix unit is told of it: where it begins, in pieces; how far it is from
// eight lines to the next; and that pieces change places.
DEVICE u64 matrix(const u8 *at) {
    const u64 begin = (u32)__cvta_generic_to_shared(at);
    return begin / PIECE | 1ull << 16 | (u64)(8 * PART * PIECE / PIECE) << 32 | 2ull << 62;
}

#define SUMS_4(j) "+r"(c[j][0]), "+r"(c[j][1]), "+r"(c[j][2]), "+r"(c[j][3])
#define SUMS_16(j) SUMS_4(j), SUMS_4(j + 1), SUMS_4(j + 2), SUMS_4(j + 3)

// c += a b for 64 rows, all columns and 32 numbers of the depth. The four warps of the rows come here together.
DEVICE void multiply_lines(int (&c)[4][4], u64 a, u64 b) {
    asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, p;}"
                 : SUMS_16(0)
                 : "l"(a), "l"(b));
}

DEVICE void multiply_lines(int (&c)[8][4], u64 a, u64 b) {
    asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p;}"
                 : SUMS_16(0), SUMS_16(4)
                 : "l"(a), "l"(b));
}

DEVICE void multiply_lines(int (&c)[16][4], u64 a, u64 b) {
    asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p;}"
                 : SUMS_16(0), SUMS_16(4), SUMS_16(8), SUMS_16(12)
                 : "l"(a), "l"(b));
}
#endif

// Slices in shared memory as lines along the depth. The pieces of a line change places with each other by the number of the line,
// so that the same piece of eight lines is in other banks.
template <class T>
struct DepthLines {
    static constexpr u32 LINE = PART * PIECE, DEPTH = LINE, STAGES = T::STAGES;
    static constexpr u32 LEFT = T::ROWS * LINE, RIGHT = T::COLUMNS * LINE, ROOM = 2 * (LEFT + RIGHT);

    // Where a number of a line lies.
    static DEVICE u32 place(u32 line, u32 depth) { return line * LINE + ((depth / PIECE) ^ (line / 2 % PART)) * PIECE + depth % PIECE; }
    static DEVICE const u8 *left(const u8 *stage, u32 slice, u32 row, u32 depth) { return stage + slice * LEFT + place(row, depth); }
    static DEVICE const u8 *right(const u8 *stage, u32 slice, u32 column, u32 depth) {
        return stage + 2 * LEFT + slice * RIGHT + place(column, depth);
    }

#ifdef HOPPER
    // Four warps have 64 rows and all columns together.
    static constexpr u32 TALL = T::ROWS / 64 / (T::THREADS / 128), BROAD = T::COLUMNS / 8;
    static constexpr bool IS_QUEUED = true;
    typedef Fixed16Sums<TALL, BROAD> Sums;
    static DEVICE u32 first_row() { return threadIdx.x / 128 * TALL * 64; }
    static DEVICE u32 row(u32 i, u32 k) {
        return first_row() + i * 64 + threadIdx.x / WARP % 4 * 16 + threadIdx.x % WARP / 4 + k / 2 * 8;
    }
    static DEVICE u32 column(u32 j, u32 k) { return j * 8 + threadIdx.x % 4 * 2 + k % 2; }

    // What was copied is seen by the matrix unit, which reads shared memory by itself.
    static DEVICE void show() { asm volatile("fence.proxy.async;" ::: "memory"); }

    // Queues the products of a part.
    static DEVICE void multiply(Sums &sums, const u8 *stage) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (u32 depth = 0; depth < DEPTH; depth += 32) {
            const u64 b[2] = {matrix(right(stage, 0, 0, 0) + depth), matrix(right(stage, 1, 0, 0) + depth)};
#pragma unroll
            for (u32 i = 0; i < TALL; i++) {
                const u32 row = first_row() + i * 64;
                const u64 a[2] = {matrix(left(stage, 0, row, 0) + depth), matrix(left(stage, 1, row, 0) + depth)};
                multiply_lines(sums.upper[i], a[0], b[0]);
                multiply_lines(sums.mixed[i], a[0], b[1]);
                multiply_lines(sums.mixed[i], a[1], b[0]);
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }

    static DEVICE void wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
#else
    static constexpr u32 TALL = T::TALL, BROAD = T::BROAD;
    static constexpr bool IS_QUEUED = false;
    typedef Fixed16Sums<TALL, BROAD> Sums;
    static DEVICE u32 row(u32 i, u32 k) {
        const WarpPlace own = WarpPlace::own<T>();
        return own.down + i * 16 + own.group + k / 2 * 8;
    }
    static DEVICE u32 column(u32 j, u32 k) {
        const WarpPlace own = WarpPlace::own<T>();
        return own.across + j * 8 + own.within * 2 + k % 2;
    }
    static DEVICE void show() {}
    static DEVICE void wait() {}
    static DEVICE void multiply(Sums &sums, const u8 *stage) {
        const WarpPlace own = WarpPlace::own<T>();
        const u32 thread = threadIdx.x % WARP;
#pragma unroll
        for (u32 depth = 0; depth < DEPTH; depth += 32) {
            Operands<T> x;
#pragma unroll
            for (u32 slice = 0; slice < 2; slice++) {
#pragma unroll
                for (u32 i = 0; i < TALL; i++) {
                    read_lines(x.left[slice][i], left(stage, slice, own.down + i * 16 + thread % 16, depth + thread / 16 * 16));
                }
#pragma unroll
                for (u32 j = 0; j < BROAD; j += 2) {
                    u32 both[4];
                    const u32 line = own.across + j * 8 + thread % 8 + thread / 16 * 8;
                    read_lines(both, right(stage, slice, line, depth + thread / 8 % 2 * 16));
                    x.right[slice][j][0] = both[0], x.right[slice][j][1] = both[1];
                    x.right[slice][j + 1][0] = both[2], x.right[slice][j + 1][1] = both[3];
                }
            }
            multiply_all<T>(sums, x);
        }
    }
#endif
};

// Slices in shared memory as lines along the edge, of which the depth goes from line to line. A line is a piece longer than the
// tile, so that the same place of eight lines is in other banks.
template <class T>
struct EdgeLines {
    static constexpr u32 LEFT_LINE = T::ROWS + PIECE, RIGHT_LINE = T::COLUMNS + PIECE, DEPTH = PART * PIECE, STAGES = T::STAGES;
    static constexpr u32 LEFT = DEPTH * LEFT_LINE, RIGHT = DEPTH * RIGHT_LINE, ROOM = 2 * (LEFT + RIGHT);
    static constexpr u32 TALL = T::TALL, BROAD = T::BROAD;
    static constexpr bool IS_QUEUED = false;
    typedef Fixed16Sums<TALL, BROAD> Sums;

    static DEVICE const u8 *left(const u8 *stage, u32 slice, u32 row, u32 depth) { return stage + slice * LEFT + depth * LEFT_LINE + row; }
    static DEVICE const u8 *right(const u8 *stage, u32 slice, u32 column, u32 depth) {
        return stage + 2 * LEFT + slice * RIGHT + depth * RIGHT_LINE + column;
    }

    // A thread reads neighbours of the edge in pairs, and makes one operand of the first ones and one of the second ones.
    static DEVICE u32 row(u32 i, u32 k) {
        const WarpPlace own = WarpPlace::own<T>();
        return own.down + i * 16 + 2 * own.group + k / 2;
    }
    static DEVICE u32 column(u32 j, u32 k) {
        const WarpPlace own = WarpPlace::own<T>();
        return own.across + j / 2 * 16 + 2 * (2 * own.within + k % 2) + j % 2;
    }
    static DEVICE void show() {}
    static DEVICE void wait() {}

    // The depth's order within a product does not matter, if it is the same for both.
    static DEVICE void multiply(Sums &sums, const u8 *stage) {
        const WarpPlace own = WarpPlace::own<T>();
#pragma unroll
        for (u32 depth = 0; depth < DEPTH; depth += 32) {
            const u32 line = depth + threadIdx.x % WARP;
            Operands<T> x;
#pragma unroll
            for (u32 slice = 0; slice < 2; slice++) {
#pragma unroll
                for (u32 i = 0; i < TALL; i++) {
                    u32 pairs[4];
                    read_turned(pairs, left(stage, slice, own.down + i * 16, line));
                    x.left[slice][i][0] = first_of_pairs(pairs[0], pairs[1]), x.left[slice][i][1] = second_of_pairs(pairs[0], pairs[1]);
                    x.left[slice][i][2] = first_of_pairs(pairs[2], pairs[3]), x.left[slice][i][3] = second_of_pairs(pairs[2], pairs[3]);
                }
#pragma unroll
                for (u32 j = 0; j < BROAD; j += 2) {
                    u32 pairs[4];
                    read_turned(pairs, right(stage, slice, own.across + j * 8, line));
                    x.right[slice][j][0] = first_of_pairs(pairs[0], pairs[1]), x.right[slice][j + 1][0] = second_of_pairs(pairs[0], pairs[1]);
                    x.right[slice][j][1] = first_of_pairs(pairs[2], pairs[3]), x.right[slice][j + 1][1] = second_of_pairs(pairs[2], pairs[3]);
                }
            }
            multiply_all<T>(sums, x);
        }
    }
};

// Goes through the parts of a depth: `bring(stage)` begins the copies of the next one.
template <class L, class Bring>
DEVICE void go_through_parts(typename L::Sums &sums, u8 *room, u32 parts, Bring bring) {
    constexpr u32 STAGES = L::STAGES;
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
        L::show();
        // Now all threads have brought this part, and all are done with the one before, whose stage is free.
        __syncthreads();
        if (L::IS_QUEUED) L::multiply(sums, room + stage * L::ROOM);
        if (part + STAGES - 1 < parts) bring(room + (stage == 0 ? STAGES - 1 : stage - 1) * L::ROOM);
        end_copies();
        if (!L::IS_QUEUED) L::multiply(sums, room + stage * L::ROOM);
        L::wait();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    __syncthreads();
}
