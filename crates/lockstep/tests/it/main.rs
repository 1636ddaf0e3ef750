//! The program from outside, by itself: what a machine without any other program can check, or with a few small
//! Python packages.

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "these tests use only what the engine asks for")]
#[path = "../../src/learners.rs"]
mod learners;

mod bad_input;
mod bits;
mod cache;
mod checkpoint;
mod cifar;
mod classes;
mod commands;
mod copies;
mod dashboard;
mod data_checks;
mod devices;
mod doctor;
mod documents;
mod elastic;
mod embed;
mod ending;
mod engine;
mod evaluate;
mod fixed16;
mod hosts;
mod image;
mod images;
mod init;
mod kinds;
mod kube;
mod links;
mod memory;
mod models;
mod moved_runs;
mod onnx;
mod other_data;
mod pipeline;
mod predict;
mod profile;
mod recovery;
mod regression;
mod replay;
mod result;
mod resume;
mod runs;
mod scripts;
mod secrets;
mod serve_api;
mod serve_guard;
mod serve_jobs;
mod serve_links;
mod serve_loads;
mod serve_model;
mod serve_owners;
mod simulate;
mod splits;
mod strangers;
mod tables;
mod told_sets;
mod training_means;
mod trees;
mod tune;
mod weights;
