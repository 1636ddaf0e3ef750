// What becomes of a parameter by its gradient: the optimizers' rules, number by number.
#pragma once
#include "lockstep.cuh"

// What a step's update depends on.
struct StepRate {
    // 1 - beta^t for both betas of Adam.
    double corrections[2];
    float rate;
    u32 unused;
};

// 0 in the place of a subnormal number and of -0: what an update writes is never either. NaN stays.
DEVICE float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? 0.0f : x; }

// Gradient descent: momentum and weight decay.
struct Sgd {
    float rate, momentum, decay;
    DEVICE Sgd(const float (&settings)[4], const StepRate &r, float part)
        : rate(r.rate * part), momentum(settings[0]), decay(settings[1]) {}
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
    DEVICE Adam(const float (&settings)[4], const StepRate &r, float part)
        : beta1(settings[0]), beta2(settings[1]), epsilon(settings[2]) {
        const float rate = r.rate * part;
        added = DECOUPLED ? 0.0f : settings[3];
        pull = DECOUPLED ? 1.0f - rate * settings[3] : 1.0f;
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
    DEVICE RmsProp(const float (&settings)[4], const StepRate &r, float part)
        : rate(r.rate * part), alpha(settings[0]), epsilon(settings[1]), momentum(settings[2]), decay(settings[3]) {}
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
    DEVICE Lion(const float (&settings)[4], const StepRate &r, float part)
        : rate(r.rate * part), beta1(settings[0]), beta2(settings[1]), pull(1.0f - rate * settings[2]) {}
    DEVICE void operator()(float &p, float g, float *mean, float *) const {
        const float direction = beta1 * *mean + (1.0f - beta1) * g;
        // 0 stays 0, and NaN stays NaN, so that a diverged run shows.
        const float sign = direction > 0.0f ? 1.0f : direction < 0.0f ? -1.0f : direction;
        p = flushed(p * pull - rate * sign);
        *mean = flushed(beta2 * *mean + (1.0f - beta2) * g);
    }
};
