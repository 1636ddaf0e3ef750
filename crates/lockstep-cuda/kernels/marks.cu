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

struct Look {
    float *values;
    // Where every tensor begins, and its numbers: none if it is not looked at.
    u64 *tensors;
    u32 count;
    // Marks that there is room for, each of the loss and of all tensors.
    u32 room;
    u32 *marks;
    // How many were made.
    u64 *made;
    // What the run's first lane came to in this step; none if it had no rows.
    double *loss;
    Progress *progress;
};

// One block: each look has a thread, and the first of a tensor's puts the bits together.
KERNEL(look, 128, Look) {
    u32 *marks = a.marks + *a.made % a.room * (a.count + 1);
    // Counted from 1: the step's number was counted on.
    const u64 step = a.progress->step;
    for (u32 first = 0; first < a.count; first += 128 / LOOKS) {
        const u32 tensor = first + threadIdx.x / LOOKS, look = threadIdx.x % LOOKS;
        __shared__ u32 bits[128];
        bits[threadIdx.x] = 0;
        const u64 length = tensor < a.count ? a.tensors[2 * tensor + 1] : 0;
        if (length > 0) {
            const u64 at = a.tensors[2 * tensor] + place(step, tensor, look, length);
            bits[threadIdx.x] = __float_as_uint(a.values[at]);
        }
        __syncthreads();
        if (look == 0 && tensor < a.count) {
            u32 mark = 0;
            for (u32 i = 0; i < LOOKS && length > 0; i++) {
                mark = ((mark << 7 | mark >> 25) + bits[threadIdx.x + i]) * 0x9e3779b1u;
            }
            marks[1 + tensor] = mark;
        }
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    const u64 bits = a.loss ? (u64)__double_as_longlong(*a.loss) : 0;
    marks[0] = (u32)(bits ^ bits >> 32);
    *a.made += 1;
}
