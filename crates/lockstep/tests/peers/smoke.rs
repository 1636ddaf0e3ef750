//! One short conversation with each peer, which `make test` holds: with small ones always, with large ones where they are
//! in the cache already. Each is a test of its subject, which `make test-peers` runs with the others.

use crate::{dashboard, models, onnx, ray, track};
use lockstep_testkit::Peer;

#[test]
fn an_object_store() {
    models::in_a_bucket_runs_are_found_tagged_registered_and_used();
}

#[test]
fn onnxruntime() {
    onnx::networks::every_kind_of_layer_has_its_operation();
}

#[test]
fn tensorboard() {
    track::tensorboard::all_of_a_run_is_read_by_tensorboard_itself();
}

#[test]
fn mlflow() {
    if Peer::Mlflow.is_here() {
        track::mlflow::a_run_is_kept_with_everything_and_its_model_predicts_as_predict_does();
    }
}

#[test]
fn a_ray_cluster() {
    if Peer::Ray.is_here() {
        ray::same_bits::workers_on_nodes_of_their_own_come_to_the_weights_of_this_machine();
    }
}

#[test]
fn a_browser() {
    dashboard::people_see_runs_and_jobs_in_a_real_browser();
}
