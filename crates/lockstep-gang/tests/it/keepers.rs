//! Copies of the state at other ranks: whichever process dies, all that was settled is left with those who live.

use crate::gangs;
use lockstep_gang::*;
use std::ops::Range;
use std::thread;

const LANES: usize = 6;
const CHUNK: usize = 5;
const SHAPE: KeptShape = KeptShape {
    vectors: 2,
    len: 8 * CHUNK,
    lanes: LANES,
    ranks: 4,
    note: 64,
    extra: true,
};

/// What a vector comes to after so many steps, any bits among them.
fn truth(step: u64, vector: usize) -> Vec<f32> {
    let number = |place: usize| match place {
        7 => f32::from_bits(0x7f80_0001),
        9 => -0.0,
        _ => step as f32 + vector as f32 / 2.0 + place as f32 / 1024.0,
    };
    (0..SHAPE.len).map(number).collect()
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// A plan for workers on these hosts: a tree if any has several.
fn plan(hosts: &[usize]) -> Plan {
    let chunks: Vec<Range<usize>> = (0..SHAPE.len / CHUNK)
        .map(|chunk| chunk * CHUNK..(chunk + 1) * CHUNK)
        .collect();
    let plan = Plan::new(chunks, LANES, hosts.iter().sum()).unwrap();
    match hosts.iter().all(|&workers| workers == 1) {
        true => plan,
        false => plan.on_hosts(hosts).unwrap(),
    }
}

/// Who keeps for whom on these hosts.
fn keepers_on(hosts: &[usize]) -> Vec<usize> {
    let names: Vec<String> = (0..hosts.len()).map(|host| host.to_string()).collect();
    let of = hosts.iter().zip(&names);
    let of = of.flat_map(|(&workers, name)| std::iter::repeat_n(Some(name.as_str()), workers));
    keepers(&of.collect::<Vec<_>>())
}

/// The ranks of a generation on these hosts.
fn join(hosts: &[usize], generation: u16) -> Vec<Box<dyn SharingCollective>> {
    let (plan, keepers) = (plan(hosts), keepers_on(hosts));
    let member = |rank| Membership {
        rank,
        generation,
        ..Membership::default()
    };
    let members: Vec<Membership> = (0..plan.workers()).map(member).collect();
    match plan.hosts() {
        _ if plan.workers() == 1 => vec![Box::new(Solo::new(plan, Default::default()).unwrap())],
        Some(_) => gangs::on_hosts_kept(&plan, &members, &keepers),
        None => {
            let gang = gangs::tcp_gang_kept(&plan, &members, &keepers).into_iter();
            gang.map(|rank| Box::new(rank) as Box<dyn SharingCollective>)
                .collect()
        }
    }
}

/// Writes a rank's share of a step, up to the first so many parts of it; true if that is all.
fn write(writer: &mut KeptWriter, plan: &Plan, (rank, step): (usize, u64), parts: usize) -> bool {
    let own = (0..plan.chunks()).filter(|&chunk| plan.owner(chunk) == rank);
    let own: Vec<(usize, usize)> = own
        .flat_map(|chunk| (0..SHAPE.vectors).map(move |vector| (chunk, vector)))
        .collect();
    writer.begin();
    for &(chunk, vector) in own.iter().take(parts) {
        let range = plan.chunk(chunk);
        writer.write(vector, range.start, &truth(step, vector)[range]);
    }
    if parts <= own.len() {
        return false;
    }
    for lane in plan.lanes_of(rank) {
        writer.write_lane(lane, [step, lane as u64, u64::MAX]);
    }
    let facts = [step as f64, f64::NAN];
    writer.complete(KeptStep { step, facts });
    true
}

/// What a generation is to do.
struct Course<'a> {
    hosts: &'a [usize],
    generation: u16,
    /// Steps that are kept.
    steps: u64,
    /// After those, a rank that dies when it has written so many parts of its share of another one.
    victim: Option<(usize, usize)>,
}

/// What a gang goes on from: the step, if any is left.
fn newest(memories: &[HeldMemory]) -> Option<HeldVersion> {
    let held: Vec<Vec<HeldShare>> = memories.iter().map(HeldMemory::shares).collect();
    newest_held(&held.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// A generation of these processes, who go on from what they hold. Returns the step that it began with.
fn generation(memories: &[HeldMemory], course: &Course<'_>) -> u64 {
    let from = newest(memories);
    let begun = from.as_ref().map_or(0, |from| from.stamp.step);
    let gang = join(course.hosts, course.generation);
    let ranks = gang.len();
    assert_eq!(ranks, memories.len());
    thread::scope(|scope| {
        for (rank, (mut collective, memory)) in gang.into_iter().zip(memories).enumerate() {
            let from = &from;
            scope.spawn(move || {
                let collective = &mut *collective;
                match from {
                    Some(from) => memory.complete(from, collective).unwrap(),
                    None => memory.clear(),
                }
                check(memory, from.as_ref());
                let version = from.as_ref().map(|from| KeptVersion {
                    number: from.number,
                    step: begun,
                });
                let links = collective.take_keeper_links();
                let who = (rank, ranks, course.generation);
                let mut writer = memory.writer(who, version, links).unwrap();
                let plan = collective.plan().clone();
                // What was on its way to the keeper when rank 0 died is written again.
                let known = writer.notes();
                let (text, best) = note_of(begun);
                if rank == 0 && known.first().is_none_or(|note| note.text != text) {
                    write_note(&mut writer, &text, best.as_deref());
                }
                for step in begun + 1..=begun + course.steps {
                    assert!(write(&mut writer, &plan, (rank, step), usize::MAX));
                    writer.settle(collective).unwrap();
                    if rank == 0 {
                        let (text, best) = note_of(step);
                        write_note(&mut writer, &text, best.as_deref());
                    }
                }
                let Some((victim, parts)) = course.victim else {
                    return collective.barrier().unwrap();
                };
                let parts = if victim == rank { parts } else { usize::MAX };
                write(&mut writer, &plan, (rank, begun + course.steps + 1), parts);
                if victim != rank {
                    let settled = writer.settle(collective);
                    assert!(settled.is_err_and(|error| error.is_peer_lost()));
                }
            });
        }
    });
    begun
}

/// All of a version is in a memory that was completed.
fn check(memory: &HeldMemory, from: Option<&HeldVersion>) {
    let Some(from) = from else {
        return assert!(memory.shares().is_empty());
    };
    let (state, step) = (memory.open().unwrap(), from.stamp.step);
    let version = state.newest().unwrap();
    assert_eq!((version.number, version.step), (from.number, step));
    for vector in 0..SHAPE.vectors {
        let numbers = state.vector(version, vector);
        assert_eq!(bits(&numbers), bits(&truth(step, vector)));
    }
    let lanes: Vec<_> = (0..LANES as u64)
        .map(|lane| [step, lane, u64::MAX])
        .collect();
    assert_eq!(state.lanes(version), lanes);
    assert_eq!(state.facts(version)[0], step as f64);
    // The note after the step may have been on its way.
    let notes = state.notes().into_iter();
    let notes: Vec<_> = notes
        .map(|note| {
            let extra = state.extra(&note).map(|numbers| bits(&numbers));
            (note.text, extra)
        })
        .collect();
    let of = |step: u64| {
        let (text, best) = note_of(step);
        (text, best.map(|best| bits(&best)))
    };
    assert!(
        notes.contains(&of(step)) || notes[0] == of(step - 1),
        "{step}: {notes:?}"
    );
}

/// The note that follows a step, and what it is about.
fn note_of(step: u64) -> (Vec<u8>, Option<Vec<f32>>) {
    let best = (step > 0).then(|| truth(step, 9));
    (step.to_string().into_bytes(), best)
}

fn write_note(writer: &mut KeptWriter, text: &[u8], best: Option<&[f32]>) {
    let extra = best.map_or(NoteExtra::None, NoteExtra::New);
    assert!(writer.note(text, extra));
}

fn memories(count: usize) -> Vec<HeldMemory> {
    (0..count)
        .map(|_| HeldMemory::create(SHAPE).unwrap())
        .collect()
}

/// Any of a gang dies, after any number of steps and in the midst of the next one; another one comes in its place, or none,
/// and the ranks that are left may be other ones. Then it happens again.
#[test]
fn whoever_dies_everything_that_was_settled_is_left_with_those_who_live() {
    let gangs: [(&[usize], &[usize]); 5] = [
        (&[1, 1], &[1, 1]),
        (&[1, 1, 1], &[1, 1]),
        (&[2, 2], &[2, 1]),
        (&[2, 1, 1], &[1, 1, 1, 1]),
        (&[1, 1], &[1]),
    ];
    for (first, second) in gangs {
        let ranks: usize = first.iter().sum();
        for victim in 0..ranks {
            for (steps, parts) in [(1, 0), (2, 3), (3, usize::MAX - 1), (4, 1)] {
                let mut held = memories(ranks);
                let course = |hosts, generation, victim| Course {
                    hosts,
                    generation,
                    steps,
                    victim,
                };
                assert_eq!(
                    generation(&held, &course(first, 1, Some((victim, parts)))),
                    0
                );
                drop(held.remove(victim));
                let missing = second.iter().sum::<usize>().saturating_sub(held.len());
                held.splice(0..0, memories(missing));
                let again = (second.iter().sum::<usize>() > 1).then_some((0, 2));
                let begun = generation(&held, &course(second, 2, again));
                // One that wrote all of its share before it died may have made the step whole.
                assert!(
                    (steps..=steps + 1).contains(&begun),
                    "{first:?} {victim}: {begun}"
                );
                if again.is_some() {
                    drop(held.remove(0));
                    held.extend(memories(1));
                }
                let last = generation(&held, &course(second, 3, None));
                assert!(
                    (begun + steps..=begun + steps + 1).contains(&last),
                    "{first:?} {victim}: {last}"
                );
            }
        }
    }
}

#[test]
fn a_rank_and_its_keeper_that_die_together_leave_nothing_that_would_be_taken_for_whole() {
    let mut held = memories(3);
    let course = |generation, steps| Course {
        hosts: &[1, 1, 1],
        generation,
        steps,
        victim: None,
    };
    generation(&held, &course(1, 3));
    assert_eq!(newest(&held).unwrap().stamp.step, 3);
    // Rank 1 keeps for rank 0.
    held.drain(0..2);
    assert_eq!(newest(&held), None);
    held.extend(memories(2));
    assert_eq!(generation(&held, &course(2, 1)), 0);
    assert_eq!(newest(&held).unwrap().stamp.step, 1);
}
