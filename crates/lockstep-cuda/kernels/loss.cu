// Losses: what each row comes to, and the gradient by its scores. A warp has a row; sums are chains in the row's order.
#include "lockstep.cuh"

constexpr u32 WARP = 32, ALL = 0xffffffffu;

// The largest score of a row, and where it is: of equal ones the first, and 0 if there is none.
struct Best {
    float score;
    u32 place;
};

DEVICE Best best_of(const float *scores, u32 outputs, u32 lane) {
    Best best = {__uint_as_float(0xff800000u), 0};
    for (u32 j = lane; j < outputs; j += WARP) {
        if (scores[j] > best.score) best = {scores[j], j};
    }
    for (u32 step = WARP / 2; step > 0; step /= 2) {
        Best other = {__shfl_xor_sync(ALL, best.score, step), __shfl_xor_sync(ALL, best.place, step)};
        bool wins = other.score > best.score || (other.score == best.score && other.place < best.place);
        if (wins) best = other;
    }
    return best;
}

struct CrossEntropy {
    float *scores;
    // The gradient by the scores.
    float *gradient;
    // The class of every row.
    u32 *classes;
    // What every row comes to: its loss, and 1 if its largest score is at its class.
    double *losses;
    u32 *correct;
    u32 rows;
    u32 outputs;
    // What the gradient is multiplied by: the inverse of the rows of the whole batch.
    double scale;
};

KERNEL(cross_entropy, 128, CrossEntropy) {
    const u32 lane = threadIdx.x % WARP, row = blockIdx.x * (128 / WARP) + threadIdx.x / WARP;
    // Whole warps go: the others need nobody.
    if (row >= a.rows) return;
    const float *scores = a.scores + (u64)row * a.outputs;
    float *gradient = a.gradient + (u64)row * a.outputs;
    const u32 label = a.classes[row];
    const Best best = best_of(scores, a.outputs, lane);
    const double largest = (double)best.score;
    // Every thread of the warp adds up the same numbers in the same order.
    double sum = 0.0;
    for (u32 from = 0; from < a.outputs; from += WARP) {
        const u32 width = a.outputs - from < WARP ? a.outputs - from : WARP;
        const double e = lane < width ? own_exp((double)scores[from + lane] - largest) : 0.0;
        for (u32 j = 0; j < width; j++) sum += __shfl_sync(ALL, e, j);
    }
    for (u32 j = lane; j < a.outputs; j += WARP) {
        const double probability = own_exp((double)scores[j] - largest) / sum;
        gradient[j] = (float)((probability - (j == label ? 1.0 : 0.0)) * a.scale);
    }
    if (lane == 0) {
        a.losses[row] = own_ln(sum) - ((double)scores[label] - largest);
        a.correct[row] = best.place == label ? 1 : 0;
    }
}
