// What all losses have in common. A warp has a row of scores.
#pragma once
#include "warps.cuh"

constexpr u32 LOSS_THREADS = 128;

// Rows of scores, and what becomes of them.
struct LossRows {
    float *scores;
    // The gradient by the scores.
    float *gradient;
    // What every row comes to: its loss, and how often it was right.
    double *losses;
    u32 *correct;
    u32 rows;
    u32 outputs;
    // What gradients are multiplied by: the inverse of the rows of the whole batch.
    double scale;
};

// How much rows count; what is not there counts 1.
struct RowWeights {
    // By row.
    float *weights;
    // By step.
    double *factors;
    Progress *progress;
};

DEVICE double weight_of(const RowWeights &w, u32 row) {
    const double factor = w.factors ? w.factors[w.progress->in_epoch] : 1.0;
    return w.weights ? factor * (double)w.weights[row] : factor;
}

// A row, as the threads of its warp see it.
struct LossRow {
    u32 number, outputs;
    const float *scores;
    float *gradient;
    // Whether there is one. Whole warps have none.
    bool is_there;
    DEVICE LossRow(const LossRows &of) {
        number = blockIdx.x * (LOSS_THREADS / WARP) + threadIdx.x / WARP;
        outputs = of.outputs;
        scores = of.scores + (u64)number * outputs;
        gradient = of.gradient + (u64)number * outputs;
        is_there = number < of.rows;
    }
    // Writes the gradient by each score, which `each(j)` has.
    template <class Each>
    DEVICE void gradients(Each each) const {
        for (u32 j = thread_of_warp(); j < outputs; j += WARP) gradient[j] = (float)each(j);
    }
    DEVICE void end(const LossRows &of, double loss, u32 correct) const {
        if (thread_of_warp() != 0) return;
        of.losses[number] = loss;
        of.correct[number] = correct;
    }
};

// What the probabilities of a row have in common.
struct Softmax {
    const float *scores;
    // Where the largest score is: of equal ones the first, and 0 if there is none.
    u32 best;
    double largest, sum;
    DEVICE Softmax(const LossRow &row) : scores(row.scores) {
        float score = __uint_as_float(0xff800000u);
        best = 0;
        for (u32 j = thread_of_warp(); j < row.outputs; j += WARP) {
            if (scores[j] > score) score = scores[j], best = j;
        }
        for (u32 step = WARP / 2; step > 0; step /= 2) {
            const float other = __shfl_xor_sync(ALL, score, step);
            const u32 place = __shfl_xor_sync(ALL, best, step);
            if (other > score || (other == score && place < best)) score = other, best = place;
        }
        largest = (double)score;
        sum = chain_of_warp(row.outputs, [&](u32 j) { return own_exp((double)scores[j] - largest); });
    }
    DEVICE double probability(u32 j) const { return own_exp((double)scores[j] - largest) / sum; }
    // The cross-entropy, if this is the row's class.
    DEVICE double loss(u32 j) const { return own_ln(sum) - ((double)scores[j] - largest); }
};
