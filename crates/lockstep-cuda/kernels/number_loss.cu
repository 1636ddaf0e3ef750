// Losses of numbers and of labels, of which a row has as many as there are outputs: means over a row's numbers.
#include "loss.cuh"

struct NumberLoss {
    LossRows of;
    // What is right, row after row.
    float *numbers;
    RowWeights by_row;
    // What the loss hangs on beside: Huber's delta, a quantile's share.
    double setting;
};

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
DEVICE void number_loss(const NumberLoss &a) {
    const LossRow row(a.of);
    if (!row.is_there) return;
    const float *numbers = a.numbers + (u64)row.number * row.outputs;
    const double weight = weight_of(a.by_row, row.number);
    const double sum = chain_of_warp(row.outputs, [&](u32 j) {
        return Loss::value(row.scores[j], numbers[j], a.setting);
    });
    u32 correct = 0;
    for (u32 j = thread_of_warp(); j < row.outputs; j += WARP) correct += Loss::is_right(row.scores[j], numbers[j]);
    for (u32 step = WARP / 2; step > 0; step /= 2) correct += __shfl_xor_sync(ALL, correct, step);
    const double scale = a.of.scale * weight / (double)row.outputs;
    row.gradients([&](u32 j) { return Loss::slope(row.scores[j], numbers[j], a.setting) * scale; });
    row.end(a.of, sum / (double)row.outputs * weight, correct);
}

KERNEL(squared_error, LOSS_THREADS, NumberLoss) { number_loss<SquaredError>(a); }
KERNEL(absolute_error, LOSS_THREADS, NumberLoss) { number_loss<OfError<Absolute>>(a); }
KERNEL(huber, LOSS_THREADS, NumberLoss) { number_loss<OfError<Huber>>(a); }
KERNEL(quantile, LOSS_THREADS, NumberLoss) { number_loss<OfError<Quantile>>(a); }
KERNEL(binary_cross_entropy, LOSS_THREADS, NumberLoss) { number_loss<BinaryCrossEntropy>(a); }
