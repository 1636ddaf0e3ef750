// How a step begins and ends, where no other kernel does that: rows of the batch are brought to where the network reads
// them, and what the lanes came to is added up.
#include "step.cuh"

// The rows of a data set that is in the device's memory.
struct Gather {
    // A row for each sample.
    float *inputs;
    float *x;
    u32 width;
    BeginStep begin;
};

// A block a row.
KERNEL(gather, 256, Gather) {
    const u32 row = blockIdx.x, sample = a.begin.next_samples[row];
    const float *from = a.inputs + (u64)sample * a.width;
    float *to = a.x + (u64)row * a.width;
    for (u32 i = threadIdx.x; i < a.width; i += 256) to[i] = from[i];
    if (threadIdx.x == 0) a.begin.samples[row] = sample;
    if (row == 0 && threadIdx.x == 0) note_rate(a.begin);
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
    TakenPart parts[9];
    // The factor of the step, which goes to its place among those of the epoch; without it, there are none.
    double *factor;
    double *factors;
    // Words from one slot to the next.
    u64 stride;
    u32 slots;
    BeginStep begin;
};

KERNEL(take, 256, Take) {
    const Progress &progress = *a.begin.progress;
    const u64 slot = progress.step % a.slots * a.stride;
    for (u32 k = 0; k < 9; k++) {
        const TakenPart &part = a.parts[k];
        // Parts begin at multiples of 256 bytes.
        const u64 whole = part.words / 4;
        const float4 *from = (const float4 *)(part.from + slot);
        float4 *to = (float4 *)part.to;
        for (u64 i = thread_of_grid(); i < whole; i += threads_of_grid()) to[i] = from[i];
        const u64 rest = whole * 4 + thread_of_grid();
        if (rest < part.words) part.to[rest] = part.from[slot + rest];
    }
    if (thread_of_grid() > 0) return;
    if (a.factor) a.factors[progress.in_epoch] = a.factor[slot / 2];
    note_rate(a.begin);
}

KERNEL(end_step, 256, EndStep) { sum_and_count<256>(a); }
