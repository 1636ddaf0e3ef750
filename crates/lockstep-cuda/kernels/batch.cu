// How a step begins and ends: rows of the batch are brought to where the network reads them, and what the lanes came to is
// added up.
#include "lockstep.cuh"

// The rows of a data set that is in the device's memory.
struct Gather {
    // A row for each sample.
    float *inputs;
    // Which sample each row of the batch is.
    u32 *samples;
    float *x;
    u32 width;
};

// A block a row.
KERNEL(gather, 256, Gather) {
    const float *from = a.inputs + (u64)a.samples[blockIdx.x] * a.width;
    float *to = a.x + (u64)blockIdx.x * a.width;
    for (u32 i = threadIdx.x; i < a.width; i += 256) to[i] = from[i];
}

// A part of a batch that the host has prepared: words of 4 bytes.
struct TakenPart {
    u32 *to;
    // Where it is in the first slot of the ring.
    u32 *from;
    u64 words;
};

// The batch of this step out of a ring of slots, as the host wrote it there.
struct Take {
    TakenPart parts[7];
    // The factor of the step, which goes to its place among those of the epoch; without it, there are none.
    double *factor;
    double *factors;
    Progress *progress;
    // Words from one slot to the next.
    u64 stride;
    u32 slots;
};

KERNEL(take, 256, Take) {
    const u64 slot = a.progress->step % a.slots * a.stride;
    for (u32 k = 0; k < 7; k++) {
        const TakenPart &part = a.parts[k];
        // Parts begin at multiples of 256 bytes.
        const u64 whole = part.words / 4;
        const Four *from = (const Four *)(part.from + slot);
        Four *to = (Four *)part.to;
        for (u64 i = thread_of_grid(); i < whole; i += threads_of_grid()) to[i] = from[i];
        const u64 rest = whole * 4 + thread_of_grid();
        if (rest < part.words) part.to[rest] = part.from[slot + rest];
    }
    if (a.factor && thread_of_grid() == 0) a.factors[a.progress->in_epoch] = a.factor[slot / 2];
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

// Which samples this worker's rows will be in the next step.
struct NextSamples {
    // The samples of the epoch, in its order; none if the host tells them with each batch.
    u32 *order;
    u32 *samples;
    // Steps of the epoch, and samples of a full batch over all workers.
    u32 steps;
    u32 batch;
    // Where this worker's rows begin in a full batch and in the last one of an epoch, and how many they are.
    u32 first[2];
    u32 rows[2];
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
    NextSamples next;
};

DEVICE void end_lane(const EndStep &a, u32 lane) {
    const u32 first = a.lane_rows[lane], end = a.lane_rows[lane + 1];
    RowSum step = {0.0, 0, end - first};
    for (u32 row = first; row < end; row++) {
        step.loss += a.losses[row];
        step.correct += a.correct[row];
    }
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

// One block; a thread has a lane. Rows are added in their order, and the steps of a lane in theirs.
KERNEL(end_step, 256, EndStep) {
    for (u32 lane = threadIdx.x; lane < a.lanes; lane += 256) end_lane(a, lane);
    const NextSamples &n = a.next;
    const u64 next = a.progress->in_epoch + 1;
    if (n.order && next < n.steps) {
        const u32 last = next + 1 == n.steps ? 1 : 0;
        const u32 *from = n.order + next * n.batch + n.first[last];
        for (u32 row = threadIdx.x; row < n.rows[last]; row += 256) n.samples[row] = from[row];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        a.progress->step += 1;
        a.progress->in_epoch += 1;
    }
}
