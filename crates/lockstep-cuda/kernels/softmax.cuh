// The softmax of a row, by a warp.
#pragma once
#include "lockstep.cuh"

// The largest score, and where it is: of equal ones the first, and 0 if there is none.
struct Best {
    float score;
    u32 place;
};

// The best of what all threads of a warp have.
DEVICE Best best_of_warp(Best best) {
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        Best other = {__shfl_xor_sync(ALL, best.score, step), __shfl_xor_sync(ALL, best.place, step)};
        bool wins = other.score > best.score || (other.score == best.score && other.place < best.place);
        if (wins) best = other;
    }
    return best;
}

// What the scores of a row come to.
struct Softmax {
    double largest;
    u32 best;
    // The sum of e to the power of what each score is above the largest, and this thread's part of it.
    double sum;
    double part;
};

// Of at most 32 scores, one for each thread.
DEVICE Softmax softmax_of(float score, u32 count, u32 lane) {
    const bool is_score = lane < count;
    const float none = __uint_as_float(0xff800000u);
    Best best = {none, 0};
    if (is_score && score > none) best = {score, lane};
    best = best_of_warp(best);
    Softmax s;
    s.largest = (double)best.score;
    s.best = best.place;
    s.part = is_score ? own_exp((double)score - s.largest) : 0.0;
    s.sum = 0.0;
    // Every thread adds up the same numbers in the same order.
    for (u32 j = 0; j < count; j++) s.sum += __shfl_sync(ALL, s.part, j);
    return s;
}
