//! Jobs on Kubernetes. What needs a real control plane is ignored, and run by `make test-kube`.

mod chart;
mod forwarded;
mod gang;
mod policy;
mod ray;
mod real;
mod tune;
