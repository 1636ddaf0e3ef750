// x, but at least 0 and at most 6.
#pragma once
#include "lockstep.cuh"

// NaN is neither, and stays.
DEVICE float relu6(float x) {
    const float low = 0.0f > x ? 0.0f : x;
    return 6.0f < low ? 6.0f : low;
}
