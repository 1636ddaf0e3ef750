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

// One block.
KERNEL(look, 128, Look) {
    u32 *marks = a.marks + *a.made % a.room * (a.count + 1);
    // Counted from 1: the step's number was counted on.
    const u64 step = a.progress->step;
    for (u32 tensor = threadIdx.x; tensor < a.count; tensor += 128) {
        const u64 first = a.tensors[2 * tensor], length = a.tensors[2 * tensor + 1];
        u32 mark = 0;
        for (u64 look = 0; look < LOOKS && length > 0; look++) {
            const u32 bits = __float_as_uint(a.values[first + place(step, tensor, look, length)]);
            mark = ((mark << 7 | mark >> 25) + bits) * 0x9e3779b1u;
        }
        marks[1 + tensor] = mark;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    const u64 bits = a.loss ? (u64)__double_as_longlong(*a.loss) : 0;
    marks[0] = (u32)(bits ^ bits >> 32);
    *a.made += 1;
}
