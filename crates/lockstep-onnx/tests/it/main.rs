//! The integration tests of `lockstep-onnx`: one program, a module for each subject.

mod encoders;
