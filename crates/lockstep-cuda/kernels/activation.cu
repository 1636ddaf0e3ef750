// Activations that look at one number: GELU, SiLU, sigmoid, tanh and the leaky ReLU. All but the last hang on one
// exponential, of an argument that is never positive.
#include "normal.cuh"
#include "numbers.cuh"
#include "pointwise.cuh"

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
