//! The program beside others: conversations with real Ray, MLflow, TensorBoard, browsers, object stores, and tools of
//! Kubernetes.

#[path = "../common/mod.rs"]
mod common;

mod bench;
mod bucket_runs;
mod buckets;
mod dashboard;
mod kube;
mod models;
mod onnx;
mod python;
mod ray;
mod scripts;
mod serve_jobs;
mod serve_mlflow;
mod serve_model;
mod smoke;
mod submit;
mod tables;
mod track;
mod trees_bucket;
mod trees_on_gpus;
