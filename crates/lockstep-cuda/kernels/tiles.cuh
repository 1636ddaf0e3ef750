// Matrix products in tiles, for many rows and columns. A block of 8 x 8 threads has a tile of at most 64 x 64 numbers,
// each of which is one chain of fused multiply-adds in the order of the depth, as on the processor. While the threads
// multiply a part of the depth, the next parts are on their way to shared memory.
#pragma once
#include "lockstep.cuh"

constexpr u32 SIDE = 8, TILE_THREADS = SIDE * SIDE;

// How the numbers of an edge are shared out to 8 threads that have COUNT of them each: in groups of up to 4 neighbours, so
// that a thread reads several at a time, and threads beside each other read other banks.
template <u32 COUNT>
struct Spread {
    static constexpr u32 GROUP = COUNT < 4 ? COUNT : 4;

    // The place of number i of a thread.
    static DEVICE u32 place(u32 thread, u32 i) { return thread * GROUP + (i / GROUP * SIDE * GROUP + i % GROUP); }

    // Reads the numbers of a thread.
    static DEVICE void read(const float *edge, u32 thread, float (&to)[COUNT]) {
        edge += thread * GROUP;
#pragma unroll
        for (int i = 0; i < (int)COUNT; i += (int)GROUP) {
            const float *from = edge + i * (int)SIDE;
            if constexpr (GROUP == 4) {
                const float4 four = read_four(from);
                to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
            } else if constexpr (GROUP == 2) {
                const float2 two = read_two(from);
                to[i] = two.x, to[i + 1] = two.y;
            } else {
                to[i] = *from;
            }
        }
    }

    // Writes them.
    static DEVICE void write(const float (&from)[COUNT], float *edge, u32 thread) {
        edge += thread * GROUP;
#pragma unroll
        for (int i = 0; i < (int)COUNT; i += (int)GROUP) {
            float *to = edge + i * (int)SIDE;
            if constexpr (GROUP == 4) *(float4 *)to = make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
            else if constexpr (GROUP == 2) *(float2 *)to = make_float2(from[i], from[i + 1]);
            else *to = from[i];
        }
    }
};

// Which numbers of the left operand lie side by side in memory: those along the depth, or those along the edge. Of the right
// operand it is always those along the edge.
enum LeftOrder { DEPTH_FIRST, EDGE_FIRST };

// The tile of a block: ROWS x COLUMNS numbers for each thread. STAGES parts of the depth, of DEPTH numbers each, are in
// shared memory or on their way.
template <u32 ROWS_, u32 COLUMNS_, u32 DEPTH_, u32 STAGES_, LeftOrder ORDER_>
struct Tile {
    static constexpr u32 ROWS = ROWS_, COLUMNS = COLUMNS_, DEPTH = DEPTH_, STAGES = STAGES_;
    static constexpr LeftOrder ORDER = ORDER_;
    static constexpr u32 HEIGHT = SIDE * ROWS, WIDTH = SIDE * COLUMNS;
    // Lines of the left operand, as far apart that threads beside each other read other banks.
    static constexpr u32 LEFT_LINE = ORDER == DEPTH_FIRST ? DEPTH + 4 : HEIGHT;
    static constexpr u32 LEFT = ORDER == DEPTH_FIRST ? HEIGHT * LEFT_LINE : DEPTH * LEFT_LINE;
    static constexpr u32 STAGE = LEFT + DEPTH * WIDTH;
    // Numbers of shared memory.
    static constexpr u32 ROOM = STAGES * STAGE;

    float sums[ROWS][COLUMNS];

    static DEVICE u32 down() { return threadIdx.x / SIDE; }
    static DEVICE u32 across() { return threadIdx.x % SIDE; }

    // The place in the tile of row i and column j of this thread.
    static DEVICE u32 row(u32 i) { return ORDER == DEPTH_FIRST ? down() + SIDE * i : Spread<ROWS>::place(down(), i); }
    static DEVICE u32 column(u32 j) { return Spread<COLUMNS>::place(across(), j); }

    // Begins every chain with a number that belongs to its column.
    template <class Begin>
    DEVICE void begin(Begin begin) {
#pragma unroll
        for (u32 j = 0; j < COLUMNS; j++) {
            const float first = begin(column(j));
#pragma unroll
            for (u32 i = 0; i < ROWS; i++) sums[i][j] = first;
        }
    }

    // Goes on with the chains of row i.
    DEVICE void multiply(u32 i, float left, const float (&right)[COLUMNS]) {
#pragma unroll
        for (u32 j = 0; j < COLUMNS; j++) sums[i][j] = fmaf(left, right[j], sums[i][j]);
    }

    // Goes on with the chains by a stage. Rows whose bit in `rows` is not set are left as they are; without MASKED, all
    // bits are set.
    template <bool MASKED>
    DEVICE void add_stage(const float *stage, u32 rows) {
        const float *right = stage + LEFT;
        if constexpr (ORDER == DEPTH_FIRST) {
            const float *left = stage + down() * LEFT_LINE;
#pragma unroll 2
            for (int d = 0; d < (int)DEPTH; d += 4) {
                float a[ROWS][4];
#pragma unroll
                for (int i = 0; i < (int)ROWS; i++) {
                    const float4 four = read_four(left + i * (int)(SIDE * LEFT_LINE) + d);
                    a[i][0] = four.x, a[i][1] = four.y, a[i][2] = four.z, a[i][3] = four.w;
                }
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    float b[COLUMNS];
                    Spread<COLUMNS>::read(right + (d + k) * (int)WIDTH, across(), b);
#pragma unroll
                    for (u32 i = 0; i < ROWS; i++) {
                        if (!MASKED || (rows >> i & 1)) multiply(i, a[i][k], b);
                    }
                }
            }
        } else {
#pragma unroll 8
            for (int d = 0; d < (int)DEPTH; d++) {
                float a[ROWS], b[COLUMNS];
                Spread<ROWS>::read(stage + d * (int)LEFT_LINE, down(), a);
                Spread<COLUMNS>::read(right + d * (int)WIDTH, across(), b);
#pragma unroll
                for (u32 i = 0; i < ROWS; i++) multiply(i, a[i], b);
            }
        }
    }

    // The same where the depth ends within a stage: no chain goes beyond, since adding 0 would turn -0 into 0.
    DEVICE void add_end(const float *stage, u32 depth, u32 rows) {
        const float *left = stage, *right = stage + LEFT;
#pragma unroll 1
        for (u32 d = 0; d < depth; d++) {
            float b[COLUMNS];
            Spread<COLUMNS>::read(right + d * WIDTH, across(), b);
#pragma unroll
            for (u32 i = 0; i < ROWS; i++) {
                const float a = ORDER == DEPTH_FIRST ? left[row(i) * LEFT_LINE + d] : left[d * LEFT_LINE + row(i)];
                if (rows >> i & 1) multiply(i, a, b);
            }
        }
    }

    // Goes on with the chains by all of a stage, or by what there is of the last one.
    DEVICE void add(const float *stage, u32 depth) {
        if (depth >= DEPTH) add_stage<false>(stage, ~0u);
        else add_end(stage, depth, ~0u);
    }

    // Gives away the numbers, 4 neighbours of a row at a time: with the places of row and column. By way of shared memory,
    // so that threads beside each other write side by side.
    template <class End>
    DEVICE void end(float *room, End end) const {
        constexpr u32 LINE = WIDTH + 4;
        static_assert(HEIGHT * LINE <= ROOM, "room for all numbers");
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            Spread<COLUMNS>::write(sums[i], room + row(i) * LINE, across());
        }
        __syncthreads();
#pragma unroll 2
        for (u32 i = threadIdx.x; i < HEIGHT * WIDTH / 4; i += TILE_THREADS) {
            const u32 row = i / (WIDTH / 4), column = i % (WIDTH / 4) * 4;
            end(row, column, read_four(room + row * LINE + column));
        }
    }
};

// Lets `bring` fetch the stages of a product and `add` go on with the chains by them, in order. Each is given the number of
// a stage and where it lies.
template <class T, class Bring, class Add>
DEVICE void in_stages(float *room, u32 stages, Bring bring, Add add) {
    constexpr u32 AHEAD = T::STAGES - 1;
    u32 at = 0;
#pragma unroll 1
    for (u32 s = 0; s < stages + AHEAD; s++) {
        // The oldest stage is there for all threads, and all are done with the one before, which the next one overwrites.
        if (s >= AHEAD) {
            wait_for_copies<AHEAD - 1>();
            __syncthreads();
        }
        if (s < stages) bring(s, room + at * T::STAGE);
        end_copies();
        at = at == AHEAD ? 0 : at + 1;
        if (s >= AHEAD) add(s - AHEAD, room + at * T::STAGE);
    }
}

// Copies lines of LENGTH numbers to shared memory, where they lie LINE apart: COPIED numbers at a time, 4 or 1. Every thread
// copies the same place of several lines. `from(place)` is what says of a line where its number at that place lies, and
// whether it is inside of the operand.
template <u32 COPIED, u32 LINES, u32 LENGTH, u32 LINE, class From>
DEVICE void copy_lines(float *to, From from) {
    // Threads that copy a line together.
    constexpr u32 THREADS_OF_LINE = LENGTH / COPIED, STEP = TILE_THREADS / THREADS_OF_LINE;
    static_assert(TILE_THREADS % THREADS_OF_LINE == 0 && LINES % STEP == 0, "every thread copies as much");
    const u32 first = threadIdx.x / THREADS_OF_LINE, at = threadIdx.x % THREADS_OF_LINE * COPIED;
    float *mine = to + first * LINE + at;
    auto at_place = from(at);
#pragma unroll 4
    for (int line = 0; line < (int)LINES; line += (int)STEP) {
        bool is_inside = false;
        const float *number = at_place(first + line, is_inside);
        if constexpr (COPIED == 4) copy16(mine + line * (int)LINE, number, is_inside);
        else copy4(mine + line * (int)LINE, number, is_inside);
    }
}

// Writes four numbers of a line from column `first` on, as far as the line goes.
DEVICE void write_four(const float (&four)[4], float *line, u32 first, u32 width) {
    if (width % 4 == 0) {
        *(float4 *)(line + first) = make_float4(four[0], four[1], four[2], four[3]);
    } else {
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            if (first + k < width) line[first + k] = four[k];
        }
    }
}

// Goes on with the chains of a tile by all of a depth. `left(d)` is what says of a row where its number at that depth lies,
// `right(d, column)` where a number of the right operand lies; both may say that it is not inside. Numbers are copied by
// fours where those of an operand allow it.
template <class T, class Left, class Right>
DEVICE void multiply(T &tile, float *room, u32 depths, bool fours_of_left, bool fours_of_right, Left left, Right right) {
    in_stages<T>(
        room, (depths + T::DEPTH - 1) / T::DEPTH,
        [&](u32 s, float *stage) {
            const u32 first = s * T::DEPTH;
            auto of_left = [&](u32 d) {
                auto at_depth = left(first + d);
                return [=](u32 row, bool &is_inside) {
                    is_inside = first + d < depths;
                    return at_depth(row, is_inside);
                };
            };
            auto of_right = [&](u32 column) {
                return [&, column](u32 d, bool &is_inside) {
                    is_inside = first + d < depths;
                    return right(first + d, column, is_inside);
                };
            };
            if (fours_of_left) copy_lines<4, T::HEIGHT, T::DEPTH, T::LEFT_LINE>(stage, of_left);
            else copy_lines<1, T::HEIGHT, T::DEPTH, T::LEFT_LINE>(stage, of_left);
            if (fours_of_right) copy_lines<4, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, of_right);
            else copy_lines<1, T::DEPTH, T::WIDTH, T::WIDTH>(stage + T::LEFT, of_right);
        },
        [&](u32 s, const float *stage) { tile.add(stage, depths - s * T::DEPTH); });
}
