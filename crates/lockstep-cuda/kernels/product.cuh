// Matrix products whose every number is one chain of fused multiply-adds in the order of the depth, as on the processor.
//
// A block computes a tile of C. Threads bring a part of the depth of A and B to shared memory together, and each of them
// goes on with its chains. No chain is ever split, and none goes beyond the depth: adding 0 would turn -0 into 0.
#pragma once
#include "lockstep.cuh"

// How a tile is parted: DOWN x ACROSS threads, of which each has ROWS x COLUMNS numbers, DOWN and ACROSS apart.
template <u32 DOWN_, u32 ACROSS_, u32 ROWS_, u32 COLUMNS_>
struct Tile {
    static constexpr u32 DOWN = DOWN_, ACROSS = ACROSS_, ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr u32 THREADS = DOWN * ACROSS, HEIGHT = DOWN * ROWS, WIDTH = ACROSS * COLUMNS;
    // The part of the depth that is in shared memory at a time.
    static constexpr u32 DEPTH = 32;
};

// For few rows, so that there are enough blocks; and for many, where each number that is brought is used often.
typedef Tile<8, 32, 1, 1> SmallTile;
typedef Tile<16, 16, 4, 4> LargeTile;

// Which numbers lie side by side in memory: neighbours along the depth, or across it.
enum Along { DEPTH_FIRST, EDGE_FIRST };

// Brings a part of an operand: `length` numbers along the edge, from `edge` on, of the DEPTH numbers from `depth` on. What
// is beyond the operand is 0 and not used.
template <class T, Along ALONG, u32 LENGTH, class Operand>
DEVICE void bring(float (&to)[T::DEPTH][LENGTH + 1], u32 edge, u32 edges, u32 depth, u32 depths, Operand operand) {
#pragma unroll 2
    for (u32 i = threadIdx.x; i < LENGTH * T::DEPTH; i += T::THREADS) {
        u32 e = ALONG == DEPTH_FIRST ? i / T::DEPTH : i % LENGTH;
        u32 d = ALONG == DEPTH_FIRST ? i % T::DEPTH : i / LENGTH;
        bool inside = edge + e < edges && depth + d < depths;
        to[d][e] = inside ? operand(edge + e, depth + d) : 0.0f;
    }
}

// The tile of C that this block has: `a(row, depth)` times `b(column, depth)`. A chain begins with `begin(row, column)`,
// and where it ends is given to `end(row, column, sum)`.
template <class T, Along ALONG_A, Along ALONG_B, class A, class B, class Begin, class End>
DEVICE void product(u32 rows, u32 columns, u32 depth, A a, B b, Begin begin, End end) {
    __shared__ float of_a[T::DEPTH][T::HEIGHT + 1];
    __shared__ float of_b[T::DEPTH][T::WIDTH + 1];
    const u32 top = blockIdx.y * T::HEIGHT, left = blockIdx.x * T::WIDTH;
    const u32 down = threadIdx.x / T::ACROSS, across = threadIdx.x % T::ACROSS;
    float sums[T::ROWS][T::COLUMNS];
#pragma unroll
    for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
        for (u32 j = 0; j < T::COLUMNS; j++) {
            u32 row = top + down + i * T::DOWN, column = left + across + j * T::ACROSS;
            sums[i][j] = row < rows && column < columns ? begin(row, column) : 0.0f;
        }
    }
    for (u32 from = 0; from < depth; from += T::DEPTH) {
        __syncthreads();
        bring<T, ALONG_A, T::HEIGHT>(of_a, top, rows, from, depth, a);
        bring<T, ALONG_B, T::WIDTH>(of_b, left, columns, from, depth, b);
        __syncthreads();
        auto add = [&](u32 d) {
#pragma unroll
            for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
                for (u32 j = 0; j < T::COLUMNS; j++) {
                    sums[i][j] = fmaf(of_a[d][down + i * T::DOWN], of_b[d][across + j * T::ACROSS], sums[i][j]);
                }
            }
        };
        if (from + T::DEPTH <= depth) {
#pragma unroll 8
            for (u32 d = 0; d < T::DEPTH; d++) add(d);
        } else {
#pragma unroll 1
            for (u32 d = 0; d < depth - from; d++) add(d);
        }
    }
#pragma unroll
    for (u32 i = 0; i < T::ROWS; i++) {
#pragma unroll
        for (u32 j = 0; j < T::COLUMNS; j++) {
            u32 row = top + down + i * T::DOWN, column = left + across + j * T::ACROSS;
            if (row < rows && column < columns) end(row, column, sums[i][j]);
        }
    }
}
