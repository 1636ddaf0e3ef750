// What changes an activation, or its gradient, where it lies, if the kernel that made it did not.
#include "pointwise.cuh"

struct PointwiseForward {
    float *y;
    u64 numbers;
    Pointwise then;
};

KERNEL(pointwise_forward, 256, PointwiseForward) {
    for (u64 i = thread_of_grid(); i < a.numbers; i += threads_of_grid()) {
        a.y[i] = pointwise(a.then, a.y[i], i / a.then.features, i % a.then.features);
    }
}

struct PointwiseBackward {
    float *y;
    float *dy;
    u64 numbers;
    Pointwise then;
};

KERNEL(pointwise_backward, 256, PointwiseBackward) {
    for (u64 i = thread_of_grid(); i < a.numbers; i += threads_of_grid()) {
        a.dy[i] = pointwise_gradient(a.then, a.y[i], a.dy[i], i / a.then.features, i % a.then.features);
    }
}

struct Copy {
    float *from;
    float *to;
    u64 numbers;
};

KERNEL(copy, 256, Copy) {
    for (u64 i = thread_of_grid(); i < a.numbers; i += threads_of_grid()) a.to[i] = a.from[i];
}
