//! The state that outlives workers: whatever moment they die at, one version is whole, and it is the newest that counts.

use lockstep_gang::*;

const SHAPE: KeptShape = KeptShape {
    vectors: 2,
    len: 40,
    lanes: 3,
    ranks: 3,
    note: 64,
    extra: true,
};

/// Where the state begins in its segment.
fn at() -> usize {
    KeptShape::after(1)
}

struct Host {
    segment: Segment,
    control: KeptState,
}

impl Host {
    fn new() -> Self {
        let segment = Segment::create(at() + SHAPE.bytes()).unwrap();
        let control = KeptState::create(&segment, at(), SHAPE).unwrap();
        Self { segment, control }
    }

    fn open(&self) -> KeptState {
        KeptState::open(&self.segment, at()).unwrap()
    }

    /// The ranks of a generation that goes on from the newest version.
    fn generation(&self, ranks: usize, generation: u16) -> Vec<KeptWriter> {
        let from = self.control.newest();
        (0..ranks)
            .map(|rank| self.open().writer(rank, ranks, generation, from))
            .collect()
    }
}

/// The numbers of a rank of so many.
fn share(rank: usize, ranks: usize) -> std::ops::Range<usize> {
    rank * SHAPE.len / ranks..(rank + 1) * SHAPE.len / ranks
}

/// One thing that a rank does.
type Act = Box<dyn FnOnce(&mut KeptWriter)>;

/// What a rank does to keep a step, up to the first so many of it; all of it if there are fewer.
fn keep(writer: &mut KeptWriter, (rank, ranks): (usize, usize), step: u64, until: usize) -> usize {
    let numbers = |vector: usize| vec![step as f32 + vector as f32 / 2.0; share(rank, ranks).len()];
    let mut acts: Vec<Act> = vec![Box::new(KeptWriter::begin)];
    for vector in 0..SHAPE.vectors {
        let (at, numbers) = (share(rank, ranks).start, numbers(vector));
        acts.push(Box::new(move |writer| writer.write(vector, at, &numbers)));
    }
    if rank == 0 {
        acts.push(Box::new(move |writer| {
            for lane in 0..SHAPE.lanes {
                writer.write_lane(lane, [step, step + 1, lane as u64]);
            }
        }));
    }
    let facts = [step as f64, f64::NAN];
    acts.push(Box::new(move |writer| {
        writer.complete(KeptStep { step, facts });
    }));
    let all = acts.len();
    for act in acts.into_iter().take(until) {
        act(writer);
    }
    all
}

/// Checks that the newest version is all of one step, and returns which.
fn newest(host: &Host) -> Option<u64> {
    let (kept, newest) = (host.open(), host.control.newest()?);
    assert_eq!(kept.newest(), Some(newest));
    for vector in 0..SHAPE.vectors {
        let expected = vec![newest.step as f32 + vector as f32 / 2.0; SHAPE.len];
        assert_eq!(kept.vector(newest, vector), expected);
    }
    let lanes: Vec<_> = (0..SHAPE.lanes as u64)
        .map(|lane| [newest.step, newest.step + 1, lane])
        .collect();
    assert_eq!(kept.lanes(newest), lanes);
    assert_eq!(kept.facts(newest)[0], newest.step as f64);
    Some(newest.step)
}

#[test]
fn wherever_a_rank_dies_the_version_before_or_the_new_one_is_whole() {
    let whole = usize::MAX;
    // Every generation goes on from what the one before has left, with another number of ranks.
    let host = Host::new();
    let mut last = None;
    let mut generation = 0;
    for before in 0..3 {
        for victim in 0..3 {
            for until in 0..5 {
                generation += 1;
                let ranks = 1 + generation as usize % 3;
                let mut writers = host.generation(ranks, generation);
                let begun = last.unwrap_or(0);
                for step in 1..=before {
                    for (rank, writer) in writers.iter_mut().enumerate() {
                        keep(writer, (rank, ranks), begun + step, whole);
                    }
                    last = Some(begun + step);
                    assert_eq!(newest(&host), last);
                }
                let next = begun + before + 1;
                let mut died = false;
                for (rank, writer) in writers.iter_mut().enumerate() {
                    let most = if rank == victim { until } else { whole };
                    died |= keep(writer, (rank, ranks), next, most) > most;
                }
                if !died {
                    last = Some(next);
                }
                assert_eq!(newest(&host), last, "{before} {victim} {until}");
            }
        }
    }
}

#[test]
fn what_is_forgotten_does_not_come_back() {
    let host = Host::new();
    let mut writer = host.generation(1, 1).remove(0);
    keep(&mut writer, (0, 1), 7, usize::MAX);
    assert!(writer.note(b"seven", NoteExtra::None));
    assert_eq!(newest(&host), Some(7));
    host.control.clear();
    assert_eq!((newest(&host), notes(&host)), (None, Vec::new()));
}

/// What the notes say, the newest first, and the first number of their vectors.
fn notes(host: &Host) -> Vec<(String, Option<f32>)> {
    let state = host.open();
    let notes = state.notes().into_iter().map(|note| {
        let extra = state.extra(&note).map(|numbers| numbers[0]);
        (String::from_utf8(note.text).unwrap(), extra)
    });
    notes.collect()
}

#[test]
fn a_note_replaces_the_older_one_whole_and_keeps_its_vector_until_there_is_another() {
    let host = Host::new();
    let mut writer = host.generation(1, 1).remove(0);
    let mut expected = Vec::new();
    let mut written = |text: &str, extra: Option<f32>| {
        expected.insert(0, (text.to_owned(), extra));
        expected.truncate(2);
        assert_eq!(notes(&host), expected);
    };
    assert!(writer.note(b"none", NoteExtra::None));
    written("none", None);
    for (text, number) in [("one", 1.0), ("another", 2.0), ("third", 3.0)] {
        let numbers = vec![number; SHAPE.len];
        assert!(writer.note(text.as_bytes(), NoteExtra::New(&numbers)));
        written(text, Some(number));
        for same in ["the same", "again the same", ""] {
            assert!(writer.note(same.as_bytes(), NoteExtra::Same));
            written(same, Some(number));
        }
    }
    let long = [0; SHAPE.note + 1];
    assert!(!writer.note(&long, NoteExtra::Same), "there is no room");
    assert_eq!(notes(&host)[0], (String::new(), Some(3.0)));
}

#[test]
fn a_note_that_is_forgotten_leaves_the_one_before_and_its_vector() {
    let host = Host::new();
    let mut writer = host.generation(1, 1).remove(0);
    for (text, number) in [("one", 1.0), ("two", 2.0), ("three", 3.0)] {
        assert!(writer.note(text.as_bytes(), NoteExtra::New(&[number; SHAPE.len])));
    }
    writer.forget_newest_note();
    assert_eq!(notes(&host), [("two".to_owned(), Some(2.0))]);
    assert!(writer.note(b"four", NoteExtra::New(&[4.0; SHAPE.len])));
    let both = [("four", 4.0), ("two", 2.0)].map(|(text, number)| (text.to_owned(), Some(number)));
    assert_eq!(notes(&host), both);
}

#[test]
fn memory_without_a_kept_state_is_refused() {
    let segment = Segment::create(at() + SHAPE.bytes()).unwrap();
    assert!(KeptState::open(&segment, at()).is_err());
    assert!(KeptState::open(&Segment::create(1).unwrap(), at()).is_err());
}
