// What workers exchange whose devices read each other's memory.
//
// A worker writes its partial sums to memory that all of them see, and once all have, each adds up all of them, in the order of
// the lanes' tree. Steps take turns in two halves of that memory: whoever writes to a half again knows that all others have
// written to the other one since, and so have read this one.
#include "numbers.cuh"

struct HandOver {
    // The gradients of this worker's lanes; those of the next lane begin `stride` numbers later.
    float *gradients;
    u64 stride;
    // Which lanes have the partial sums.
    u64 *lanes;
    // Where each of them goes, in both halves.
    u64 *to;
    Progress *progress;
    // The numbers that learn.
    u64 begin;
    u64 end;
    u32 count;
    u32 unused;
};

DEVICE const u64 *of_this_step(const u64 *places, u32 count, const Progress *progress) {
    return places + (progress->step & 1) * count;
}

// The second direction of the grid has the partial sums.
KERNEL(hand_over, 256, HandOver) {
    const float *from = a.gradients + a.lanes[blockIdx.y] * a.stride;
    float *to = (float *)of_this_step(a.to, a.count, a.progress)[blockIdx.y];
    for_edges(a.begin, a.end, [&](u64 i) { to[i] = from[i]; });
    for_fours<4>(
        a.begin, a.end, [&](u64 i) { return read<4>(from + i); },
        [&](u64 i, const Numbers<4> &numbers) { write(to + i, numbers); });
}

struct TakeSums {
    // Where all workers' partial sums are, in both halves; and how many sums are complete after each of them, of the two newest
    // that are not yet added.
    u64 *from;
    u64 *merges;
    Progress *progress;
    float *to;
    u64 begin;
    u64 end;
    u32 count;
    u32 unused;
};

// Sums that wait for their other half.
constexpr u32 MOST_WAITING = 16;

template <u32 W>
DEVICE Numbers<W> sum_of_all(const TakeSums &a, const u64 *from, u64 i) {
    Numbers<W> waiting[MOST_WAITING];
    u32 count = 0;
    Numbers<W> sum = read<W>((const float *)from[0] + i);
#pragma unroll 1
    for (u32 k = 1; k < a.count; k++) {
        waiting[count] = sum;
        count++;
        sum = read<W>((const float *)from[k] + i);
#pragma unroll 1
        for (u64 merges = a.merges[k]; merges > 0; merges--) {
            count--;
#pragma unroll
            for (u32 j = 0; j < W; j++) sum.of[j] = waiting[count].of[j] + sum.of[j];
        }
    }
    return sum;
}

KERNEL(take_sums, 256, TakeSums) {
    const u64 *from = of_this_step(a.from, a.count, a.progress);
    for_edges(a.begin, a.end, [&](u64 i) { a.to[i] = sum_of_all<1>(a, from, i).of[0]; });
    for_fours<1>(
        a.begin, a.end, [&](u64 i) { return sum_of_all<4>(a, from, i); },
        [&](u64 i, const Numbers<4> &sum) { write(a.to + i, sum); });
}
