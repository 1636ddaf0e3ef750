// Losses of classes, of which each row has one: cross-entropy, plain or of targets that are shaped, and the focal loss.
#include "loss.cuh"

struct CrossEntropy {
    LossRows of;
    // The class of every row.
    u32 *classes;
};

KERNEL(cross_entropy, LOSS_THREADS, CrossEntropy) {
    const LossRow row(a.of);
    if (!row.is_there) return;
    const Softmax softmax(row);
    const u32 own = a.classes[row.number];
    row.gradients([&](u32 j) { return (softmax.probability(j) - (j == own ? 1.0 : 0.0)) * a.of.scale; });
    row.end(a.of, softmax.loss(own), softmax.best == own);
}

// How much classes count: those beyond the list count 1.
struct ClassWeights {
    float *weights;
    u64 count;
};

DEVICE double weight_of(const ClassWeights &w, u32 j) { return j < w.count ? (double)w.weights[j] : 1.0; }

struct ShapedCrossEntropy {
    LossRows of;
    u32 *classes;
    // Where rows are mixtures, the class of the other sample and its share.
    u32 *others;
    float *shares;
    ClassWeights by_class;
    RowWeights by_row;
    // The part of a target that is spread evenly over all classes.
    float smoothing;
    u32 unused;
};

KERNEL(shaped_cross_entropy, LOSS_THREADS, ShapedCrossEntropy) {
    const LossRow row(a.of);
    if (!row.is_there) return;
    const u32 own = a.classes[row.number], other = a.others ? a.others[row.number] : 0;
    const double other_share = a.others ? (double)a.shares[row.number] : 0.0, smoothing = (double)a.smoothing;
    const double factor = weight_of(a.by_row, row.number);
    // How much of the target a class is, times its weight.
    auto share = [&](u32 j) {
        double whole = 0.0;
        if (j == own) whole += 1.0 - other_share;
        if (j == other) whole += other_share;
        return (whole * (1.0 - smoothing) + smoothing / (double)row.outputs) * weight_of(a.by_class, j);
    };
    const Softmax softmax(row);
    const double loss = chain_of_warp(row.outputs, [&](u32 j) {
        const double its_share = share(j);
        return its_share != 0.0 ? its_share * softmax.loss(j) : 0.0;
    });
    const double whole = chain_of_warp(row.outputs, share);
    row.gradients([&](u32 j) { return (softmax.probability(j) * whole - share(j)) * factor * a.of.scale; });
    row.end(a.of, loss * factor, softmax.best == (other_share > 0.5 ? other : own));
}

struct Focal {
    LossRows of;
    u32 *classes;
    ClassWeights by_class;
    RowWeights by_row;
    // How much less a row counts, the surer its class is.
    double gamma;
};

KERNEL(focal, LOSS_THREADS, Focal) {
    const LossRow row(a.of);
    if (!row.is_there) return;
    const Softmax softmax(row);
    const u32 own = a.classes[row.number];
    const double weight = weight_of(a.by_row, row.number) * weight_of(a.by_class, own);
    const double probability = softmax.probability(own), plain = softmax.loss(own), rest = 1.0 - probability;
    double loss = 0.0, slope = 0.0;
    // Of a class that is certain, nothing is left to learn.
    if (!(rest == 0.0 && a.gamma > 0.0)) {
        const double less = a.gamma == 0.0 ? 1.0 : own_exp(a.gamma * own_ln(rest));
        loss = less * plain;
        slope = less * (1.0 + a.gamma * probability * plain / rest);
    }
    slope = slope * weight * a.of.scale;
    row.gradients([&](u32 j) { return (softmax.probability(j) - (j == own ? 1.0 : 0.0)) * slope; });
    row.end(a.of, loss * weight, softmax.best == own);
}
