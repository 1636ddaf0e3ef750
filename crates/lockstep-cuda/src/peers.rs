//! Memory that the workers of one machine read from each other: their devices add up gradients without the host.
//!
//! Each worker takes a piece of its device's memory for its partial sums, and makes an offer of it, with which any other one
//! opens it: over CUDA's handles for other processes, or just by its address within a process. Whether all could open what all
//! offer is for the workers to find out, and to agree on.
//!
//! A worker gives its piece back when it is dropped. Others must not be reading it then: workers meet once more after their
//! last step. Of one that is killed the driver keeps the memory as long as others have it open.

use crate::driver::{Address, Device, MemoryHandle};
use crate::error::CudaError;
use crate::gpu::Gpu;
use crate::memory::DeviceMemory;
use crate::setup::Setup;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

/// Numbers that a vector of sums is a multiple of.
const VECTOR: usize = 64;

/// What the driver hands out memory in multiples of: a piece that is one of them is shared alone.
const PIECE: usize = 2 << 20;

/// How much memory a worker has for its partial sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerShape {
    /// The most partial sums that it has in a step.
    pub partials: usize,
    /// Numbers of each.
    pub numbers: usize,
}

impl PeerShape {
    /// What it takes of a device's memory.
    pub(crate) fn bytes(self) -> usize {
        let bytes = 2 * self.partials * self.vector();
        bytes.max(1).next_multiple_of(PIECE)
    }

    fn vector(self) -> usize {
        self.numbers.next_multiple_of(VECTOR) * size_of::<f32>()
    }

    /// Where a partial sum lies in one of the two halves.
    fn place(self, half: usize, partial: usize) -> u64 {
        ((half * self.partials + partial) * self.vector()) as u64
    }
}

/// What a worker lets others read of its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerOffer {
    /// Of the process.
    process: u64,
    /// The device's number there.
    device: u32,
    address: u64,
    handle: MemoryHandle,
    partials: u32,
}

impl PeerOffer {
    /// How many words [`PeerOffer::words`] are.
    pub const WORDS: usize = 22;

    /// The offer as numbers.
    pub fn words(&self) -> [u32; Self::WORDS] {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        let handle = self.handle.0.chunks_exact(4);
        let handle =
            handle.map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let all = halves(self.process).into_iter().chain(halves(self.address));
        let mut all = all.chain([self.device, self.partials]).chain(handle);
        std::array::from_fn(|_| all.next().unwrap_or(0))
    }

    /// The offer of such numbers.
    pub fn of_words(words: [u32; Self::WORDS]) -> Self {
        let word = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
        let bytes: Vec<u8> = (words[6..].iter())
            .flat_map(|word| word.to_le_bytes())
            .collect();
        Self {
            process: word(0),
            address: word(2),
            device: words[4],
            partials: words[5],
            handle: MemoryHandle(std::array::from_fn(|at| bytes[at])),
        }
    }
}

/// A worker's memory for its partial sums, and that of others.
pub struct PeerMemory {
    peers: Vec<Peer>,
    own: DeviceMemory,
    shape: PeerShape,
}

/// A rank's memory, where this device reads it.
struct Peer {
    address: u64,
    shape: PeerShape,
    /// Kept open as long as it is read.
    _opened: Option<OpenedMemory>,
}

impl PeerMemory {
    /// Takes the memory of a worker.
    ///
    /// # Errors
    /// When there is not enough.
    pub fn new(gpu: &Gpu, shape: PeerShape) -> Result<Self, CudaError> {
        let what = "sums that other workers read";
        Ok(Self {
            own: DeviceMemory::new(&gpu.device, shape.bytes(), what)?,
            peers: Vec::new(),
            shape,
        })
    }

    /// What others open it with.
    ///
    /// # Errors
    /// When the driver cannot share memory between processes.
    pub fn offer(&self, gpu: &Gpu) -> Result<PeerOffer, CudaError> {
        Ok(PeerOffer {
            process: process(),
            device: gpu.facts().index as u32,
            address: self.own.address(),
            handle: gpu.device.export(Address(self.own.address()))?,
            partials: self.shape.partials as u32,
        })
    }

    /// Opens what all workers offer, in the order of their ranks, this one's included.
    ///
    /// # Errors
    /// When this device cannot read another one's memory.
    pub fn open(&mut self, gpu: &Gpu, offers: &[PeerOffer]) -> Result<(), CudaError> {
        self.peers.clear();
        for offer in offers {
            let opened = match offer.process == process() {
                true if offer.device as usize == gpu.facts().index => None,
                true => {
                    return Err(CudaError::Mismatch {
                        what: "the device of another worker of this process",
                        found: offer.device.to_string(),
                        expected: gpu.facts().index.to_string(),
                    });
                }
                false => Some(OpenedMemory::new(&gpu.device, offer.handle)?),
            };
            self.peers.push(Peer {
                address: opened.as_ref().map_or(offer.address, |opened| opened.at.0),
                shape: PeerShape {
                    partials: offer.partials as usize,
                    ..self.shape
                },
                _opened: opened,
            });
        }
        Ok(())
    }

    /// Where a rank's partial sum lies in one of the halves.
    pub(crate) fn place(&self, rank: usize, half: usize, partial: usize) -> u64 {
        let peer = &self.peers[rank];
        peer.address + peer.shape.place(half, partial)
    }

    /// The same of this worker's.
    pub(crate) fn own_place(&self, half: usize, partial: usize) -> u64 {
        self.own.address() + self.shape.place(half, partial)
    }

    /// Refuses a setup that needs more than was opened.
    pub(crate) fn check(&self, setup: &Setup) -> Result<(), CudaError> {
        let sums = setup.exchange.peer_sums().into_iter().flatten().flatten();
        let is_there = |rank: usize, partial: usize| {
            (self.peers.get(rank)).is_some_and(|peer| partial < peer.shape.partials)
        };
        let missing = sums.filter(|sum| !is_there(sum.rank, sum.partial));
        let own = setup.peer_shape();
        match (missing.count(), own.partials <= self.shape.partials) {
            (0, true) if own.numbers == self.shape.numbers => Ok(()),
            _ => Err(CudaError::Mismatch {
                what: "memory of other workers",
                found: format!("{:?} of {} workers", self.shape, self.peers.len()),
                expected: format!("room for all sums, of this worker {own:?}"),
            }),
        }
    }
}

/// Another process's memory.
struct OpenedMemory {
    device: Arc<dyn Device>,
    at: Address,
}

impl OpenedMemory {
    fn new(device: &Arc<dyn Device>, handle: MemoryHandle) -> Result<Self, CudaError> {
        Ok(Self {
            at: device.open_exported(handle)?,
            device: device.clone(),
        })
    }
}

impl Drop for OpenedMemory {
    fn drop(&mut self) {
        // SAFETY: it was not closed before; what reads it has been waited for.
        unsafe { self.device.close_exported(self.at) };
    }
}

/// A number that tells this process from all others, in other namespaces too.
fn process() -> u64 {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_comes_back_from_its_numbers() {
        let offer = PeerOffer {
            process: 0x0123_4567_89ab_cdef,
            device: 3,
            address: 0xfedc_ba98_7654_3210,
            handle: MemoryHandle(std::array::from_fn(|at| 3 * at as u8 + 1)),
            partials: 5,
        };
        assert_eq!(PeerOffer::of_words(offer.words()), offer);
    }

    #[test]
    fn sums_of_both_halves_do_not_overlap() {
        let shape = PeerShape {
            partials: 3,
            numbers: 1000,
        };
        let places = (0..2).flat_map(|half| (0..3).map(move |partial| (half, partial)));
        let places: Vec<_> = places
            .map(|(half, partial)| shape.place(half, partial))
            .collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] == 4096));
        assert_eq!(shape.bytes(), PIECE);
    }
}
