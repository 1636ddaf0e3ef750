// Sums of the lanes' gradients.
#pragma once
#include "numbers.cuh"

// Which sums are formed of the lanes' gradients, in order: `from` is added to `into`.
struct LaneSums {
    // Of the first lane; those of the next begin `stride` numbers later.
    float *gradients;
    u64 stride;
    // Pairs of lanes: into, from.
    u32 *adds;
    u32 count;
    // The lane that has the sum of all of them then.
    u32 result;
};

// Forms the sums of W numbers from i on, and returns those of all lanes.
template <u32 W>
DEVICE Numbers<W> sum_lanes(const LaneSums &s, u64 i) {
    // The sum that was formed last, which is often what the next one needs.
    Numbers<W> sum = {};
    u32 last = ~0u;
#pragma unroll 1
    for (u32 k = 0; k < s.count; k++) {
        const u32 into = s.adds[2 * k], from = s.adds[2 * k + 1];
        const Numbers<W> more = from == last ? sum : read<W>(s.gradients + from * s.stride + i);
        sum = read<W>(s.gradients + into * s.stride + i);
#pragma unroll
        for (u32 j = 0; j < W; j++) sum.of[j] += more.of[j];
        write(s.gradients + into * s.stride + i, sum);
        last = into;
    }
    return s.result == last ? sum : read<W>(s.gradients + s.result * s.stride + i);
}

DEVICE float sum_lanes(const LaneSums &s, u64 i) { return sum_lanes<1>(s, i).of[0]; }
