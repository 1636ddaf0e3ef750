//! What every launcher must do, whatever it starts workers with.
//!
//! The suite is given a function that makes launchers whose program is a shell script.

use super::{Ending, LaunchNotice, Launcher, Notify, WorkerEnd, WorkerEvent, WorkerId, WorkerSpec};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Makes a launcher whose workers run a shell script.
pub type Make<'a> = dyn FnMut(&str) -> Box<dyn Launcher> + 'a;

/// The channel that notices come through, and what is heard there.
#[derive(Debug)]
pub struct NoticeChannel {
    sender: Mutex<Sender<LaunchNotice>>,
    notices: Receiver<LaunchNotice>,
}

impl Default for NoticeChannel {
    fn default() -> Self {
        let (sender, notices) = channel();
        Self {
            sender: Mutex::new(sender),
            notices,
        }
    }
}

impl NoticeChannel {
    /// Where a launcher's notices go.
    pub fn notify(&self) -> Notify {
        let sender = Mutex::new(self.sender.lock().unwrap().clone());
        Arc::new(move |notice| sender.lock().unwrap().send(notice).is_ok())
    }

    /// The next notice, if one comes in time.
    pub fn next(&self, limit: Duration) -> Option<LaunchNotice> {
        self.notices.recv_timeout(limit).ok()
    }

    /// All that is told of one worker until it ended and its output did.
    fn story(&self, id: WorkerId) -> Vec<WorkerEvent> {
        let mut story = Vec::new();
        let (mut ended, mut silent) = (false, false);
        while !(ended && silent) {
            let notice = self.next(LIMIT).expect("a worker's end is told");
            let begins = matches!(notice.what, WorkerEvent::Started(_));
            if notice.id == id && !begins {
                ended |= matches!(notice.what, WorkerEvent::Ended(_));
                silent |= notice.what == WorkerEvent::OutputEnded;
                story.push(notice.what);
            }
        }
        story
    }

    /// How a worker ended.
    pub fn end(&self, id: WorkerId) -> WorkerEnd {
        let ended = |what| match what {
            WorkerEvent::Ended(end) => Some(end),
            _ => None,
        };
        let mut ends: Vec<WorkerEnd> = self.story(id).into_iter().filter_map(ended).collect();
        assert_eq!(ends.len(), 1, "an end is told once: {ends:?}");
        ends.remove(0)
    }
}

/// A worker that only writes for people.
pub fn spec(seat: usize, incarnation: u32) -> WorkerSpec<'static> {
    WorkerSpec {
        id: WorkerId { seat, incarnation },
        command: "worker",
        invitation: "hello".to_owned(),
        speaks: false,
        memory: None,
    }
}

/// Checks all promises of [`Launcher`].
pub fn check(make: &mut Make<'_>) {
    the_invitation_arrives_and_what_is_written_is_heard_in_order(make);
    ends_are_told_as_what_they_are(make);
    a_worker_that_speaks_is_heard_and_told(make);
    a_successor_is_told_apart(make);
    all_are_ended_together(make);
}

fn the_invitation_arrives_and_what_is_written_is_heard_in_order(make: &mut Make<'_>) {
    let mut launcher = make(r#"read line; echo "$1 got $line"; echo two >&2; echo three"#);
    let heard = NoticeChannel::default();
    let spec = spec(0, 1);
    launcher.start(&spec, heard.notify()).unwrap();
    assert!(!launcher.describe(spec.id).is_empty());
    let mut story = heard.story(spec.id);
    story.retain(|what| *what != WorkerEvent::Ended(WorkerEnd::Code(0)));
    let wrote = |line: &str| WorkerEvent::Wrote(line.to_owned());
    let wanted = [wrote("worker got hello"), wrote("two"), wrote("three")];
    assert_eq!(story, [&wanted[..], &[WorkerEvent::OutputEnded]].concat());
}

fn ends_are_told_as_what_they_are(make: &mut Make<'_>) {
    for (script, end) in [
        ("exit 0", WorkerEnd::Code(0)),
        ("exit 7", WorkerEnd::Code(7)),
        ("kill -SEGV $$", WorkerEnd::Signal(11)),
    ] {
        let mut launcher = make(script);
        let heard = NoticeChannel::default();
        launcher.start(&spec(0, 1), heard.notify()).unwrap();
        assert_eq!(heard.end(spec(0, 1).id), end, "{script}");
    }
}

fn a_worker_that_speaks_is_heard_and_told(make: &mut Make<'_>) {
    let long = 100_000;
    let mut launcher = make(&format!(
        r#"read a; read b; echo "$a $b"; echo people >&2; head -c {long} /dev/zero | tr '\0' x; echo"#
    ));
    let heard = NoticeChannel::default();
    let spec = WorkerSpec {
        speaks: true,
        ..spec(0, 1)
    };
    launcher.start(&spec, heard.notify()).unwrap();
    launcher.tell(spec.id, "again");
    let story = heard.story(spec.id);
    let said: Vec<&WorkerEvent> = story
        .iter()
        .filter(|what| matches!(what, WorkerEvent::Said(_)))
        .collect();
    let wanted = ["hello again".to_owned(), "x".repeat(long)].map(WorkerEvent::Said);
    assert_eq!(said, [&wanted[0], &wanted[1]]);
    assert!(story.contains(&WorkerEvent::Wrote("people".to_owned())));
}

/// One is ended, another takes its seat; ending the first once more does not hurt the second.
fn a_successor_is_told_apart(make: &mut Make<'_>) {
    let mut launcher = make("read line; echo \"$line\"; exec sleep 1000");
    let heard = NoticeChannel::default();
    let (first, second) = (spec(0, 1), spec(0, 2));
    assert_eq!(first.id.successor(), second.id);
    launcher.start(&first, heard.notify()).unwrap();
    let surely = launcher.end(first.id) == Ending::Certain;
    if surely {
        assert!(heard.end(first.id).is_violent());
    }
    launcher.start(&second, heard.notify()).unwrap();
    launcher.end(first.id);
    let written = loop {
        let notice = heard.next(LIMIT).expect("the second writes");
        if notice.id == second.id && !matches!(notice.what, WorkerEvent::Started(_)) {
            break notice.what;
        }
    };
    assert_eq!(written, WorkerEvent::Wrote("hello".to_owned()));
    launcher.end(second.id);
}

fn all_are_ended_together(make: &mut Make<'_>) {
    let mut launcher = make("exec sleep 1000");
    let heard = NoticeChannel::default();
    for seat in 0..3 {
        launcher.start(&spec(seat, 1), heard.notify()).unwrap();
    }
    launcher.end_all();
    let mut ended = 0;
    while ended < 3 {
        let notice = heard.next(LIMIT).expect("all ends are told");
        ended += usize::from(matches!(notice.what, WorkerEvent::Ended(_)));
    }
}
