// What ends a step: gradients of dense layers' weights, updates by them and by those that other kernels have formed, running
// statistics, and the sums of the losses. All of it is one launch over a table of jobs.
//
// A gradient is one chain over a lane's rows for each weight, and lanes are added in their order. Where the device updates,
// a block has all lanes of its weights, one after the other, and the gradient never leaves its registers.
#include "lane_sums.cuh"
#include "product.cuh"
#include "step.cuh"

// A tile of 64 inputs and a panel of outputs, 4 x 4 weights for each thread. Parts are of 16 rows.
typedef Tile<16, 8, 4, 4, 16, 4> Weights;

// What a job is: a dense layer, an update by gradients that there are, or else running statistics.
constexpr u32 DENSE = 0, UPDATE = 1;

// Numbers of a job that is no layer that a block has.
constexpr u32 EACH = 16, PIECE = Weights::THREADS * EACH;

struct LearnJob {
    // The inputs of a dense layer, and the gradient by its outputs.
    float *x;
    float *dy;
    // Where its weights and its bias lie in the state; or where the numbers of another job begin and end.
    u64 first;
    u64 second;
    u32 inputs;
    u32 outputs;
    // The first of the blocks that have it.
    u32 block;
    u32 kind;
    // Whether x has a row for each sample of the data set; and whether inputs and outputs are multiples of 4 and the weights
    // begin at such a place.
    u32 by_sample;
    u32 wide;
    // The part of the learning rate, or of the way that running statistics go.
    float part;
};

struct Learn {
    LearnJob jobs[12];
    u32 count;
    // Blocks of all jobs. If there is one more, it ends the step.
    u32 blocks;
    // Which sample each row is.
    u32 *samples;
    // The first row of every lane, and where the last lane ends; for each lane how many sums are complete after it, of the
    // two newest that are not yet added, if a block has all lanes. Else the lanes are the third direction of the grid.
    u32 *lane_rows;
    u32 *merges;
    u32 lane_count;
    // If the device does not update: the gradients of the lanes, where a number of the state is.
    float *gradients;
    u64 stride;
    // The state, the optimizer's vectors, and the gradients that other kernels have formed.
    float *values;
    float *planes[2];
    LaneSums lanes;
    // Which rule it is, its settings, and how this step updates.
    u32 rule;
    float settings[4];
    StepRate *rate;
    EndStep end;
};

// The numbers that a thread updates: those of a tile or a piece, and one of a bias.
constexpr u32 HELD = EACH + 1;

struct Held {
    float values[HELD], planes[2][HELD];
};

// Sums that wait for their other half, when the lanes are added.
constexpr u32 MOST_WAITING = 8;

template <class Rule>
DEVICE void update_all(const Learn &a, const Rule &rule, Held &held, const float (&gradient)[HELD]) {
#pragma unroll
    for (u32 i = 0; i < HELD; i++) rule(held.values[i], gradient[i], &held.planes[0][i], &held.planes[1][i]);
}

DEVICE void update_all(const Learn &a, float part, Held &held, const float (&gradient)[HELD]) {
    const StepRate rate = *a.rate;
    switch (a.rule) {
    case 0: return update_all(a, PlainSgd(a.settings, rate, part), held, gradient);
    case 1: return update_all(a, HeavyBall(a.settings, rate, part), held, gradient);
    case 2: return update_all(a, LookAhead(a.settings, rate, part), held, gradient);
    case 3: return update_all(a, Adam<false>(a.settings, rate, part), held, gradient);
    case 4: return update_all(a, Adam<true>(a.settings, rate, part), held, gradient);
    case 5: return update_all(a, PlainRmsProp(a.settings, rate, part), held, gradient);
    case 6: return update_all(a, HeavyRmsProp(a.settings, rate, part), held, gradient);
    default: return update_all(a, Lion(a.settings, rate, part), held, gradient);
    }
}

// Calls `each(i, place)` for every number of a thread that is inside, with its place in the state; `four(i, place)` for 4 of
// them that are neighbours.
template <bool WIDE>
struct DensePlaces {
    u64 first;
    u32 row, column, inputs, width;
    bool has_bias;
    u64 bias;
    template <class Four, class One>
    DEVICE void visit(Four four, One one) const {
        if (column < width) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const u64 place = first + (u64)(row + i) * width + column;
                if (row + i >= inputs) continue;
                if (WIDE) {
                    four(4 * i, place);
                } else {
#pragma unroll
                    for (u32 j = 0; j < 4; j++) {
                        if (column + j < width) one(4 * i + j, place + j);
                    }
                }
            }
        }
        if (has_bias) one(EACH, bias);
    }
};

struct PiecePlaces {
    u64 first, end;
    template <class Four, class One>
    DEVICE void visit(Four, One one) const {
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u64 place = first + i * Weights::THREADS;
            if (place < end) one(i, place);
        }
    }
};

DEVICE void read_four(const float *from, float *to) {
    const float4 four = *(const float4 *)from;
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}

DEVICE void write_four(float *to, const float *from) {
    *(float4 *)to = make_float4(from[0], from[1], from[2], from[3]);
}

// What is held of the numbers at some places. Nobody has written to them in this step.
template <class Places>
DEVICE void hold(const Learn &a, const Places &places, Held &held) {
#pragma unroll
    for (u32 i = 0; i < HELD; i++) held.values[i] = held.planes[0][i] = held.planes[1][i] = 0.0f;
    places.visit([&](u32 i, u64 at) { read_four(a.values + at, held.values + i); },
                 [&](u32 i, u64 at) { held.values[i] = a.values[at]; });
#pragma unroll
    for (u32 plane = 0; plane < 2; plane++) {
        const float *from = a.planes[plane];
        if (!from) continue;
        places.visit([&](u32 i, u64 at) { read_four(from + at, held.planes[plane] + i); },
                     [&](u32 i, u64 at) { held.planes[plane][i] = from[at]; });
    }
}

template <class Places>
DEVICE void write(const Learn &a, const Places &places, const Held &held, bool with_planes) {
    places.visit([&](u32 i, u64 at) { write_four(a.values + at, held.values + i); },
                 [&](u32 i, u64 at) { a.values[at] = held.values[i]; });
#pragma unroll
    for (u32 plane = 0; plane < 2; plane++) {
        float *to = a.planes[plane];
        if (!to || !with_planes) continue;
        places.visit([&](u32 i, u64 at) { write_four(to + at, held.planes[plane] + i); },
                     [&](u32 i, u64 at) { to[at] = held.planes[plane][i]; });
    }
}

// What the threads of a block bring of both operands.
typedef Sheets<Weights, 64> Left;
typedef Sheets<Weights, PANEL> Right;
typedef float Room[Weights::STAGES][Left::ROOM + Right::ROOM];

// The chains of a tile over some rows; the last sum is that of a bias.
template <bool WIDE>
DEVICE void chains(
    const Learn &a, const LearnJob &job, Room &room, u32 top, u32 left, u32 first, u32 rows, float (&sums)[HELD]) {
    const u32 parts = (rows + Weights::DEPTH - 1) / Weights::DEPTH;
    const u32 input = top + Left::edge(), output = left + Right::edge();
    const u32 inputs = inside<WIDE>(input, job.inputs), outputs = inside<WIDE>(output, job.outputs);
    auto bring = [&](u32 part, u32 stage) {
#pragma unroll
        for (u32 i = 0; i < Left::EACH; i++) {
            const u32 d = part * Weights::DEPTH + Left::depth(i);
            const bool is_row = d < rows;
            const u32 row = !is_row ? 0 : job.by_sample ? a.samples[first + d] : first + d;
            Left::template bring<WIDE>(room[stage], i, job.x + (u64)row * job.inputs + input, is_row ? inputs : 0);
        }
#pragma unroll
        for (u32 i = 0; i < Right::EACH; i++) {
            const u32 d = part * Weights::DEPTH + Right::depth(i);
            const float *from = job.dy + (u64)(first + d) * job.outputs + output;
            Right::template bring<WIDE>(room[stage] + Left::ROOM, i, from, d < rows ? outputs : 0);
        }
    };
#pragma unroll
    for (u32 i = 0; i < HELD; i++) sums[i] = 0.0f;
    // The stages may still be in use by the lane before.
    __syncthreads();
    bring_first<Weights::STAGES>(parts, bring);
    go_through<Weights::STAGES>(parts, bring, [&](u32 part, u32 stage) {
        const float *x = room[stage], *dy = x + Left::ROOM;
        auto add = [&](u32 d) {
            float of_x[4], of_dy[4];
            Left::read(x, Weights::down() * 4, d, of_x);
            Right::read(dy, Weights::across() * 4, d, of_dy);
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
#pragma unroll
                for (u32 j = 0; j < 4; j++) sums[4 * i + j] = fmaf(of_x[i], of_dy[j], sums[4 * i + j]);
            }
        };
        const u32 depth = min(Weights::DEPTH, rows - part * Weights::DEPTH);
        if (depth == Weights::DEPTH) {
#pragma unroll 4
            for (u32 d = 0; d < Weights::DEPTH; d++) add(d);
        } else {
#pragma unroll 1
            for (u32 d = 0; d < depth; d++) add(d);
        }
        // The blocks of the first inputs add up the bias of their panel.
        if (top == 0 && threadIdx.x < PANEL) {
#pragma unroll 4
            for (u32 d = 0; d < depth; d++) sums[EACH] += dy[d * PANEL + threadIdx.x];
        }
    });
}

// The gradient of a tile by all lanes, which are added as soon as both halves of a sum are there.
template <bool WIDE>
DEVICE void chains_of_lanes(const Learn &a, const LearnJob &job, Room &room, u32 top, u32 left, float (&sums)[HELD]) {
    chains<WIDE>(a, job, room, top, left, a.lane_rows[0], a.lane_rows[1] - a.lane_rows[0], sums);
    if (a.lane_count == 1) return;
    float waiting[MOST_WAITING][HELD];
    u32 count = 0;
#pragma unroll 1
    for (u32 lane = 1; lane < a.lane_count; lane++) {
#pragma unroll
        for (u32 i = 0; i < HELD; i++) waiting[count][i] = sums[i];
        count++;
        chains<WIDE>(a, job, room, top, left, a.lane_rows[lane], a.lane_rows[lane + 1] - a.lane_rows[lane], sums);
#pragma unroll 1
        for (u32 merges = a.merges[lane]; merges > 0; merges--) {
            count--;
#pragma unroll
            for (u32 i = 0; i < HELD; i++) sums[i] = waiting[count][i] + sums[i];
        }
    }
}

template <bool WIDE>
DEVICE void learn_dense(const Learn &a, const LearnJob &job, Room &room) {
    const u32 tiles = (job.inputs + 63) / 64, tile = blockIdx.x - job.block;
    const u32 top = tile % tiles * 64, left = tile / tiles * PANEL, width = min(PANEL, job.outputs - left);
    DensePlaces<WIDE> places;
    places.first = job.first + (u64)left * job.inputs;
    places.row = top + Weights::down() * 4;
    places.column = Weights::across() * 4;
    places.inputs = job.inputs;
    places.width = width;
    places.has_bias = top == 0 && threadIdx.x < width;
    places.bias = job.second + left + threadIdx.x;
    float gradient[HELD];
    if (a.gradients) {
        wait_for_previous();
        const u32 first = a.lane_rows[blockIdx.z];
        chains<WIDE>(a, job, room, top, left, first, a.lane_rows[blockIdx.z + 1] - first, gradient);
        float *to = a.gradients + blockIdx.z * a.stride;
        places.visit([&](u32 i, u64 at) { write_four(to + at, gradient + i); },
                     [&](u32 i, u64 at) { to[at] = gradient[i]; });
        return;
    }
    Held held;
    hold(a, places, held);
    wait_for_previous();
    chains_of_lanes<WIDE>(a, job, room, top, left, gradient);
    update_all(a, job.part, held, gradient);
    write(a, places, held, true);
}

DEVICE void learn_piece(const Learn &a, const LearnJob &job) {
    const PiecePlaces places = {job.first + (u64)(blockIdx.x - job.block) * PIECE + threadIdx.x, job.second};
    Held held;
    hold(a, places, held);
    wait_for_previous();
    float gradient[HELD];
#pragma unroll
    for (u32 i = 0; i < HELD; i++) gradient[i] = 0.0f;
    places.visit([](u32, u64) {}, [&](u32 i, u64 at) { gradient[i] = sum_lanes(a.lanes, at); });
    if (job.kind == UPDATE) {
        update_all(a, job.part, held, gradient);
    } else {
#pragma unroll
        for (u32 i = 0; i < HELD; i++) {
            held.values[i] = flushed(held.values[i] * (1.0f - job.part) + gradient[i] * job.part);
        }
    }
    write(a, places, held, job.kind == UPDATE);
}

KERNEL_AHEAD(learn, Weights::THREADS, 3, Learn) {
    __shared__ __align__(16) Room room;
    let_next_begin();
    if (blockIdx.x == a.blocks) {
        wait_for_previous();
        if (blockIdx.z == 0) sum_and_count<Weights::THREADS>(a.end);
        return;
    }
    u32 number = 0;
    while (number + 1 < a.count && blockIdx.x >= a.jobs[number + 1].block) number++;
    const LearnJob &job = a.jobs[number];
    if (job.kind == DENSE && job.wide) learn_dense<true>(a, job, room);
    else if (job.kind == DENSE) learn_dense<false>(a, job, room);
    else learn_piece(a, job);
}
