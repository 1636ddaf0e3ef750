//! How long the exchange of a small model's step takes: `cargo run --release --example exchange`.
//!
//! Two workers, 2.68 MB in chunks of 64 KB, as for the MLP 784-512-512-10. A step does what a trainer
//! does and nothing else: write and post every partial sum, add, update and publish the own chunks,
//! fetch the others'. Each figure is the median, and the best, of many short series.

use lockstep_gang::{
    Collective, CollectiveExt, GangError, Membership, Mesh, MeshPeer, Plan, Segment, ShmCollective,
    ShmControl, TcpCollective, TreeSum,
};
use std::error::Error;
use std::net::TcpListener;
use std::time::Instant;

const LENGTH: usize = 669_706;
const CHUNK: usize = 16_384;
const WORKERS: usize = 2;
const SERIES: usize = 40;
const STEPS: usize = 50;

/// What one rank keeps to itself.
struct Private {
    params: Vec<f32>,
    gradient: Vec<f32>,
    sum: Vec<f32>,
    tree: TreeSum,
}

fn main() -> Result<(), Box<dyn Error>> {
    let chunks = (0..LENGTH.div_ceil(CHUNK)).map(|i| i * CHUNK..LENGTH.min((i + 1) * CHUNK));
    let plan = Plan::new(chunks.collect(), WORKERS, WORKERS)?;

    report("shm", &measure(shm_gang(&plan)?)?);
    report("tcp, in clear", &measure(tcp_gang(&plan, false)?)?);
    report("tcp, encrypted", &measure(tcp_gang(&plan, true)?)?);
    Ok(())
}

fn member(rank: usize) -> Membership {
    Membership {
        rank,
        generation: 1,
        ..Membership::default()
    }
}

fn shm_gang(plan: &Plan) -> Result<Vec<ShmCollective>, GangError> {
    let segment = Segment::create(ShmCollective::bytes_needed(plan))?;
    ShmControl::new(&segment, plan, 1)?;
    let join = |rank| ShmCollective::join(&segment, plan.clone(), &member(rank));
    (0..WORKERS).map(join).collect()
}

fn tcp_gang(plan: &Plan, encrypt: bool) -> Result<Vec<TcpCollective>, Box<dyn Error>> {
    let mut listeners = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..WORKERS {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        addresses.push(listener.local_addr()?);
        listeners.push(listener);
    }
    let peers = MeshPeer::for_all(&addresses)?;
    // Joining waits for the others to join.
    std::thread::scope(|scope| {
        let mut joining = Vec::new();
        for (rank, listener) in listeners.into_iter().enumerate() {
            let (peers, plan) = (&peers[rank], plan.clone());
            joining.push(scope.spawn(move || {
                let mesh = Mesh {
                    listener: &listener,
                    peers,
                    encrypt,
                    keepers: &[],
                    refused: &|refusal| eprintln!("{refusal}"),
                };
                TcpCollective::join(&mesh, plan, &member(rank))
            }));
        }
        let mut gang = Vec::new();
        for rank in joining {
            gang.push(rank.join().map_err(|_| "a worker panicked")??);
        }
        Ok(gang)
    })
}

fn report(name: &str, series: &[f64]) {
    println!(
        "{name:14} {:7.1} us a step, best {:7.1}",
        series[series.len() / 2],
        series[0]
    );
}

/// Microseconds a step of each series, in ascending order.
fn measure<C: Collective>(gang: Vec<C>) -> Result<Vec<f64>, Box<dyn Error>> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = gang
            .into_iter()
            .map(|c| scope.spawn(move || run(c)))
            .collect();
        let mut slowest = vec![0f64; SERIES];
        for worker in workers {
            let series = worker.join().map_err(|_| "a worker panicked")??;
            slowest
                .iter_mut()
                .zip(series)
                .for_each(|(all, one)| *all = all.max(one));
        }
        slowest.sort_by(f64::total_cmp);
        Ok(slowest)
    })
}

fn run(mut gang: impl Collective) -> Result<Vec<f64>, GangError> {
    let longest = gang.plan().longest_chunk();
    let mut private = Private {
        params: vec![0.0; gang.plan().len()],
        gradient: vec![1e-3; longest],
        sum: vec![0.0; longest],
        tree: TreeSum::new(gang.plan(), gang.rank()),
    };
    let mut series = Vec::new();
    for _ in 0..SERIES {
        gang.barrier()?;
        let begin = Instant::now();
        for _ in 0..STEPS {
            step(&mut gang, &mut private)?;
        }
        series.push(begin.elapsed().as_secs_f64() * 1e6 / STEPS as f64);
    }
    Ok(series)
}

fn step(gang: &mut impl Collective, private: &mut Private) -> Result<(), GangError> {
    let (rank, chunks) = (gang.rank(), gang.plan().chunks());
    let mut own = Vec::with_capacity(chunks);
    let mut done = 0;
    for chunk in (0..chunks).rev() {
        if gang.plan().owner(chunk) == rank {
            own.push(chunk);
        } else {
            let outbox = gang.outbox(chunk, 0);
            outbox.copy_from_slice(&private.gradient[..outbox.len()]);
            gang.post(chunk)?;
        }
        while done < own.len() && gang.arrived(own[done])? {
            update(gang, private, own[done])?;
            done += 1;
        }
    }
    for &chunk in &own[done..] {
        gang.wait_arrived(chunk)?;
        update(gang, private, chunk)?;
    }
    gang.cast(0)?;
    for chunk in (0..chunks).rev() {
        if gang.plan().owner(chunk) != rank {
            let range = gang.plan().chunk(chunk);
            gang.fetch(chunk, &mut private.params[range])?;
        }
    }
    gang.end_step()?;
    Ok(())
}

fn update(
    gang: &mut impl Collective,
    private: &mut Private,
    chunk: usize,
) -> Result<(), GangError> {
    let range = gang.plan().chunk(chunk);
    let rank = gang.rank();
    let Private {
        params,
        gradient,
        sum,
        tree,
    } = private;
    let (gradient, sum) = (&gradient[..range.len()], &mut sum[..range.len()]);
    tree.sum(
        |partial| {
            Some(if partial.rank == rank {
                gradient
            } else {
                gang.inbox(chunk, partial.rank, partial.index)
            })
        },
        sum,
    );
    for (param, gradient) in params[range.clone()].iter_mut().zip(sum) {
        *param -= 1e-3 * *gradient;
    }
    gang.publish(chunk, &params[range])
}
