// Numbers that lie side by side, and loops over many of them. A thread reads as many bytes at once as it can, and several
// times before it needs the first of them: that is what memory is made for.
#pragma once
#include "lockstep.cuh"

// W numbers side by side, which begin at a multiple of their size.
template <u32 W>
struct __align__(4 * W) Numbers {
    float of[W];
};

template <u32 W>
DEVICE Numbers<W> read(const float *at) {
    return *reinterpret_cast<const Numbers<W> *>(at);
}

template <u32 W>
DEVICE void write(float *at, const Numbers<W> &numbers) {
    *reinterpret_cast<Numbers<W> *>(at) = numbers;
}

// The same from any place, as tensors of the state vector have.
template <u32 W>
DEVICE Numbers<W> read_one_by_one(const float *at) {
    Numbers<W> numbers;
#pragma unroll
    for (u32 j = 0; j < W; j++) numbers.of[j] = at[j];
    return numbers;
}

// `use(i, bring(i))` for i from `from` on, `step` apart, below `end`. MANY are brought before the first is used.
template <u32 MANY, class Index, class Bring, class Use>
DEVICE void for_many(Index from, Index end, Index step, Bring bring, Use use) {
    if constexpr (MANY > 1) {
        for (; from < end && (MANY - 1) * step < end - from; from += MANY * step) {
            decltype(bring(from)) brought[MANY];
#pragma unroll
            for (u32 k = 0; k < MANY; k++) brought[k] = bring(from + k * step);
#pragma unroll
            for (u32 k = 0; k < MANY; k++) use(from + k * step, brought[k]);
        }
    }
#pragma unroll 1
    for (; from < end; from += step) use(from, bring(from));
}

// `to[i + j] = each(i + j, brought, j)` for all numbers of an array, W at a time, where `brought` is what `bring(i)` read.
template <u32 W, u32 MANY = W, class Bring, class Each>
DEVICE void map(u64 numbers, float *to, Bring bring, Each each) {
    for_many<MANY>(
        thread_of_grid() * W, numbers, threads_of_grid() * W, bring, [&](u64 i, const decltype(bring(0)) &brought) {
            Numbers<W> made;
#pragma unroll
            for (u32 j = 0; j < W; j++) made.of[j] = each(i + j, brought, j);
            write(to + i, made);
        });
}

// The next multiple of 4.
DEVICE u64 up_to_four(u64 i) { return (i + 3) / 4 * 4; }

// `each(i)` for what of a range is before or behind its whole groups of four.
template <class Each>
DEVICE void for_edges(u64 begin, u64 end, Each each) {
    const u64 whole = up_to_four(begin), rest = end / 4 * 4;
    const u64 before = whole < rest ? whole - begin : end - begin, behind = whole < rest ? end - rest : 0;
#pragma unroll 1
    for (u64 i = thread_of_grid(); i < before + behind; i += threads_of_grid()) {
        each(i < before ? begin + i : rest + i - before);
    }
}

// `use(i, bring(i))` for the groups of four between the edges, MANY at a time.
template <u32 MANY, class Bring, class Use>
DEVICE void for_fours(u64 begin, u64 end, Bring bring, Use use) {
    for_many<MANY>(up_to_four(begin) + 4 * thread_of_grid(), end / 4 * 4, 4 * threads_of_grid(), bring, use);
}
