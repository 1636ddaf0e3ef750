//! Jobs on Kubernetes, as far as a server that plays the API server can tell. A real control plane is asked in the
//! program `peers`.

mod gang;
mod render;
mod scripted;
mod tune;
