// What the network is to say of the rows of a batch, and how much each row counts.
#pragma once
#include "lockstep.cuh"

struct TargetRows {
    // Which target is whose: that of a row is at its place. Without places, row r has target r.
    u32 *places;
    // A class for each target, or as many numbers as the network has outputs; the other is not there.
    u32 *classes;
    float *numbers;
    // How much each target counts, if they do not count alike.
    float *weights;
    // If rows are mixtures of two samples, the class of every row's other one, and that one's share.
    u32 *other_classes;
    float *other_shares;
    // How much each class counts; those beyond count 1.
    float *class_weights;
    u32 weighted_classes;
    // The part of a target that is spread evenly over all classes.
    float smoothing;
    // What every row counts beside that, by the steps of the epoch. Without it, rows count as they are, and nothing of
    // the above but classes or numbers is there.
    double *factors;
    Progress *progress;
};

// Where the target of a row is.
DEVICE u64 target_place(const TargetRows &t, u32 row) { return t.places ? t.places[row] : row; }

// What every row of this step counts.
DEVICE double target_factor(const TargetRows &t) { return t.factors[t.progress->in_epoch]; }
