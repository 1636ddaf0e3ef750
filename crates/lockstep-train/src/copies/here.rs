//! The copies that an assignment names, opened in this process.

use super::{read, shape};
use crate::TrainError;
use crate::sets::DataFacts;
use crate::snapshot::Snapshot;
use lockstep_events::control::{CopyMemory, CopyPlace, StateCopy};
use lockstep_gang::{
    HeldMemory, HeldVersion, KeptShape, KeptState, KeptVersion, KeptWriter, RankStamp, Segment,
    SharingCollective,
};
use lockstep_resolve::TrainingSettings;

/// The copies of a gang's state as this process has them, when a generation begins.
pub(crate) struct CopiesHere<'a> {
    place: &'a CopyPlace,
    kept: KeptState,
    /// What this process holds, if that is memory of its own.
    held: Option<&'a HeldMemory>,
}

impl<'a> CopiesHere<'a> {
    /// Opens what the assignment names. `held` is what this process holds since an earlier generation, if it holds
    /// anything. What others hold of the copy to go on from is brought here: all ranks do this together.
    pub(crate) fn open(
        place: &'a CopyPlace,
        held: &'a mut Option<HeldMemory>,
        (settings, data, len): (&TrainingSettings, &DataFacts, usize),
        collective: &mut dyn SharingCollective,
    ) -> Result<Self, TrainError> {
        if let CopyMemory::Shared { fd, at } = place.memory {
            let kept = KeptState::open(&Segment::inherited(fd)?, at)?;
            return Ok(Self {
                place,
                kept,
                held: None,
            });
        }
        // No gang of this job has more ranks than lanes.
        let shape = KeptShape {
            ranks: settings.lanes,
            ..shape(settings, data, len)
        };
        let held = match held {
            Some(held) => held,
            none => none.insert(HeldMemory::create(shape)?),
        };
        match &place.from {
            Some(copy) => held.complete(&held_version(copy), collective)?,
            None => held.clear(),
        }
        Ok(Self {
            place,
            kept: held.open()?,
            held: Some(held),
        })
    }

    /// The copy that the generation goes on from, if it does from any.
    pub(crate) fn version(&self) -> Option<KeptVersion> {
        let from = self.place.from.as_ref()?;
        Some(KeptVersion {
            number: from.number,
            step: from.step,
        })
    }

    /// Reads the copy to go on from, if there is any.
    pub(crate) fn read(
        &self,
        settings: &TrainingSettings,
        of: (usize, u64),
    ) -> Option<Result<Snapshot, TrainError>> {
        Some(read(&self.kept, self.version()?, settings, of))
    }

    /// This rank's hand to write the next copies, unless nobody is there who would keep them.
    pub(crate) fn writer(
        self,
        generation: u16,
        collective: &mut dyn SharingCollective,
    ) -> Result<Option<KeptWriter>, TrainError> {
        let from = self.version();
        let (rank, ranks) = (collective.rank(), collective.plan().workers());
        let Some(held) = self.held else {
            return Ok(Some(self.kept.writer(rank, ranks, generation, from)));
        };
        let links = collective.take_keeper_links();
        let writer = links.map(|links| held.writer((rank, ranks, generation), from, Some(links)));
        Ok(writer.transpose()?)
    }
}

fn held_version(copy: &StateCopy) -> HeldVersion {
    HeldVersion {
        number: copy.number,
        stamp: RankStamp {
            stamp: copy.stamp,
            step: copy.step,
            ranks: copy.holders.len() as u64,
        },
        holders: copy.holders.clone(),
    }
}
