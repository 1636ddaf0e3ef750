// The transforms of Winograd's convolution of 6 x 6 pixels with 3 x 3 weights, as lockstep-nn has them: each is a small
// matrix, applied to the columns and then to the rows of a square.
#pragma once
#include "lockstep.cuh"

// a + b * x, rounded once; and a * x, whose 0 is never negative.
DEVICE float plus(float a, float b, float x) { return fmaf(b, x, a); }
DEVICE float times(float a, float x) { return fmaf(a, x, 0.0f); }

// Pixels under a tile.
struct OfPixels {
    static constexpr u32 FROM = 6, TO = 6;
    static DEVICE void apply(const float (&x)[6], float (&y)[6]) {
        const float even = plus(x[4], x[2], -4.0f), odd = plus(x[3], x[1], -4.0f);
        const float near = x[4] - x[2], far = x[3] - x[1];
        y[0] = plus(plus(x[4], x[2], -5.0f), x[0], 4.0f);
        y[1] = even + odd;
        y[2] = even - odd;
        y[3] = plus(near, far, 2.0f);
        y[4] = plus(near, far, -2.0f);
        y[5] = plus(plus(x[5], x[3], -5.0f), x[1], 4.0f);
    }
};

// What the products of a tile come to.
struct OfOutputs {
    static constexpr u32 FROM = 6, TO = 4;
    static DEVICE void apply(const float (&m)[6], float (&y)[4]) {
        const float even = m[1] + m[2], odd = m[1] - m[2], far = m[3] + m[4], further = m[3] - m[4];
        y[0] = (m[0] + even) + far;
        y[1] = plus(odd, further, 2.0f);
        y[2] = plus(even, far, 4.0f);
        y[3] = plus(odd, further, 8.0f) + m[5];
    }
};

// The gradient by what the products of a tile came to.
struct OfOutputGradients {
    static constexpr u32 FROM = 4, TO = 6;
    static DEVICE void apply(const float (&y)[4], float (&z)[6]) {
        const float even = y[0] + y[2], odd = y[1] + y[3];
        const float far = plus(y[0], y[2], 4.0f), further = plus(times(y[1], 2.0f), y[3], 8.0f);
        z[0] = y[0];
        z[1] = even + odd;
        z[2] = even - odd;
        z[3] = far + further;
        z[4] = far - further;
        z[5] = y[3];
    }
};

// Weights.
struct OfWeights {
    static constexpr u32 FROM = 3, TO = 6;
    static DEVICE void apply(const float (&w)[3], float (&u)[6]) {
        const float even = times(w[0] + w[2], -1.0f / 6.0f), far = plus(times(w[0], 1.0f / 24.0f), w[2], 1.0f / 6.0f);
        u[0] = times(w[0], 0.25f);
        u[1] = plus(even, w[1], -1.0f / 6.0f);
        u[2] = plus(even, w[1], 1.0f / 6.0f);
        u[3] = plus(far, w[1], 1.0f / 12.0f);
        u[4] = plus(far, w[1], -1.0f / 12.0f);
        u[5] = w[2];
    }
};

// What the products of a weight gradient come to.
struct OfWeightGradients {
    static constexpr u32 FROM = 6, TO = 3;
    static DEVICE void apply(const float (&u)[6], float (&w)[3]) {
        const float near = times(u[1] + u[2], -1.0f / 6.0f), middle = u[2] - u[1];
        const float far = u[3] + u[4], further = u[3] - u[4];
        w[0] = plus(plus(near, u[0], 0.25f), far, 1.0f / 24.0f);
        w[1] = plus(times(middle, 1.0f / 6.0f), further, 1.0f / 12.0f);
        w[2] = plus(near, far, 1.0f / 6.0f) + u[5];
    }
};

// Applies a transform to the columns of a square, then to the rows.
template <class T>
DEVICE void square(const float (&from)[T::FROM][T::FROM], float (&to)[T::TO][T::TO]) {
    float half[T::TO][T::FROM];
#pragma unroll
    for (u32 column = 0; column < T::FROM; column++) {
        float x[T::FROM], y[T::TO];
#pragma unroll
        for (u32 row = 0; row < T::FROM; row++) x[row] = from[row][column];
        T::apply(x, y);
#pragma unroll
        for (u32 row = 0; row < T::TO; row++) half[row][column] = y[row];
    }
#pragma unroll
    for (u32 row = 0; row < T::TO; row++) T::apply(half[row], to[row]);
}

// Reads the places of a square from their planes, which are `plane` numbers apart.
template <u32 N>
DEVICE void gather(const float *from, u64 plane, float (&to)[N][N]) {
#pragma unroll
    for (u32 place = 0; place < N * N; place++) to[place / N][place % N] = from[place * plane];
}

// Writes the places of a square to their planes.
template <u32 N>
DEVICE void spread(const float (&from)[N][N], float *to, u64 plane) {
#pragma unroll
    for (u32 place = 0; place < N * N; place++) to[place * plane] = from[place / N][place % N];
}
