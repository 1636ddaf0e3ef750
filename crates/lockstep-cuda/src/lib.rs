//! Networks on NVIDIA GPUs, with the bits of the processor.
//!
//! The same networks as lockstep-nn's, trained by kernels of our own: every sum is one chain in the processor's order,
//! products are fused where they are there and nowhere else, and elementary functions and random numbers are the same. So
//! a run has the same weights on a laptop, on a GPU, and in a gang of both.
//!
//! [`Gpu`] is a device, [`DataSet`] what lies in its memory, and [`Training`] a network that is trained on it: whole epochs
//! are handed over, steps are queued and done later, and nothing comes back but what is asked for. The state vector has
//! the layout of lockstep-nn. [`Predictor`] is one that is only asked, and
//! [`GpuEncoder`] turns pictures into vectors.
//!
//! Nothing of CUDA is needed to build this, and only NVIDIA's driver to run it. Without a GPU, the same kernels run on an
//! emulated one ([`driver`]), so that all of this is tested anywhere. `README.md` says how an operation is added.

mod arguments;
mod choice;
mod data_set;
pub mod driver;
mod encoder;
mod epoch;
mod error;
mod forecast;
mod gang;
mod gpu;
mod images;
mod kernels;
mod launch;
mod layer_timing;
mod memory;
mod network;
mod peers;
mod pinned;
mod plan;
mod predictor;
mod ring;
mod rows;
mod scoring;
mod setup;
mod streams;
mod timing;
mod training;

pub use arguments::Arguments;
pub use choice::{DeviceChoice, DeviceDecision, OpenedDevice};
pub use data_set::{DataSet, InputRows, SampleTargets, Samples};
pub use encoder::{BUNCHES, GpuEncoder};
pub use epoch::{Epoch, LaneReport};
pub use error::CudaError;
pub use forecast::MemoryNeeded;
pub use gpu::Gpu;
pub use images::{ImageMap, ImageValues, Images, MixedImage, SeenImage};
pub use kernels::KernelFile;
#[cfg(feature = "emulated")]
pub use kernels::{FILES, HEADERS};
pub use layer_timing::{PassTime, TimedLayers, TimedPass};
pub use peers::{PeerMemory, PeerOffer, PeerShape};
pub use predictor::Predictor;
pub use ring::{BatchSlot, SLOTS};
pub use rows::{RowShape, TargetShape};
pub use setup::{Exchange, InputPlace, LaneRows, ModelDescription, PeerSum, Setup, WorkerBatch};
pub use timing::KernelTime;
pub use training::{Beginning, Training};
