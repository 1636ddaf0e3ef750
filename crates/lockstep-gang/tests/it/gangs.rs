//! Gangs whose ranks are threads of a test.

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
    tcp_gang_kept(plan, memberships, &[])
}

/// The same, with a keeper for each rank's share of the state.
pub(crate) fn tcp_gang_kept(
    plan: &Plan,
    memberships: &[Membership],
    keepers: &[usize],
) -> Vec<TcpCollective> {
    let (listeners, addresses) = listeners(plan.workers());
    let peers = MeshPeer::for_all(&addresses).unwrap();
    thread::scope(|scope| {
        let join = |rank: usize| {
            let (listener, peers) = (&listeners[rank], &peers[rank]);
            scope.spawn(move || {
                let mesh = Mesh {
                    keepers,
                    ..mesh(listener, peers)
                };
                TcpCollective::join(&mesh, plan.clone(), &memberships[rank]).unwrap()
            })
        };
        let joining: Vec<_> = (0..plan.workers()).map(join).collect();
        let ranks = joining.into_iter();
        ranks.map(|rank| rank.join().unwrap()).collect()
    })
}

/// How a rank meets its peers: encrypted, and without keepers.
fn mesh<'a>(listener: &'a TcpListener, peers: &'a [MeshPeer]) -> Mesh<'a> {
    Mesh {
        listener,
        peers,
        encrypt: true,
        keepers: &[],
        refused: &|refusal| eprintln!("{refusal}"),
    }
}

/// What becomes of each rank when all join at the same time, told of these peers.
pub(crate) fn meet(
    plan: &Plan,
    memberships: &[Membership],
    listeners: &[TcpListener],
    peers: &[Vec<MeshPeer>],
) -> Vec<Result<TcpCollective, GangError>> {
    thread::scope(|scope| {
        let join = |(rank, membership): (usize, &'_ Membership)| {
            let (listener, peers, membership) =
                (&listeners[rank], &peers[rank], membership.clone());
            scope.spawn(move || join_mesh(plan, &membership, listener, peers))
        };
        let joining: Vec<_> = memberships.iter().enumerate().map(join).collect();
        let ranks = joining.into_iter();
        ranks.map(|rank| rank.join().unwrap()).collect()
    })
}

/// One rank joins.
pub(crate) fn join_mesh(
    plan: &Plan,
    membership: &Membership,
    listener: &TcpListener,
    peers: &[MeshPeer],
) -> Result<TcpCollective, GangError> {
    TcpCollective::join(&mesh(listener, peers), plan.clone(), membership)
}

pub(crate) fn listeners(count: usize) -> (Vec<TcpListener>, Vec<SocketAddr>) {
    let listeners: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let addresses = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
    (listeners, addresses)
}

/// All ranks of a gang on two hosts, of which the first has more workers.
pub(crate) fn two_hosts(
    plan: &Plan,
    memberships: &[Membership],
) -> Vec<Box<dyn SharingCollective>> {
    on_hosts(&divided(plan, 2), memberships)
}

/// All ranks of a gang on three hosts, or on as many as there are workers.
pub(crate) fn three_hosts(
    plan: &Plan,
    memberships: &[Membership],
) -> Vec<Box<dyn SharingCollective>> {
    on_hosts(&divided(plan, 3), memberships)
}

/// The same plan for workers who are divided among so many hosts.
fn divided(plan: &Plan, hosts: usize) -> Plan {
    let (workers, hosts) = (plan.workers(), hosts.min(plan.workers()));
    let workers_of: Vec<usize> = (0..hosts)
        .map(|host| (workers - host).div_ceil(hosts))
        .collect();
    plan.on_hosts(&workers_of).unwrap()
}

/// All ranks of a gang on the hosts of its plan.
pub(crate) fn on_hosts(plan: &Plan, memberships: &[Membership]) -> Vec<Box<dyn SharingCollective>> {
    on_hosts_kept(plan, memberships, &[])
}

/// The same, with a keeper for each rank's share of the state.
pub(crate) fn on_hosts_kept(
    plan: &Plan,
    memberships: &[Membership],
    keepers: &[usize],
) -> Vec<Box<dyn SharingCollective>> {
    let (listeners, addresses) = listeners(plan.workers());
    let peers = MeshPeer::for_all(&addresses).unwrap();
    let hosts = plan.hosts().unwrap();
    let segments: Vec<(usize, Segment)> = (hosts.iter())
        .flat_map(|ranks| {
            let segment = TreeCollective::prepare(plan, &memberships[ranks.start]).unwrap();
            ranks
                .clone()
                .map(move |rank| (rank, segment.try_clone().unwrap()))
        })
        .collect();
    thread::scope(|scope| {
        let join = |(rank, segment): (usize, Segment)| {
            let (listener, peers, membership) =
                (&listeners[rank], &peers[rank], &memberships[rank]);
            scope.spawn(move || {
                let meeting = HostMesh {
                    segment,
                    mesh: Mesh {
                        keepers,
                        ..mesh(listener, peers)
                    },
                };
                TreeCollective::join(meeting, plan.clone(), membership).unwrap()
            })
        };
        let joining: Vec<_> = segments.into_iter().map(join).collect();
        let ranks = joining.into_iter().map(|rank| rank.join().unwrap());
        ranks
            .map(|rank| Box::new(rank) as Box<dyn SharingCollective>)
            .collect()
    })
}
