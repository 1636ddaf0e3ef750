// A running average of the weights.
#include "numbers.cuh"
#include "optimizer.cuh"

struct Average {
    float *averaged;
    float *present;
    // The numbers that change at all.
    u64 begin;
    u64 end;
    // How many steps are done when the weights are taken as they are.
    u64 *first;
    Progress *progress;
    // How much of the distance to the present weights it goes in a step.
    float share;
    u32 unused;
};

struct AveragedAndPresent {
    Numbers<4> averaged, present;
};

KERNEL(average, 256, Average) {
    const bool is_first = a.progress->step == *a.first;
    auto next = [&](float averaged, float present) {
        return is_first ? present : flushed(averaged + a.share * (present - averaged));
    };
    auto one = [&](u64 i) { a.averaged[i] = next(a.averaged[i], a.present[i]); };
    for_edges(a.begin, a.end, one);
    for_fours<2>(
        a.begin, a.end, [&](u64 i) { return AveragedAndPresent{read<4>(a.averaged + i), read<4>(a.present + i)}; },
        [&](u64 i, const AveragedAndPresent &found) {
            Numbers<4> made;
#pragma unroll
            for (u32 j = 0; j < 4; j++) made.of[j] = next(found.averaged.of[j], found.present.of[j]);
            write(a.averaged + i, made);
        });
}
