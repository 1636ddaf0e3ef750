//! Whether the devices of a gang exchange gradients themselves, without the host: if each can read what all others have in
//! their memory, on one machine.
//!
//! All ranks ask at once, and all go the same way: first each says what it offers, then each tries to open what all offer. One
//! that has nothing to offer, such as a processor, or cannot read another one's memory, leaves the exchange to the hosts.

use crate::TrainError;
use crate::device::{Device, ReplicaSetup};
use lockstep_cuda::PeerOffer;
use lockstep_events::control::Transport;
use lockstep_gang::SharingCollective;

/// Whether workers that exchange in such a way are all on one machine.
pub(crate) fn are_on_one_machine(transport: &Transport) -> bool {
    match transport {
        Transport::Shm { .. } => true,
        Transport::Hosts { hosts, .. } => hosts.len() == 1,
        Transport::Solo | Transport::Own | Transport::Tcp { .. } => false,
    }
}

/// Agrees with all ranks on whether their devices exchange gradients themselves, and notes it.
pub(crate) fn agree(
    device: &mut dyn Device,
    setup: &mut ReplicaSetup<'_>,
    collective: &mut dyn SharingCollective,
) -> Result<(), TrainError> {
    let (rank, workers) = (collective.rank(), collective.plan().workers());
    if workers == 1 {
        return Ok(());
    }
    // A number more than an offer has: whether there is one.
    let mut mine = [0.0; PeerOffer::WORDS + 1];
    if let Some(offer) = device.offer(setup, rank) {
        mine[0] = 1.0;
        for (number, word) in mine[1..].iter_mut().zip(offer.words()) {
            *number = f64::from(word);
        }
    }
    let mut all = vec![0.0; workers * mine.len()];
    collective.all_gather(&mine, &mut all)?;
    let offers = all.chunks_exact(mine.len()).map(|numbers| {
        let words = std::array::from_fn(|at| numbers[1 + at] as u32);
        (numbers[0] == 1.0).then(|| PeerOffer::of_words(words))
    });
    let Some(offers) = offers.collect::<Option<Vec<_>>>() else {
        return Ok(());
    };
    let mut opened = vec![0.0; workers];
    collective.all_gather(&[f64::from(device.open(&offers))], &mut opened)?;
    setup.has_peers = opened.iter().all(|&opened| opened == 1.0);
    Ok(())
}
