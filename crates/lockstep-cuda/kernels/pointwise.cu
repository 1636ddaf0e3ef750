// What changes an activation, or its gradient, where it lies, if the kernel that made it did not; and sums of two paths.
#include "numbers.cuh"
#include "pointwise.cuh"

struct PointwiseForward {
    float *y;
    u64 numbers;
    Pointwise then;
};

template <u32 W, bool DRAWS>
DEVICE void forward(const PointwiseForward &a) {
    map<W>(
        a.numbers, a.y, [&](u64 i) { return read<W>(a.y + i); },
        [&](u64 i, const Numbers<W> &y, u32 j) { return pointwise_at<DRAWS>(a.then, y.of[j], i); });
}

KERNEL(pointwise_forward, 256, PointwiseForward) { VARIANTS(forward, a, a.numbers, a.then); }

struct PointwiseBackward {
    float *y;
    float *dy;
    u64 numbers;
    Pointwise then;
};

// Two activations, number by number.
template <u32 W>
struct Pair {
    Numbers<W> first, second;
};

template <u32 W, bool DRAWS>
DEVICE void backward(const PointwiseBackward &a) {
    map<W>(
        a.numbers, a.dy, [&](u64 i) { return Pair<W>{read<W>(a.y + i), read<W>(a.dy + i)}; },
        [&](u64 i, const Pair<W> &p, u32 j) { return pointwise_gradient_at<DRAWS>(a.then, p.first.of[j], p.second.of[j], i); });
}

KERNEL(pointwise_backward, 256, PointwiseBackward) { VARIANTS(backward, a, a.numbers, a.then); }

struct Copy {
    float *from;
    float *to;
    u64 numbers;
};

KERNEL(copy, 256, Copy) {
    if (a.numbers % 4 == 0) {
        for_many<4>(
            thread_of_grid() * 4, a.numbers, threads_of_grid() * 4, [&](u64 i) { return read<4>(a.from + i); },
            [&](u64 i, const Numbers<4> &x) { write(a.to + i, x); });
    } else {
        for (u64 i = thread_of_grid(); i < a.numbers; i += threads_of_grid()) a.to[i] = a.from[i];
    }
}

// Two paths of a network meet: what comes beside is added.
struct AddForward {
    float *y;
    float *beside;
    u64 numbers;
    Pointwise then;
};

template <u32 W, bool DRAWS>
DEVICE void add_paths(const AddForward &a) {
    map<W>(
        a.numbers, a.y, [&](u64 i) { return Pair<W>{read<W>(a.y + i), read<W>(a.beside + i)}; },
        [&](u64 i, const Pair<W> &p, u32 j) { return pointwise_at<DRAWS>(a.then, p.first.of[j] + p.second.of[j], i); });
}

KERNEL(add_forward, 256, AddForward) { VARIANTS(add_paths, a, a.numbers, a.then); }

// The same of the gradients by the input of both paths. `below` is what was done to the input where it lies, x.
struct AddBackward {
    float *dx;
    float *beside;
    float *x;
    u64 numbers;
    Pointwise below;
};

template <u32 W, bool DRAWS>
DEVICE void add_gradients(const AddBackward &a) {
    const bool is_changed = a.below.count > 0;
    struct Three {
        Pair<W> gradients;
        Numbers<W> x;
    };
    map<W>(
        a.numbers, a.dx,
        [&](u64 i) {
            Three t = {{read<W>(a.dx + i), read<W>(a.beside + i)}, {}};
            if (is_changed) t.x = read<W>(a.x + i);
            return t;
        },
        [&](u64 i, const Three &t, u32 j) {
            const float sum = t.gradients.first.of[j] + t.gradients.second.of[j];
            return is_changed ? pointwise_gradient_at<DRAWS>(a.below, t.x.of[j], sum, i) : sum;
        });
}

KERNEL(add_backward, 256, AddBackward) { VARIANTS(add_gradients, a, a.numbers, a.below); }
