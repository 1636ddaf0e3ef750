// Sums of the lanes' gradients.
#pragma once
#include "lockstep.cuh"

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

// Forms the sums of number i, and returns that of all lanes.
DEVICE float sum_lanes(const LaneSums &s, u64 i) {
    for (u32 k = 0; k < s.count; k++) {
        s.gradients[s.adds[2 * k] * s.stride + i] += s.gradients[s.adds[2 * k + 1] * s.stride + i];
    }
    return s.gradients[s.result * s.stride + i];
}
