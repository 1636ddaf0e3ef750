//! Gangs whose ranks are threads of a test.

#![allow(dead_code)] // Each test binary uses its part.

use lockstep_gang::*;
use std::net::{SocketAddr, TcpListener};
use std::thread;

/// All ranks of a gang in shared memory.
pub(crate) fn shm(plan: &Plan, memberships: &[Membership]) -> Vec<Box<dyn SharingCollective>> {
    let segment = Segment::create(ShmCollective::bytes_needed(plan)).unwrap();
    ShmControl::new(&segment, plan, memberships[0].generation).unwrap();
    let join = |membership| {
        let joined = ShmCollective::join(&segment, plan.clone(), membership).unwrap();
        Box::new(joined) as Box<dyn SharingCollective>
    };
    memberships.iter().map(join).collect()
}

/// All ranks of a gang over TCP.
pub(crate) fn tcp(plan: &Plan, memberships: &[Membership]) -> Vec<Box<dyn SharingCollective>> {
    let gang = tcp_gang(plan, memberships).into_iter();
    gang.map(|rank| Box::new(rank) as Box<dyn SharingCollective>)
        .collect()
}

pub(crate) fn tcp_gang(plan: &Plan, memberships: &[Membership]) -> Vec<TcpCollective> {
    let secret = Secret::random().unwrap();
    let (listeners, addresses) = listeners(plan.workers());
    thread::scope(|scope| {
        let join = |(listener, membership)| {
            let (addresses, secret, plan) = (&addresses, &secret, plan.clone());
            scope.spawn(move || TcpCollective::join(listener, addresses, secret, plan, membership))
        };
        let joining: Vec<_> = listeners.iter().zip(memberships).map(join).collect();
        let ranks = joining.into_iter();
        ranks.map(|rank| rank.join().unwrap().unwrap()).collect()
    })
}

pub(crate) fn listeners(count: usize) -> (Vec<TcpListener>, Vec<SocketAddr>) {
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let addresses = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
    (listeners, addresses)
}
