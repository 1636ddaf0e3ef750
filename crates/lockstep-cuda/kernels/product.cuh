// Matrix products whose every number is one chain of fused multiply-adds in the order of the depth, as on the processor.
//
// A block computes a tile of C. Its threads bring parts of the depth of A and B to shared memory, some parts ahead, and each
// of them goes on with its chains. No chain is ever split, and none goes beyond the depth: adding 0 would turn -0 into 0.
#pragma once
#include "lockstep.cuh"

// How a tile is parted: DOWN x ACROSS threads, of which each has ROWS x COLUMNS numbers. STAGES parts of the depth, of DEPTH
// numbers each, are in shared memory or on their way.
template <u32 DOWN_, u32 ACROSS_, u32 ROWS_, u32 COLUMNS_, u32 DEPTH_, u32 STAGES_>
struct Tile {
    static constexpr u32 DOWN = DOWN_, ACROSS = ACROSS_, ROWS = ROWS_, COLUMNS = COLUMNS_;
    static constexpr u32 DEPTH = DEPTH_, STAGES = STAGES_;
    static constexpr u32 THREADS = DOWN * ACROSS, HEIGHT = DOWN * ROWS, WIDTH = ACROSS * COLUMNS;
    // A warp is 4 threads down and 8 across, so that what it reads at once lies in different banks.
    static DEVICE u32 down() { return threadIdx.x / WARP / (ACROSS / 8) * 4 + threadIdx.x % WARP / 8; }
    static DEVICE u32 across() { return threadIdx.x / WARP % (ACROSS / 8) * 8 + threadIdx.x % 8; }
};

// An operand in shared memory as lines along the depth, of LENGTH numbers of the edge. A line is 4 numbers longer than
// the depth, so that the same place of neighbouring lines is in other banks.
template <class T, u32 LENGTH>
struct Lines {
    static constexpr u32 LINE = T::DEPTH + 4, ROOM = LENGTH * LINE;
    // Every thread brings 4 numbers of some lines, EACH of them, always at the same place of the depth.
    static constexpr u32 FOURS = T::DEPTH / 4, STEP = T::THREADS / FOURS, EACH = LENGTH / STEP;
    static_assert(T::THREADS % FOURS == 0 && LENGTH % STEP == 0, "all threads bring as many");
    static DEVICE u32 edge(u32 i) { return threadIdx.x / FOURS + i * STEP; }
    static DEVICE u32 depth() { return threadIdx.x % FOURS * 4; }

    // Brings 4 numbers of line i, of which so many are inside; all at once if they are WIDE, and then all of them are inside
    // or none.
    template <bool WIDE>
    static DEVICE void bring(float *room, u32 i, const float *from, u32 inside) {
        float *to = room + edge(i) * LINE + depth();
        if constexpr (WIDE) {
            copy16(to, from, inside > 0);
        } else {
#pragma unroll
            for (u32 k = 0; k < 4; k++) copy4(to + k, from + k, k < inside);
        }
    }

    // Four numbers along the depth.
    static DEVICE float4 read(const float *room, u32 edge, u32 depth) { return *(const float4 *)(room + edge * LINE + depth); }
};

// An operand in shared memory as lines along the edge.
template <class T, u32 LENGTH>
struct Sheets {
    static constexpr u32 ROOM = T::DEPTH * LENGTH;
    static constexpr u32 FOURS = LENGTH / 4, STEP = T::THREADS / FOURS, EACH = T::DEPTH / STEP;
    static_assert(T::THREADS % FOURS == 0 && T::DEPTH % STEP == 0, "all threads bring as many");
    static DEVICE u32 edge() { return threadIdx.x % FOURS * 4; }
    static DEVICE u32 depth(u32 i) { return threadIdx.x / FOURS + i * STEP; }

    template <bool WIDE>
    static DEVICE void bring(float *room, u32 i, const float *from, u32 inside) {
        float *to = room + depth(i) * LENGTH + edge();
        if constexpr (WIDE) {
            copy16(to, from, inside > 0);
        } else {
#pragma unroll
            for (u32 k = 0; k < 4; k++) copy4(to + k, from + k, k < inside);
        }
    }

    // COUNT neighbours.
    template <u32 COUNT>
    static DEVICE void read(const float *room, u32 edge, u32 depth, float (&to)[COUNT]) {
        const float *from = room + depth * LENGTH + edge;
        if constexpr (COUNT % 4 == 0) {
#pragma unroll
            for (u32 k = 0; k < COUNT; k += 4) {
                const float4 four = *(const float4 *)(from + k);
                to[k] = four.x, to[k + 1] = four.y, to[k + 2] = four.z, to[k + 3] = four.w;
            }
        } else {
#pragma unroll
            for (u32 k = 0; k < COUNT; k++) to[k] = from[k];
        }
    }
};

// How many of 4 numbers from a place on are below an end; if they are WIDE, the end is a multiple of 4.
template <bool WIDE>
DEVICE u32 inside(u32 place, u32 end) { return place >= end ? 0 : WIDE ? 4 : min(end - place, 4u); }

// A product goes through the parts of its depth in three steps. `bring_ahead` begins the copies of the first parts that need
// not wait for the kernel before, `bring_first` the others, and `go_through` goes on with the chains: `add(part, stage)`
// when a part is there, while `bring(part, stage)` brings later ones.
template <u32 STAGES, class Bring>
DEVICE void bring_ahead(u32 parts, Bring bring) {
#pragma unroll 1
    for (u32 part = 0; part < STAGES - 1 && part < parts; part++) bring(part, part);
}

template <u32 STAGES, class Bring>
DEVICE void bring_first(u32 parts, Bring bring) {
#pragma unroll 1
    for (u32 part = 0; part < STAGES - 1; part++) {
        if (part < parts) bring(part, part);
        end_copies();
    }
}

template <u32 STAGES, class Bring, class Add>
DEVICE void go_through(u32 parts, Bring bring, Add add) {
    u32 stage = 0;
#pragma unroll 1
    for (u32 part = 0; part < parts; part++) {
        wait_for_copies<STAGES - 2>();
        // Now all threads have brought this part, and all are done with the one before, whose stage is free.
        __syncthreads();
        const u32 next = part + STAGES - 1, free = stage == 0 ? STAGES - 1 : stage - 1;
        if (next < parts) bring(next, free);
        end_copies();
        add(part, stage);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}

// Writes COUNT neighbours of a row, as far as they are inside. The first column is a multiple of COUNT.
template <u32 COUNT>
DEVICE void write_neighbours(float *row, u32 column, u32 columns, const float (&numbers)[COUNT]) {
    if constexpr (COUNT == 4) {
        if (columns % 4 == 0) {
            if (column < columns) *(float4 *)(row + column) = make_float4(numbers[0], numbers[1], numbers[2], numbers[3]);
            return;
        }
    }
#pragma unroll
    for (u32 k = 0; k < COUNT; k++) {
        if (column + k < columns) row[column + k] = numbers[k];
    }
}
