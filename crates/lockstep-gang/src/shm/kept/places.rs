//! What is kept, and where everything lies.

use crate::shm::layout::LINE;
use crate::shm::region::PAGE;

/// Numbers of a lane's sum.
pub(super) const LANE_WORDS: usize = 3;

/// What a gang keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptShape {
    /// Vectors of a version, such as the weights and those of the optimizer.
    pub vectors: usize,
    /// Numbers of each of them.
    pub len: usize,
    /// Lanes of the gang.
    pub lanes: usize,
    /// The most ranks that it may have.
    pub ranks: usize,
    /// The most bytes of a note.
    pub note: usize,
    /// Whether notes are about a vector of their own.
    pub extra: bool,
}

impl KeptShape {
    /// Bytes that it takes in a segment.
    pub fn bytes(&self) -> usize {
        Places::of(self).end
    }

    /// Bytes of it that are used at the most but for notes, of which only what is written takes memory.
    pub fn bytes_touched(&self) -> usize {
        Places::of(self).texts
    }

    /// Bytes of it that a process holds at the most, but for notes, where so many ranks keep shares for each other: its own
    /// share of both versions, that of one other rank, and the vectors that notes are about.
    pub fn bytes_held(&self, ranks: usize) -> usize {
        let places = Places::of(self);
        let versions = places.rare - places.words;
        places.words + 2 * versions.div_ceil(ranks.max(2)) + (places.texts - places.rare)
    }

    /// Where in a segment it may lie at the earliest if something else ends there.
    pub fn after(end: usize) -> usize {
        end.next_multiple_of(PAGE)
    }

    pub(super) fn numbers(&self) -> [usize; 6] {
        let extra = usize::from(self.extra);
        [
            self.vectors,
            self.len,
            self.lanes,
            self.ranks,
            self.note,
            extra,
        ]
    }
}

/// Where everything lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) shape: KeptShape,
    lanes: usize,
    notes: usize,
    /// Where words end, and vectors begin.
    pub(super) words: usize,
    /// Where what is rarely written begins: extra vectors and notes.
    pub(super) rare: usize,
    texts: usize,
    pub(super) end: usize,
}

impl Places {
    pub(super) fn of(shape: &KeptShape) -> Self {
        let lanes = LINE * (1 + 2 * shape.ranks);
        let notes = (lanes + 2 * shape.lanes * LANE_WORDS * 8).next_multiple_of(LINE);
        let words = notes + 2 * LINE;
        let vector = (4 * shape.len).next_multiple_of(LINE);
        let rare = (words + 2 * shape.vectors * vector).next_multiple_of(PAGE);
        let texts = rare + if shape.extra { 2 * vector } else { 0 };
        Self {
            shape: *shape,
            lanes,
            notes,
            words,
            rare,
            texts,
            end: texts + 2 * shape.note.next_multiple_of(LINE),
        }
    }

    pub(super) fn rank(&self, version: usize, rank: usize) -> usize {
        assert!(rank < self.shape.ranks, "no rank {rank}");
        LINE * (1 + version * self.shape.ranks + rank)
    }

    pub(super) fn lane(&self, version: usize, lane: usize) -> usize {
        assert!(lane < self.shape.lanes, "no lane {lane}");
        self.lanes + (version * self.shape.lanes + lane) * LANE_WORDS * 8
    }

    pub(super) fn note(&self, number: usize) -> usize {
        self.notes + number * LINE
    }

    pub(super) fn text(&self, number: usize) -> usize {
        self.texts - self.rare + number * self.shape.note.next_multiple_of(LINE)
    }

    pub(super) fn vector(&self, version: usize, vector: usize) -> usize {
        assert!(vector < self.shape.vectors, "no vector {vector}");
        let len = (4 * self.shape.len).next_multiple_of(LINE);
        self.words + (version * self.shape.vectors + vector) * len
    }

    pub(super) fn extra(&self, number: usize) -> usize {
        number * (4 * self.shape.len).next_multiple_of(LINE)
    }
}
