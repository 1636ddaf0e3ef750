// Activations that look at one number: GELU, SiLU, sigmoid, tanh and the leaky ReLU. All but the last hang on one
// exponential, of an argument that is never positive.
#include "numbers.cuh"
#include "pointwise.cuh"

// e to the power -x, for x of at least 0; beyond 87, e to the power -87.
DEVICE float exp_of_negative(float x) {
    constexpr float WHOLE = 12582912.0f;
    constexpr float SERIES[6] = {0.5f, 0.16666665f, 4.1665796e-2f, 8.333452e-3f, 1.3982e-3f, 1.9875691e-4f};
    // NaN is not above 87 and stays.
    x = x > 87.0f ? -87.0f : -x;
    const float shifted = x * 1.44269504088896340735992468100189214f + WHOLE, n = shifted - WHOLE;
    const float r = (x - n * 0.6933594f) - n * -2.1219444e-4f;
    float sum = 0.0f;
#pragma unroll
    for (int i = 5; i >= 0; i--) sum = sum * r + SERIES[i];
    const float power = __uint_as_float((__float_as_uint(shifted) << 23) + 0x3f800000u);
    return power * (1.0f + (r + r * r * sum));
}

// How much of a standard normal distribution lies below x, and its density there.
struct Normal {
    float share, density;
    DEVICE Normal(float x) {
        constexpr float TAIL[9] = {0.1396214f,    0.13986187f, 0.11983287f,  0.10550798f,  -0.023109782f,
                                   0.15917408f, -0.25571418f, 0.14397166f, -0.029145924f};
        const float bell = exp_of_negative(0.5f * x * x), t = 1.0f / (1.0f + 0.35f * fabsf(x));
        float sum = 0.0f;
#pragma unroll
        for (int i = 8; i >= 0; i--) sum = (sum + TAIL[i]) * t;
        const float beyond = sum * bell;
        share = x < 0.0f ? beyond : 1.0f - beyond;
        density = 0.3989423f * bell;
    }
};

DEVICE float sigmoid_of(float x) {
    const float small = exp_of_negative(fabsf(x)), above = 1.0f / (1.0f + small);
    return x < 0.0f ? small * above : above;
}

DEVICE float tanh_of(float x) {
    const float small = exp_of_negative(2.0f * fabsf(x)), above = (1.0f - small) / (1.0f + small);
    return x < 0.0f ? -above : above;
}

// What each is, and its gradient.
struct Gelu {
    DEVICE static float of(float x, float) { return x * Normal(x).share; }
    DEVICE static float gradient(float x, float dy, float) {
        const Normal normal(x);
        return dy * (normal.share + x * normal.density);
    }
};

struct Silu {
    DEVICE static float of(float x, float) { return x * sigmoid_of(x); }
    DEVICE static float gradient(float x, float dy, float) {
        const float share = sigmoid_of(x);
        return dy * (share * (1.0f + x * (1.0f - share)));
    }
};

struct Sigmoid {
    DEVICE static float of(float x, float) { return sigmoid_of(x); }
    DEVICE static float gradient(float x, float dy, float) {
        const float share = sigmoid_of(x);
        return dy * (share * (1.0f - share));
    }
};

struct Tanh {
    DEVICE static float of(float x, float) { return tanh_of(x); }
    DEVICE static float gradient(float x, float dy, float) {
        const float y = tanh_of(x);
        return dy * (1.0f - y * y);
    }
};

struct LeakyRelu {
    DEVICE static float of(float x, float slope) { return x < 0.0f ? slope * x : x; }
    DEVICE static float gradient(float x, float dy, float slope) { return x > 0.0f ? dy : slope * dy; }
};

struct ActivationForward {
    float *x;
    float *y;
    u64 numbers;
    // Below 0, of a leaky ReLU.
    float slope;
    Pointwise then;
};

template <class Function, u32 W, bool DRAWS>
DEVICE void forward(const ActivationForward &a) {
    map<W, 1>(
        a.numbers, a.y, [&](u64 i) { return read<W>(a.x + i); },
        [&](u64 i, const Numbers<W> &x, u32 j) {
            return pointwise_at<DRAWS>(a.then, Function::of(x.of[j], a.slope), i);
        });
}

struct ActivationBackward {
    float *x;
    float *dy;
    float *dx;
    u64 numbers;
    float slope;
    // What was done to the input where it lies, x.
    Pointwise below;
};

template <u32 W>
struct InputAndGradient {
    Numbers<W> x, dy;
};

template <class Function, u32 W, bool DRAWS>
DEVICE void backward(const ActivationBackward &a) {
    map<W, 1>(
        a.numbers, a.dx, [&](u64 i) { return InputAndGradient<W>{read<W>(a.x + i), read<W>(a.dy + i)}; },
        [&](u64 i, const InputAndGradient<W> &in, u32 j) {
            const float dx = Function::gradient(in.x.of[j], in.dy.of[j], a.slope);
            return pointwise_gradient_at<DRAWS>(a.below, in.x.of[j], dx, i);
        });
}

// Both ways of a function.
#define ACTIVATION(name, Function)                                              \
    template <u32 W, bool DRAWS>                                                \
    DEVICE void name##_forth(const ActivationForward &a) {                      \
        forward<Function, W, DRAWS>(a);                                         \
    }                                                                           \
    template <u32 W, bool DRAWS>                                                \
    DEVICE void name##_back(const ActivationBackward &a) {                      \
        backward<Function, W, DRAWS>(a);                                        \
    }                                                                           \
    KERNEL(name##_forward, 256, ActivationForward) { VARIANTS(name##_forth, a, a.numbers, a.then); }    \
    KERNEL(name##_backward, 256, ActivationBackward) { VARIANTS(name##_back, a, a.numbers, a.below); }

ACTIVATION(gelu, Gelu)
ACTIVATION(silu, Silu)
ACTIVATION(sigmoid, Sigmoid)
ACTIVATION(tanh, Tanh)
ACTIVATION(leaky_relu, LeakyRelu)
