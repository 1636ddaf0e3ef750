//! The threads that read and write all connections of a rank.
//!
//! Each connection belongs to one *loop*, a thread that waits until one of its connections has something to
//! read or room to write, or until the rank has queued something. A rank has few loops, however many peers it
//! has; how many is a matter of cores, since opening and sealing is work.

use super::connection::Connection;
use super::peer::LOOK;
use super::sender::Patience;
use crate::GangError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Loops of a rank at the most: one core opens and seals more than most cards carry.
const MOST_LOOPS: usize = 4;
/// How long a loop sleeps when nothing happens.
const IDLE: Duration = Duration::from_secs(1);

/// Wakes a loop that sleeps.
#[derive(Debug)]
pub(super) struct Waker {
    asleep: AtomicBool,
    bell: UnixStream,
}

impl Waker {
    /// Makes a waker, and what its loop waits for.
    fn new() -> std::io::Result<(Self, UnixStream)> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        let asleep = AtomicBool::new(false);
        Ok((Self { asleep, bell }, ear))
    }

    /// Wakes the loop, if it sleeps, to look at its queues.
    pub(super) fn wake(&self) {
        // Either the loop sees what was queued before it falls asleep, or this sees that it sleeps.
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            self.call();
        }
    }

    /// Lets the loop look at everything, whether it sleeps or is about to.
    pub(super) fn call(&self) {
        // A bell that is full rings already.
        let _ = (&self.bell).write(&[1]);
    }
}

/// All loops of a rank.
#[derive(Debug, Default)]
pub(super) struct Loops {
    threads: Vec<JoinHandle<()>>,
    wakers: Vec<Arc<Waker>>,
    over: Arc<AtomicBool>,
}

/// Loops that have no connections yet.
pub(super) struct LoopsToBe {
    ears: Vec<UnixStream>,
    pub(super) wakers: Vec<Arc<Waker>>,
}

impl LoopsToBe {
    /// As many loops as so many connections need on this machine.
    pub(super) fn new(connections: usize) -> Result<Self, GangError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let loops = cores.min(MOST_LOOPS).min(connections);
        let (mut ears, mut wakers) = (Vec::new(), Vec::new());
        for _ in 0..loops {
            let (waker, ear) = Waker::new().map_err(GangError::io("make a bell for a thread"))?;
            ears.push(ear);
            wakers.push(Arc::new(waker));
        }
        Ok(Self { ears, wakers })
    }

    /// Starts them with their connections, each by the number of its loop.
    pub(super) fn start(
        self,
        connections: Vec<(usize, Connection)>,
        patience: &Patience,
    ) -> Result<Loops, GangError> {
        let mut all: Vec<Vec<Connection>> = self.wakers.iter().map(|_| Vec::new()).collect();
        for (number, connection) in connections {
            all[number].push(connection);
        }
        let over = Arc::new(AtomicBool::new(false));
        let mut loops = Loops {
            threads: Vec::new(),
            wakers: self.wakers.clone(),
            over: over.clone(),
        };
        let each = all.into_iter().zip(self.ears).zip(self.wakers);
        for (number, ((connections, ear), waker)) in each.enumerate() {
            let (over, patience) = (over.clone(), patience.clone());
            let thread = std::thread::Builder::new()
                .name(format!("links-{number}"))
                .spawn(move || run(connections, &ear, &waker, &over, &patience))
                .map_err(GangError::io("start a thread for connections"))?;
            loops.threads.push(thread);
        }
        Ok(loops)
    }
}

impl Loops {
    /// Ends all loops: what can be sent without waiting is sent, the rest is not.
    pub(super) fn end(&mut self) {
        self.over.store(true, Ordering::Release);
        self.wakers.iter().for_each(|waker| waker.call());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads and writes until it is over.
fn run(
    mut connections: Vec<Connection>,
    ear: &UnixStream,
    waker: &Waker,
    over: &AtomicBool,
    patience: &Patience,
) {
    let streams: Vec<Arc<TcpStream>> = (connections.iter())
        .map(|connection| connection.stream.clone())
        .collect();
    let mut polled = Vec::with_capacity(connections.len() + 1);
    let mut numbers = Vec::with_capacity(connections.len());
    loop {
        let is_over = over.load(Ordering::Acquire);
        for connection in &mut connections {
            connection.send(patience);
            // The last turn is as long as there is room.
            while is_over && connection.can_send() {
                connection.send(patience);
            }
        }
        if is_over {
            return;
        }
        waker.asleep.store(true, Ordering::SeqCst);
        // With something left to send it only looks, so that what comes has its turn.
        let mut sleep = match connections.iter().any(Connection::can_send) {
            true => Duration::ZERO,
            false => IDLE,
        };
        polled.clear();
        numbers.clear();
        polled.push(PollFd::new(ear, PollFlags::IN));
        for (number, connection) in connections.iter().enumerate() {
            let wants = connection.wants();
            if connection.is_held_up() {
                sleep = sleep.min(LOOK);
            }
            if !wants.is_empty() {
                polled.push(PollFd::new(&*streams[number], wants));
                numbers.push(number);
            }
        }
        let sleep = Timespec::try_from(sleep).ok();
        // An interruption is one more look; nothing else can go wrong with connections that are open.
        let _ = poll(&mut polled, sleep.as_ref());
        waker.asleep.store(false, Ordering::SeqCst);
        if !polled[0].revents().is_empty() {
            while matches!((&mut &*ear).read(&mut [0; 64]), Ok(64)) {}
        }
        for (polled, &number) in polled[1..].iter().zip(&numbers) {
            connections[number].happened(polled.revents());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_has_few_threads_however_many_peers_it_has() {
        for connections in [0, 1, 64, 511] {
            let loops = LoopsToBe::new(connections).unwrap().wakers.len();
            assert!(
                loops <= MOST_LOOPS.min(connections),
                "{connections}: {loops}"
            );
            assert_eq!(loops > 0, connections > 0);
        }
    }

    #[test]
    fn a_loop_that_sleeps_is_woken_once_and_one_that_does_not_is_left_alone() {
        let (waker, mut ear) = Waker::new().unwrap();
        waker.wake();
        assert!(ear.read(&mut [0; 8]).is_err(), "it does not sleep");
        waker.asleep.store(true, Ordering::SeqCst);
        waker.wake();
        waker.wake();
        assert_eq!(ear.read(&mut [0; 8]).unwrap(), 1);
    }
}
