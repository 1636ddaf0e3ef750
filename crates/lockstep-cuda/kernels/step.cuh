// How a step begins and ends: which samples its rows are, how it updates, and what its lanes came to.
#pragma once
#include "optimizer.cuh"

// What the first kernel of a step finds out for all others. Nobody counts steps on before the last one.
struct BeginStep {
    // The samples of the epoch, in its order, of which a full batch has so many, and this worker's rows begin there; without
    // it, the host tells the samples.
    u32 *order;
    u32 batch;
    u32 first;
    // Which sample each row is.
    u32 *samples;
    // How the epoch's steps update, and how this one does; none in a gang.
    StepRate *rates;
    StepRate *rate;
    Progress *progress;
};

DEVICE u32 sample_of_row(const BeginStep &b, u32 row) {
    return b.order[b.progress->in_epoch * b.batch + b.first + row];
}

// Notes how this step updates. One thread does it.
DEVICE void note_rate(const BeginStep &b) {
    if (b.rates) *b.rate = b.rates[b.progress->in_epoch];
}

// What some rows came to.
struct RowSum {
    double loss;
    u64 correct;
    u64 rows;
};

DEVICE void add(RowSum &sum, const RowSum &more) {
    sum.loss += more.loss;
    sum.correct += more.correct;
    sum.rows += more.rows;
}

// What a lane has come to.
struct LaneSum {
    // Since the epoch began, and since the sums were read.
    RowSum epoch;
    RowSum window;
    // In the last step that it had rows in.
    double last;
    // The first step whose loss was not finite, and that loss; as long as there is none, all bits of the step are set.
    u64 diverged_step;
    double diverged_loss;
};

struct EndStep {
    double *losses;
    u32 *correct;
    // The first row of every lane, and where the last lane ends.
    u32 *lane_rows;
    // Which of the worker's lanes each of them is.
    u32 *lane_numbers;
    LaneSum *sums;
    Progress *progress;
    u32 lanes;
};

DEVICE void end_lane(const EndStep &a, u32 lane, const RowSum &step) {
    LaneSum &sum = a.sums[a.lane_numbers[lane]];
    add(sum.epoch, step);
    add(sum.window, step);
    sum.last = step.loss;
    // NaN and infinities have all bits of the exponent set.
    const bool is_finite = (__double_as_longlong(step.loss) >> 52 & 0x7ff) != 0x7ff;
    if (!is_finite && sum.diverged_step == ~0ull) {
        sum.diverged_step = a.progress->step;
        sum.diverged_loss = step.loss;
    }
}

// Ends a step, by a block of THREADS threads. A thread has a lane: rows are added in their order, and the steps of a lane in
// theirs. All threads bring rows to shared memory meanwhile.
template <u32 THREADS>
DEVICE void sum_and_count(const EndStep &a) {
    constexpr u32 ROWS = 512;
    __shared__ double losses[ROWS];
    __shared__ u32 correct[ROWS];
    const u32 rows = a.lanes > 0 ? a.lane_rows[a.lanes] : 0;
    for (u32 group = 0; group < a.lanes; group += THREADS) {
        const u32 lane = group + threadIdx.x;
        const u32 first = lane < a.lanes ? a.lane_rows[lane] : 0, end = lane < a.lanes ? a.lane_rows[lane + 1] : 0;
        RowSum step = {0.0, 0, end - first};
        for (u32 from = 0; from < rows; from += ROWS) {
            __syncthreads();
            for (u32 i = threadIdx.x; i < ROWS && from + i < rows; i += THREADS) {
                losses[i] = a.losses[from + i];
                correct[i] = a.correct[from + i];
            }
            __syncthreads();
            const u32 to = min(end, from + ROWS);
#pragma unroll 8
            for (u32 row = first < from ? from : first; row < to; row++) {
                step.loss += losses[row - from];
                step.correct += correct[row - from];
            }
        }
        if (lane < a.lanes) end_lane(a, lane, step);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        a.progress->step += 1;
        a.progress->in_epoch += 1;
    }
}
