// One exponential, of an argument that is never positive, and the normal distribution, as lockstep-nn's `gelu.rs` has them.
#pragma once
#include "lockstep.cuh"

// e to the power -x, for x of at least 0; beyond 87, e to the power -87.
DEVICE float exp_of_negative(float x) {
    constexpr float WHOLE = 12582912.0f;
    constexpr float SERIES[6] = {0.5f, 0.16666665f, 4.1665796e-2f, 8.333452e-3f, 1.3982e-3f, 1.9875691e-4f};
    // NaN is not above 87 and stays.
    x = x > 87.0f ? -87.0f : -x;
    const float shifted = x * 1.44269504088896340735992468100189214f + WHOLE, n = shifted - WHOLE;
    const float r = (x - n * 0.6933594f) - n * -2.1219444e-4f;
    float sum = 0.0f;
#pragma unroll
    for (int i = 5; i >= 0; i--) sum = sum * r + SERIES[i];
    const float power = __uint_as_float((__float_as_uint(shifted) << 23) + 0x3f800000u);
    return power * (1.0f + (r + r * r * sum));
}

// How much of a standard normal distribution lies below x, and its density there.
struct Normal {
    float share, density;
    DEVICE Normal(float x) {
        constexpr float TAIL[9] = {0.1396214f,    0.13986187f, 0.11983287f,  0.10550798f,  -0.023109782f,
                                   0.15917408f, -0.25571418f, 0.14397166f, -0.029145924f};
        const float bell = exp_of_negative(0.5f * x * x), t = 1.0f / (1.0f + 0.35f * fabsf(x));
        float sum = 0.0f;
#pragma unroll
        for (int i = 8; i >= 0; i--) sum = (sum + TAIL[i]) * t;
        const float beyond = sum * bell;
        share = x < 0.0f ? beyond : 1.0f - beyond;
        density = 0.3989423f * bell;
    }
};
