// Marks of the parameters after a step: 32 bits of a few numbers of each tensor, at places that are a function of the step.
#include "lockstep.cuh"

// The same as those of lockstep-nn's `marks`.
constexpr u64 LOOKS = 4;

// Which number of a tensor is looked at.
DEVICE u64 place(u64 step, u64 tensor, u64 look, u64 length) {
    u64 x = (step * LOOKS + look) * 0x9e3779b97f4a7c15ull ^ tensor * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
    return (x ^ x >> 32) % length;
}

// How far looks are. Nobody but they and the beginning of an epoch writes it.
struct Looked {
    // Steps of the run, and looks so far.
    u64 steps;
    u64 made;
};

struct Look {
    float *values;
    // Where every tensor begins, and its numbers: none if it is not looked at.
    u64 *tensors;
    u32 count;
    // Marks that there is room for, each of the loss and of all tensors.
    u32 room;
    u32 *marks;
    Looked *looked;
    // What the run's first lane came to in this step; none if it had no rows.
    double *loss;
};

constexpr u32 THREADS = 128, EACH = LOOKS, AT_ONCE = THREADS / EACH;

// One block: each look has a thread, and the first of a tensor's puts the bits together. The next step waits for this kernel,
// so where it looks is worked out before what it looks at is there.
KERNEL_AHEAD(look, THREADS, 1, Look) {
    let_next_begin();
    const Looked looked = *a.looked;
    // Counted from 1.
    const u64 step = looked.steps + 1;
    u32 *marks = a.marks + looked.made % a.room * (a.count + 1);
    const u32 own = threadIdx.x / EACH, look = threadIdx.x % EACH;
    auto number = [&](u32 tensor) -> const float * {
        const u64 length = tensor < a.count ? a.tensors[2 * tensor + 1] : 0;
        return length > 0 ? a.values + a.tensors[2 * tensor] + place(step, tensor, look, length) : nullptr;
    };
    const float *next = number(own);
    wait_for_previous();
    for (u32 tensor = own; tensor < a.count + own; tensor += AT_ONCE) {
        const float *at = next;
        const u32 bits = at ? __float_as_uint(*at) : 0;
        next = number(tensor + AT_ONCE);
        u32 mark = 0;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 others = __shfl_sync(ALL, bits, threadIdx.x % WARP / EACH * EACH + i);
            mark = ((mark << 7 | mark >> 25) + others) * 0x9e3779b1u;
        }
        if (look == 0 && tensor < a.count) marks[1 + tensor] = at ? mark : 0;
    }
    if (threadIdx.x != 0) return;
    const u64 bits = a.loss ? (u64)__double_as_longlong(*a.loss) : 0;
    marks[0] = (u32)(bits ^ bits >> 32);
    *a.looked = {step, looked.made + 1};
}
