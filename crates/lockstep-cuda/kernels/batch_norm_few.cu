// Batch-norm of lanes that have few rows: one kernel each way, since what takes time then is that one waits for another. A
// block has some columns of a lane, in shared memory.
#include "batch_norm.cuh"

// The most rows of a lane, columns of a block, and rows that its threads have at once.
constexpr u32 FEW = 4 * BLOCK, SIDE_BY_SIDE = 16, FEW_THREADS = 256, AT_ONCE = FEW_THREADS / SIDE_BY_SIDE;
static_assert(FEW / AT_ONCE <= 32, "a bit for each row of a thread");

struct FewColumns {
    Rows rows;
    u32 features;
    // Of this thread: its column, where it lies in shared memory, and its first row, of which the next is AT_ONCE further.
    u32 column, place, row;
    bool is_inside;
    DEVICE FewColumns(const Rows &rows, u32 features) : rows(rows), features(features) {
        place = threadIdx.x % SIDE_BY_SIDE;
        column = blockIdx.x * SIDE_BY_SIDE + place;
        row = threadIdx.x / SIDE_BY_SIDE;
        is_inside = column < features;
    }
    DEVICE u64 at(u32 row) const { return (rows.first + row) * features + column; }
    DEVICE void bring(float *to, const float *from) const {
        if (!is_inside) return;
        for (u32 i = row; i < rows.count; i += AT_ONCE) copy4(to + i * SIDE_BY_SIDE + place, from + at(i), true);
    }
    // The sums over the blocks of rows, one after the other, for the threads of the first row: `part(first, rows)` is what a
    // block comes to that begins there in shared memory. All threads come here.
    template <class OfBlock>
    DEVICE Part sums(OfBlock of_block) const {
        __shared__ Part parts[FEW / BLOCK][SIDE_BY_SIDE];
        wait_for_copies<0>();
        __syncthreads();
        const u32 first = row * BLOCK;
        if (is_inside && first < rows.count) {
            const u32 rest = rows.count - first;
            parts[row][place] = of_block(first * SIDE_BY_SIDE + place, rest < BLOCK ? rest : BLOCK);
        }
        __syncthreads();
        Part sum = {0.0, 0.0};
        if (!is_inside || row > 0) return sum;
        for (u32 block = 0; block < blocks_of(rows); block++) {
            sum.one += parts[block][place].one;
            sum.other += parts[block][place].other;
        }
        return sum;
    }
};

struct BatchNormFewForward {
    BatchNormFinish finish;
    BatchNormForward forward;
};

KERNEL(batch_norm_few_forward, FEW_THREADS, BatchNormFewForward) {
    __shared__ float x[FEW * SIDE_BY_SIDE];
    const BatchNormForward &forward = a.forward;
    const FewColumns own(rows_of_lane(forward.lane_rows, 0, forward.pixels), forward.features);
    own.bring(x, forward.x);
    end_copies();
    // What a dropout keeps of this thread's rows is drawn while the copies are on their way.
    u32 kept = ALL;
    if (forward.then.has_dropout && own.is_inside) {
        const Pointwise &then = forward.then;
        const u64 step = then.progress->step;
        for (u32 k = 0; own.row + k * AT_ONCE < own.rows.count; k++) {
            const u64 at = own.at(own.row + k * AT_ONCE);
            if (!(kept_neighbours<1>(then, step, then.samples[at / then.features], at % then.features) & 1)) kept &= ~(1u << k);
        }
    }
    const Part sums = own.sums([&](u32 first, u32 rows) { return observed(x + first, rows, SIDE_BY_SIDE); });
    if (own.is_inside && own.row == 0) finish(a.finish, own.rows, own.column, sums);
    __syncthreads();
    if (!own.is_inside) return;
    const Line line(forward.lines, forward.features);
    const float mean = line.mean[own.column], factor = line.factor[own.column], shift = forward.shift[own.column];
    for (u32 k = 0; own.row + k * AT_ONCE < own.rows.count; k++) {
        const u32 row = own.row + k * AT_ONCE;
        float y[1][1] = {{normalised(forward, x[row * SIDE_BY_SIDE + own.place], mean, factor, shift)}};
        pointwise_all(forward.then, y, kept >> k);
        forward.y[own.at(row)] = y[0][0];
    }
}

struct BatchNormFewBackward {
    BatchNormGradient gradient;
    BatchNormBackward backward;
};

template <bool DRAWS>
DEVICE void few_backward(const BatchNormBackward &a, const FewColumns &own, const float *x, const float *dy, const Slope &slope) {
    for (u32 i = own.row; i < own.rows.count; i += AT_ONCE) {
        const u64 at = own.at(i);
        const u32 place = i * SIDE_BY_SIDE + own.place;
        a.dx[at] = gradient_at<DRAWS>(a, x[place], dy[place], slope, at);
    }
}

KERNEL(batch_norm_few_backward, FEW_THREADS, BatchNormFewBackward) {
    __shared__ float x[FEW * SIDE_BY_SIDE], dy[FEW * SIDE_BY_SIDE];
    const BatchNormBackward &backward = a.backward;
    const FewColumns own(rows_of_lane(backward.lane_rows, 0, backward.pixels), backward.features);
    own.bring(x, backward.x);
    own.bring(dy, backward.dy);
    end_copies();
    Slope slope = {};
    const Line line(backward.lines, backward.features);
    if (own.is_inside) slope = {line.mean[own.column], line.factor[own.column], backward.shift[own.column], 0.0f, 0.0f};
    const Part sums = own.sums([&](u32 first, u32 rows) {
        return summed(x + first, dy + first, rows, SIDE_BY_SIDE, backward.relu, slope.mean, slope.factor, slope.shift);
    });
    if (own.is_inside && own.row == 0) learn(a.gradient, own.rows, own.column, sums);
    __syncthreads();
    if (!own.is_inside || !backward.dx) return;
    const float *slopes = backward.slopes + (u64)blockIdx.z * 2 * backward.features + own.column;
    slope.offset = slopes[0], slope.slope = slopes[backward.features];
    if (backward.below.has_dropout) few_backward<true>(backward, own, x, dy, slope);
    else few_backward<false>(backward, own, x, dy, slope);
}
