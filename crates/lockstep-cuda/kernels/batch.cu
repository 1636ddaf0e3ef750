// How a step begins and ends: the rows of the batch are gathered, and what the lanes came to is added up.
#include "lockstep.cuh"

struct Gather {
    // The data set: a row of numbers and a class for each sample.
    float *inputs;
    u32 *classes;
    // The samples of the epoch, in its order.
    u32 *order;
    Progress *progress;
    // The batch: inputs, classes, and which samples the rows are.
    float *x;
    u32 *row_classes;
    u32 *row_samples;
    // Samples of a full batch over all workers, and where in it this worker's rows begin.
    u32 batch;
    u32 first;
    u32 width;
};

// A block a row.
KERNEL(gather, 256, Gather) {
    const u32 row = blockIdx.x;
    const u32 sample = a.order[a.progress->in_epoch * a.batch + a.first + row];
    const float *from = a.inputs + (u64)sample * a.width;
    float *to = a.x + (u64)row * a.width;
    for (u32 i = threadIdx.x; i < a.width; i += 256) to[i] = from[i];
    if (threadIdx.x == 0) {
        a.row_samples[row] = sample;
        a.row_classes[row] = a.classes[sample];
    }
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

// One block; a thread has a lane. Rows are added in their order, and the steps of a lane in theirs.
KERNEL(end_step, 128, EndStep) {
    for (u32 lane = threadIdx.x; lane < a.lanes; lane += 128) {
        const u32 first = a.lane_rows[lane], end = a.lane_rows[lane + 1];
        RowSum step = {0.0, 0, end - first};
        for (u32 row = first; row < end; row++) {
            step.loss += a.losses[row];
            step.correct += a.correct[row];
        }
        LaneSum &sum = a.sums[a.lane_numbers[lane]];
        add(sum.epoch, step);
        add(sum.window, step);
        // NaN and infinities have all bits of the exponent set.
        const bool is_finite = (__double_as_longlong(step.loss) >> 52 & 0x7ff) != 0x7ff;
        if (!is_finite && sum.diverged_step == ~0ull) {
            sum.diverged_step = a.progress->step;
            sum.diverged_loss = step.loss;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        a.progress->step += 1;
        a.progress->in_epoch += 1;
    }
}
