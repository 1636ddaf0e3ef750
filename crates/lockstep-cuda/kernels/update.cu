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
    // The numbers that are updated.
    u64 begin;
    u64 end;
    // The part of the learning rate that they learn with.
    float part;
    // The optimizer's settings.
    float settings[4];
};

template <class Rule>
DEVICE void update(const Update &a) {
    const Rule rule(a.settings, a.rates[a.progress->in_epoch], a.part);
    for (u64 i = a.begin + thread_of_grid(); i < a.end; i += threads_of_grid()) {
        const float gradient = sum_lanes(a.lanes, i);
        rule(a.values[i], gradient, a.first + i, a.second + i);
    }
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
    for (u64 i = a.begin + thread_of_grid(); i < a.end; i += threads_of_grid()) sum_lanes(a.lanes, i);
}
