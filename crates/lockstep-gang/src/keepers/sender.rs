//! What a rank sends to its keeper, by a thread, and the wait until all shares are where they are kept.

use super::held::ShareParts;
use super::links::KeeperLinks;
use super::message::{MOST_BYTES, MessageKind, MessageReader, MessageWriter};
use super::ward::{Ward, most_bytes};
use crate::secure::handshake::SecureChannel;
use crate::shm::{KeptState, KeptStep, KeptWriter};
use crate::{AbortSwitch, Deadline, GangError};
use lockstep_base::failpoint::reach;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often one who waits looks whether it was called off.
const LOOK: Duration = Duration::from_millis(10);

/// What is to be done at the keeper's as it was here.
#[derive(Debug)]
pub(crate) enum KeepJob {
    /// A version was completed.
    Version {
        number: usize,
        of: KeptStep,
        /// What was written of it.
        written: ShareParts,
    },
    /// A note was written.
    Note { text: Vec<u8>, extra: KeptExtra },
    /// The newest note was forgotten.
    Forget,
}

/// What a note is about, to be sent.
#[derive(Debug)]
pub(crate) enum KeptExtra {
    None,
    Same,
    New(Vec<f32>),
}

/// A rank's exchange with its keeper and its wards, while it lives.
#[derive(Debug)]
pub(crate) struct Keeping {
    /// Taken away at the end.
    jobs: Option<Sender<KeepJob>>,
    streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
    wards: Vec<Ward>,
    deadline: Deadline,
    abort: AbortSwitch,
}

impl Keeping {
    /// Sends what `state` holds as it is told, and takes in what wards send, with a hand to write for each.
    pub(super) fn begin(
        links: KeeperLinks,
        state: KeptState,
        writer: &dyn Fn(usize) -> Result<KeptWriter, GangError>,
    ) -> Result<Self, GangError> {
        let most = most_bytes(state.shape().note);
        let (jobs, to_do) = channel();
        let mut keeping = Self {
            jobs: Some(jobs),
            streams: Vec::new(),
            threads: Vec::new(),
            wards: Vec::new(),
            deadline: links.deadline,
            abort: links.abort,
        };
        let mut sending = Some((state, to_do));
        for (peer, channel) in links.channels {
            let SecureChannel {
                stream,
                sealer,
                opener,
            } = channel;
            let handles = || {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(None)?;
                stream.set_write_timeout(None)?;
                Ok([stream.try_clone()?, stream.try_clone()?])
            };
            let [own, reading] =
                handles().map_err(GangError::io(format!("set up a link to rank {peer}")))?;
            keeping.streams.push(own);
            if links.keepers[links.rank] == peer
                && let Some((state, to_do)) = sending.take()
            {
                let writer = MessageWriter::new(stream, links.encrypt.then_some(sealer));
                keeping.spawn("to-keeper", move || send_all(&to_do, &state, writer))?;
            }
            if links.keepers[peer] == links.rank {
                let reader = MessageReader::new(reading, links.encrypt.then_some(opener), most);
                let (ward, writer) = (Ward::new(peer, &links.plan), writer(peer)?);
                keeping.wards.push(ward.clone());
                keeping.spawn("from-ward", move || ward.take_in(reader, writer))?;
            }
        }
        Ok(keeping)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), GangError> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work);
        let thread = thread.map_err(GangError::io("start a thread for copies of the state"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Has a job done after all before it.
    pub(crate) fn send(&self, job: KeepJob) {
        // A thread that has ended has lost its keeper, which whoever waits for this rank's share finds.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// Waits until every ward's share of so many versions came.
    pub(crate) fn wait(&self, kept: u64) -> Result<(), GangError> {
        let begin = Instant::now();
        for ward in &self.wards {
            while !ward.wait(kept, LOOK)? {
                if self.abort.is_aborted() {
                    return Err(GangError::Aborted);
                }
                if self.abort.in_vain(begin.elapsed()) > self.deadline.0 {
                    return Err(GangError::PeerTimeout {
                        rank: ward.rank,
                        what: "send its share of the state".to_owned(),
                        seconds: self.deadline.0.as_secs_f64(),
                    });
                }
            }
        }
        lockstep_base::progress::waited(begin.elapsed());
        Ok(())
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.jobs = None;
        for stream in &self.streams {
            // It fails only for a connection that has ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Does all jobs, until there are no more or the keeper is gone.
fn send_all(jobs: &Receiver<KeepJob>, state: &KeptState, mut writer: MessageWriter) {
    while let Ok(job) = jobs.recv() {
        if send(job, state, &mut writer).is_err() {
            return;
        }
    }
}

fn send(job: KeepJob, state: &KeptState, writer: &mut MessageWriter) -> io::Result<()> {
    match job {
        KeepJob::Version {
            number,
            of,
            written,
        } => {
            writer.send(MessageKind::Begin, (0, 0), &[])?;
            for vector in 0..state.shape().vectors {
                for range in &written.ranges {
                    reach("keeper.part");
                    let numbers = state.part(number, vector, range.clone());
                    send_numbers(writer, (MessageKind::Numbers, vector, range.start), numbers)?;
                }
            }
            for &lane in &written.lanes {
                let sum = state.lane(number, lane);
                let lane = (lane as u64, 0);
                writer.send(MessageKind::Lane, lane, bytemuck::cast_slice(&sum))?;
            }
            let [first, second] = of.facts.map(f64::to_bits);
            let words = [of.step, first, second];
            reach("keeper.complete");
            writer.send(MessageKind::Complete, (0, 0), bytemuck::cast_slice(&words))
        }
        KeepJob::Note { text, extra } => {
            let about = match &extra {
                KeptExtra::None => 0,
                KeptExtra::Same => 1,
                KeptExtra::New(numbers) => {
                    send_numbers(writer, (MessageKind::Extra, 0, 0), numbers)?;
                    2
                }
            };
            writer.send(MessageKind::Note, (about, 0), &text)
        }
        KeepJob::Forget => writer.send(MessageKind::Forget, (0, 0), &[]),
    }
}

/// Sends numbers from a place on, so many at a time as a message holds.
fn send_numbers(
    writer: &mut MessageWriter,
    (kind, subject, mut at): (MessageKind, usize, usize),
    numbers: &[f32],
) -> io::Result<()> {
    for piece in numbers.chunks(MOST_BYTES / 4) {
        let place = (subject as u64, at as u64);
        writer.send(kind, place, bytemuck::cast_slice(piece))?;
        at += piece.len();
    }
    Ok(())
}
