// Sums over lanes, and what becomes of parameters and running statistics by them, number by number.
#include "lockstep.cuh"

// Which sums are formed of the lanes' gradients, in order: `from` is added to `into`.
struct LaneSums {
    // Of the first lane; those of the next begin `stride` numbers later.
    float *gradients;
    u64 stride;
    // Pairs of lanes: into, from.
    u32 *adds;
    u32 count;
    // The lane that has the sum of all of them then.
    u32 result;
};

// Forms the sums of number i, and returns that of all lanes.
DEVICE float sum_lanes(const LaneSums &s, u64 i) {
    for (u32 k = 0; k < s.count; k++) {
        s.gradients[s.adds[2 * k] * s.stride + i] += s.gradients[s.adds[2 * k + 1] * s.stride + i];
    }
    return s.gradients[s.result * s.stride + i];
}

// What a step's update depends on.
struct StepRate {
    // 1 - beta^t for both betas of Adam.
    double corrections[2];
    float rate;
    u32 unused;
};

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

// 0 in the place of a subnormal number and of -0: what an update writes is never either. NaN stays.
DEVICE float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? 0.0f : x; }

// Gradient descent: momentum and weight decay.
struct Sgd {
    float rate, momentum, decay;
    DEVICE Sgd(const Update &a, const StepRate &r) : rate(r.rate * a.part), momentum(a.settings[0]), decay(a.settings[1]) {}
};

struct PlainSgd : Sgd {
    using Sgd::Sgd;
    DEVICE void operator()(float &p, float g, float *, float *) const { p = flushed(p - rate * (g + decay * p)); }
};

struct HeavyBall : Sgd {
    using Sgd::Sgd;
    DEVICE void operator()(float &p, float g, float *velocity, float *) const {
        *velocity = flushed(momentum * *velocity + (g + decay * p));
        p = flushed(p - rate * *velocity);
    }
};

struct LookAhead : Sgd {
    using Sgd::Sgd;
    DEVICE void operator()(float &p, float g, float *velocity, float *) const {
        g = g + decay * p;
        *velocity = flushed(momentum * *velocity + g);
        p = flushed(p - rate * (g + momentum * *velocity));
    }
};

// Adam and AdamW: both betas, epsilon and weight decay. AdamW's pull acts on the parameters.
template <bool DECOUPLED>
struct Adam {
    float beta1, beta2, epsilon, added, pull, step, root;
    DEVICE Adam(const Update &a, const StepRate &r) : beta1(a.settings[0]), beta2(a.settings[1]), epsilon(a.settings[2]) {
        const float rate = r.rate * a.part;
        added = DECOUPLED ? 0.0f : a.settings[3];
        pull = DECOUPLED ? 1.0f - rate * a.settings[3] : 1.0f;
        step = (float)((double)rate / r.corrections[0]);
        root = (float)(1.0 / sqrt(r.corrections[1]));
    }
    DEVICE void operator()(float &p, float g, float *mean, float *square) const {
        g = g + added * p;
        *mean = flushed(beta1 * *mean + (1.0f - beta1) * g);
        *square = flushed(beta2 * *square + (1.0f - beta2) * g * g);
        p = flushed(p * pull - step * *mean / (sqrtf(*square) * root + epsilon));
    }
};

// RMSprop: alpha, epsilon, momentum and weight decay.
struct RmsProp {
    float rate, alpha, epsilon, momentum, decay;
    DEVICE RmsProp(const Update &a, const StepRate &r)
        : rate(r.rate * a.part), alpha(a.settings[0]), epsilon(a.settings[1]), momentum(a.settings[2]), decay(a.settings[3]) {}
    // The gradient over the root of its square's average.
    DEVICE float direction(float p, float g, float *square) const {
        g = g + decay * p;
        *square = flushed(alpha * *square + (1.0f - alpha) * g * g);
        return g / (sqrtf(*square) + epsilon);
    }
};

struct PlainRmsProp : RmsProp {
    using RmsProp::RmsProp;
    DEVICE void operator()(float &p, float g, float *square, float *) const {
        p = flushed(p - rate * direction(p, g, square));
    }
};

struct HeavyRmsProp : RmsProp {
    using RmsProp::RmsProp;
    DEVICE void operator()(float &p, float g, float *square, float *velocity) const {
        *velocity = flushed(momentum * *velocity + direction(p, g, square));
        p = flushed(p - rate * *velocity);
    }
};

// Lion: both betas and weight decay.
struct Lion {
    float rate, beta1, beta2, pull;
    DEVICE Lion(const Update &a, const StepRate &r)
        : rate(r.rate * a.part), beta1(a.settings[0]), beta2(a.settings[1]), pull(1.0f - rate * a.settings[2]) {}
    DEVICE void operator()(float &p, float g, float *mean, float *) const {
        const float direction = beta1 * *mean + (1.0f - beta1) * g;
        // 0 stays 0, and NaN stays NaN, so that a diverged run shows.
        const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : direction;
        p = flushed(p * pull - rate * sign);
        *mean = flushed(beta2 * *mean + (1.0f - beta2) * g);
    }
};

template <class Rule>
DEVICE void update(const Update &a) {
    const Rule rule(a, a.rates[a.progress->in_epoch]);
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
