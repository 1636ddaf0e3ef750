// Losses: what each row of scores comes to, and the gradient by them. A warp has a row; sums are chains in the row's order.
#include "softmax.cuh"
#include "targets.cuh"
#include "warps.cuh"

constexpr u32 THREADS = 128;

struct LossRows {
    float *scores;
    // The gradient by the scores.
    float *gradient;
    TargetRows targets;
    // What every row comes to: its loss, and how often it was right.
    double *losses;
    u32 *correct;
    u32 rows;
    u32 outputs;
    // What the gradient is multiplied by: the inverse of the rows of the whole batch.
    double scale;
    // What the loss hangs on beside: Huber's delta, a quantile's share, the focal loss's gamma.
    double setting;
};

// A row, as the threads of its warp see it.
struct Row {
    const LossRows &all;
    u32 number, outputs;
    // Where its target is.
    u64 place;
    const float *scores;
    // Whether there is one. Whole warps have none, and the others need nobody.
    bool is_there;
    DEVICE Row(const LossRows &a) : all(a), outputs(a.outputs) {
        number = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
        is_there = number < a.rows;
        place = is_there ? target_place(a.targets, number) : 0;
        scores = a.scores + (u64)number * outputs;
    }
    // How much it counts.
    DEVICE double weight() const {
        const TargetRows &t = all.targets;
        const double factor = t.factors ? target_factor(t) : 1.0;
        return t.weights ? factor * (double)t.weights[place] : factor;
    }
    // Writes the gradient by each score, which `each(j)` has.
    template <class Each>
    DEVICE void gradients(Each each) const {
        float *gradient = all.gradient + (u64)number * outputs;
        for (u32 j = thread_of_warp(); j < outputs; j += WARP) gradient[j] = (float)each(j);
    }
    DEVICE void end(double loss, u32 correct) const {
        if (thread_of_warp() != 0) return;
        all.losses[number] = loss;
        all.correct[number] = correct;
    }
};

// What the probabilities of a row of any number of scores have in common.
struct RowSoftmax {
    const float *scores;
    u32 best;
    double largest, sum;
    DEVICE RowSoftmax(const Row &row) : scores(row.scores) {
        Best own = {__uint_as_float(0xff800000u), 0};
        for (u32 j = thread_of_warp(); j < row.outputs; j += WARP) {
            if (scores[j] > own.score) own = {scores[j], j};
        }
        own = best_of_warp(own);
        best = own.place;
        largest = (double)own.score;
        sum = chain_of_warp(row.outputs, [&](u32 j) { return own_exp((double)scores[j] - largest); });
    }
    DEVICE double probability(u32 j) const { return own_exp((double)scores[j] - largest) / sum; }
    // The cross-entropy, if this is the row's class.
    DEVICE double loss(u32 j) const { return own_ln(sum) - ((double)scores[j] - largest); }
};

// How much a class counts.
DEVICE double class_weight(const TargetRows &t, u32 j) {
    return j < t.weighted_classes ? (double)t.class_weights[j] : 1.0;
}

KERNEL(cross_entropy, THREADS, LossRows) {
    const Row row(a);
    if (!row.is_there) return;
    const RowSoftmax softmax(row);
    const u32 own = a.targets.classes[row.place];
    row.gradients([&](u32 j) { return (softmax.probability(j) - (j == own ? 1.0 : 0.0)) * a.scale; });
    row.end(softmax.loss(own), softmax.best == own);
}

// Cross-entropy of classes that are weighted, smoothed or mixed.
KERNEL(shaped_cross_entropy, THREADS, LossRows) {
    const Row row(a);
    if (!row.is_there) return;
    const TargetRows &t = a.targets;
    const u32 own = t.classes[row.place], other = t.other_classes ? t.other_classes[row.place] : 0;
    const double other_share = t.other_classes ? (double)t.other_shares[row.place] : 0.0;
    const double smoothing = (double)t.smoothing, factor = row.weight();
    // How much of the target a class is, times its weight.
    auto share = [&](u32 j) {
        double whole = 0.0;
        if (j == own) whole += 1.0 - other_share;
        if (j == other) whole += other_share;
        return (whole * (1.0 - smoothing) + smoothing / (double)row.outputs) * class_weight(t, j);
    };
    const RowSoftmax softmax(row);
    const double loss = chain_of_warp(row.outputs, [&](u32 j) {
        const double its_share = share(j);
        return its_share != 0.0 ? its_share * softmax.loss(j) : 0.0;
    });
    const double whole = chain_of_warp(row.outputs, share);
    row.gradients([&](u32 j) { return (softmax.probability(j) * whole - share(j)) * factor * a.scale; });
    row.end(loss * factor, softmax.best == (other_share > 0.5 ? other : own));
}

// Cross-entropy that counts less the surer the right class is; the setting says how much less.
KERNEL(focal, THREADS, LossRows) {
    const Row row(a);
    if (!row.is_there) return;
    const RowSoftmax softmax(row);
    const u32 own = a.targets.classes[row.place];
    const double weight = row.weight() * class_weight(a.targets, own), gamma = a.setting;
    const double probability = softmax.probability(own), plain = softmax.loss(own), rest = 1.0 - probability;
    double loss = 0.0, slope = 0.0;
    // Of a class that is certain, nothing is left to learn.
    if (!(rest == 0.0 && gamma > 0.0)) {
        const double less = gamma == 0.0 ? 1.0 : own_exp(gamma * own_ln(rest));
        loss = less * plain;
        slope = less * (1.0 + gamma * probability * plain / rest);
    }
    slope = slope * weight * a.scale;
    row.gradients([&](u32 j) { return (softmax.probability(j) - (j == own ? 1.0 : 0.0)) * slope; });
    row.end(loss * weight, softmax.best == own);
}

// The losses of numbers and of labels, of which a row has as many as there are outputs, are means over these.

// The sign of a number; a NaN gets through.
DEVICE double sign(double x) { return x == 0.0 ? 0.0 : x != x ? x : copysign(1.0, x); }

// What one number comes to, and how that changes with it.
struct SquaredError {
    DEVICE static double value(float x, float target, double) {
        const double error = (double)x - (double)target;
        return error * error;
    }
    DEVICE static double slope(float x, float target, double) { return 2.0 * ((double)x - (double)target); }
    DEVICE static bool is_right(float, float) { return false; }
};

// The losses that hang on what was said less what is right.
template <class Error>
struct OfError {
    DEVICE static double value(float x, float target, double setting) {
        return Error::value((double)x - (double)target, setting);
    }
    DEVICE static double slope(float x, float target, double setting) {
        return Error::slope((double)x - (double)target, setting);
    }
    DEVICE static bool is_right(float, float) { return false; }
};

struct Absolute {
    DEVICE static double value(double error, double) { return fabs(error); }
    DEVICE static double slope(double error, double) { return sign(error); }
};

struct Huber {
    DEVICE static double value(double error, double delta) {
        return fabs(error) <= delta ? 0.5 * error * error : delta * (fabs(error) - 0.5 * delta);
    }
    DEVICE static double slope(double error, double delta) {
        return fabs(error) <= delta ? error : delta * sign(error);
    }
};

struct Quantile {
    DEVICE static double value(double error, double share) {
        return error < 0.0 ? -share * error : (1.0 - share) * error;
    }
    DEVICE static double slope(double error, double share) {
        return error < 0.0 ? -share : (1.0 - share) * sign(error);
    }
};

// Scores are logits of labels.
struct BinaryCrossEntropy {
    DEVICE static double value(float score, float its_label, double) {
        const double x = (double)score, label = (double)its_label;
        return fmax(x, 0.0) - x * label + own_ln(1.0 + own_exp(-fabs(x)));
    }
    DEVICE static double slope(float score, float label, double) {
        const double small = own_exp(-fabs((double)score));
        return (score < 0.0f ? small / (1.0 + small) : 1.0 / (1.0 + small)) - (double)label;
    }
    DEVICE static bool is_right(float score, float label) { return (score > 0.0f) == (label > 0.5f); }
};

template <class Loss>
DEVICE void number_loss(const LossRows &a) {
    const Row row(a);
    if (!row.is_there) return;
    const float *numbers = a.targets.numbers + row.place * row.outputs;
    const double weight = row.weight(), count = (double)row.outputs;
    const double sum = chain_of_warp(row.outputs, [&](u32 j) {
        return Loss::value(row.scores[j], numbers[j], a.setting);
    });
    u32 correct = 0;
    for (u32 j = thread_of_warp(); j < row.outputs; j += WARP) correct += Loss::is_right(row.scores[j], numbers[j]);
    for (u32 step = WARP / 2; step > 0; step /= 2) correct += __shfl_xor_sync(ALL, correct, step);
    const double scale = a.scale * weight / count;
    row.gradients([&](u32 j) { return Loss::slope(row.scores[j], numbers[j], a.setting) * scale; });
    row.end(sum / count * weight, correct);
}

KERNEL(squared_error, THREADS, LossRows) { number_loss<SquaredError>(a); }
KERNEL(absolute_error, THREADS, LossRows) { number_loss<OfError<Absolute>>(a); }
KERNEL(huber, THREADS, LossRows) { number_loss<OfError<Huber>>(a); }
KERNEL(quantile, THREADS, LossRows) { number_loss<OfError<Quantile>>(a); }
KERNEL(binary_cross_entropy, THREADS, LossRows) { number_loss<BinaryCrossEntropy>(a); }
