// What is done to the numbers of an activation where they lie: by the kernel that makes them, or by one of its own.
#pragma once
#include "lockstep.cuh"

constexpr u32 RELU = 0, DROPOUT = 1;

struct PointwiseStep {
    u32 kind;
    // Of a dropout: a draw of 16 bits below this drops; what is kept is multiplied; which layer it is.
    u32 threshold;
    float scale;
    u32 layer;
};

struct Pointwise {
    // In this order, on the way there.
    PointwiseStep steps[4];
    u32 count;
    // Whether one of them is a ReLU.
    u32 has_relu;
    // Numbers of a row.
    u32 features;
    // Which sample each row is: draws belong to a sample, not to a place.
    u32 *samples;
    Progress *progress;
    u64 key;
};

// Whether a dropout keeps number `column` of a row. Two decisions share a draw, the first half of a piece of 256 numbers
// the low bits, and the second half the high ones.
DEVICE bool is_kept(const Pointwise &p, const PointwiseStep &s, u32 row, u32 column) {
    u32 piece = column / 256, at = column % 256, rest = p.features - piece * 256;
    u32 draws = ((rest < 256 ? rest : 256) + 1) / 2;
    u32 number = at < draws ? at : at - draws;
    u64 step = p.progress->step;
    u32 draw = philox(p.key, piece * 32 + number / 4, p.samples[row], (u32)step, (u32)(step >> 32) | s.layer << 24, number % 4);
    return (at < draws ? draw & 0xffffu : draw >> 16) >= s.threshold;
}

// What becomes of a number of an activation.
DEVICE float pointwise(const Pointwise &p, float y, u32 row, u32 column) {
#pragma unroll 1
    for (u32 i = 0; i < p.count; i++) {
        const PointwiseStep &s = p.steps[i];
        // A NaN stays, so that a diverged run shows.
        if (s.kind == RELU) y = y < 0.0f ? 0.0f : y;
        else y = is_kept(p, s, row, column) ? y * s.scale : 0.0f;
    }
    return y;
}

// The gradient by what the number was before, from that by what it became, which is y. A number that was dropped before
// or after a ReLU is 0, and one that is not 0 was kept: nothing has to be drawn again.
DEVICE float pointwise_gradient(const Pointwise &p, float y, float dy, u32 row, u32 column) {
    if (p.has_relu && y == 0.0f) return 0.0f;
#pragma unroll 1
    for (u32 i = p.count; i-- > 0;) {
        const PointwiseStep &s = p.steps[i];
        if (s.kind == DROPOUT) dy = p.has_relu || is_kept(p, s, row, column) ? dy * s.scale : 0.0f;
    }
    return dy;
}
