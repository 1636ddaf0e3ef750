// Sums over lanes, and what becomes of parameters and running statistics by them, number by number.
#include "lane_sums.cuh"
#include "optimizer.cuh"

struct Update {
    LaneSums lanes;
    float *values;
    // The optimizer's vectors.
    float *first;
    float *second;
    // Those of the epoch's steps.
    StepRate *rates;
    Progress *progress;
    // What the gradient is multiplied by, if it may be clipped.
    float *scale;
    // The numbers that are updated.
    u64 begin;
    u64 end;
    // The part of the learning rate that they learn with.
    float part;
    // The optimizer's settings.
    float settings[4];
};

// Numbers, their gradients, and the optimizer's of them.
template <u32 W>
struct Updated {
    Numbers<W> gradients, values, first, second;
};

template <u32 W, class Rule>
DEVICE Updated<W> bring(const Update &a, u64 i) {
    Updated<W> found = {sum_lanes<W>(a.lanes, i), read<W>(a.values + i), {}, {}};
    if (Rule::PLANES > 0) found.first = read<W>(a.first + i);
    if (Rule::PLANES > 1) found.second = read<W>(a.second + i);
    return found;
}

template <u32 W, class Rule>
DEVICE void apply(const Update &a, const Rule &rule, float scale, u64 i, Updated<W> found) {
#pragma unroll
    for (u32 j = 0; j < W; j++) {
        rule(found.values.of[j], found.gradients.of[j] * scale, &found.first.of[j], &found.second.of[j]);
    }
    write(a.values + i, found.values);
    if (Rule::PLANES > 0) write(a.first + i, found.first);
    if (Rule::PLANES > 1) write(a.second + i, found.second);
}

template <class Rule>
DEVICE void update(const Update &a) {
    const Rule rule(a.settings, a.rates[a.progress->in_epoch], a.part);
    const float scale = a.scale ? *a.scale : 1.0f;
    for_edges(a.begin, a.end, [&](u64 i) { apply<1>(a, rule, scale, i, bring<1, Rule>(a, i)); });
    for_fours<1>(
        a.begin, a.end, [&](u64 i) { return bring<4, Rule>(a, i); },
        [&](u64 i, const Updated<4> &found) { apply<4>(a, rule, scale, i, found); });
}

KERNEL(update_plain_sgd, 256, Update) { update<PlainSgd>(a); }
KERNEL(update_heavy_ball, 256, Update) { update<HeavyBall>(a); }
KERNEL(update_look_ahead, 256, Update) { update<LookAhead>(a); }
KERNEL(update_adam, 256, Update) { update<Adam<false>>(a); }
KERNEL(update_adam_w, 256, Update) { update<Adam<true>>(a); }
KERNEL(update_rms_prop, 256, Update) { update<PlainRmsProp>(a); }
KERNEL(update_heavy_rms_prop, 256, Update) { update<HeavyRmsProp>(a); }
KERNEL(update_lion, 256, Update) { update<Lion>(a); }

// Running statistics move towards what the batch observed.
struct Blend {
    LaneSums lanes;
    float *values;
    u64 begin;
    u64 end;
    float share;
};

KERNEL(blend, 256, Blend) {
    for (u64 i = a.begin + thread_of_grid(); i < a.end; i += threads_of_grid()) {
        a.values[i] = flushed(a.values[i] * (1.0f - a.share) + sum_lanes(a.lanes, i) * a.share);
    }
}

// The sums that a worker of a gang hands to the others.
struct AddLanes {
    LaneSums lanes;
    u64 begin;
    u64 end;
};

KERNEL(add_lanes, 256, AddLanes) {
    for_edges(a.begin, a.end, [&](u64 i) { sum_lanes(a.lanes, i); });
    for_fours<1>(
        a.begin, a.end, [&](u64 i) { return sum_lanes<4>(a.lanes, i); }, [](u64, const Numbers<4> &) {});
}
