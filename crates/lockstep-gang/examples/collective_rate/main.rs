//! How fast ranks that are processes of their own exchange gradients, for `bench/collective.py` and
//! `bench/scale.py`:
//!
//! ```text
//! collective_rate TRANSPORT WORKERS NUMBERS [NAMESPACES [DELAY]]
//! ```
//!
//! TRANSPORT is `tcp`, `encrypted`, `shm`, or for a tree of hosts `tree` or `encrypted-tree`; WORKERS is how many there
//! are, or on how many hosts how many each, as `2x4`; NUMBERS is the length of the gradient. With NAMESPACES the workers
//! of host i run in the network namespace NAMESPACES-i and listen on 10.77.0.(i+1), and with DELAY everything
//! takes so many microseconds longer. Each line on standard
//! input is a number of steps to do; each is answered with one line of JSON: how long the slowest rank
//! took for all of them, and how long each rank took to hand over its gradient. Between two lines the
//! ranks sleep, so that others can be measured in turns.

mod delay;
mod step;

use lockstep_gang::{
    Collective, CollectiveExt, HostMesh, Membership, Mesh, MeshPeer, Plan, Segment, ShmCollective,
    ShmControl, TcpCollective, TreeCollective,
};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{BufRead, BufReader, Stdin, Write, stdin};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use step::{Rank, Spent};

/// Numbers in a chunk, as a model's layout cuts them.
const CHUNK: usize = 16 * 1024;

/// What a rank's process is told first.
#[derive(Serialize, Deserialize)]
struct Task {
    transport: String,
    /// How many hosts there are, and how many workers on each.
    hosts: usize,
    each: usize,
    numbers: usize,
    rank: usize,
    /// Where it listens, unless it shares memory.
    address: SocketAddr,
    /// What the way to it takes longer, in microseconds.
    delay_us: u64,
    /// The shared memory's descriptor.
    segment: Option<i32>,
}

impl Task {
    fn plan(&self) -> Result<Plan, Box<dyn Error>> {
        let numbers = self.numbers;
        let chunks = (0..numbers.div_ceil(CHUNK)).map(|i| i * CHUNK..numbers.min((i + 1) * CHUNK));
        let workers = self.hosts * self.each;
        let plan = Plan::new(chunks.collect(), workers, workers)?;
        Ok(match self.is_tree() {
            true => plan.on_hosts(&vec![self.each; self.hosts])?,
            false => plan,
        })
    }

    fn is_tree(&self) -> bool {
        self.transport.ends_with("tree")
    }

    fn membership(&self) -> Membership {
        Membership {
            rank: self.rank,
            generation: 1,
            ..Membership::default()
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["rank"] => rank(),
        [transport, workers, numbers, network @ ..] if network.len() <= 2 => {
            let (hosts, each) = workers.split_once('x').unwrap_or((*workers, "1"));
            lead(
                transport,
                (hosts.parse()?, each.parse()?),
                numbers.parse()?,
                network.first().copied(),
                network.get(1).map_or(Ok(0), |delay| delay.parse())?,
            )
        }
        _ => Err("usage: collective_rate TRANSPORT WORKERS NUMBERS [NAMESPACES [DELAY]]".into()),
    }
}

/// A rank's process, as its parent sees it.
struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Process {
    fn tell(&mut self, what: &impl Serialize) -> Result<(), Box<dyn Error>> {
        Ok(writeln!(self.to, "{}", serde_json::to_string(what)?)?)
    }

    fn hear<T: for<'a> Deserialize<'a>>(&mut self) -> Result<T, Box<dyn Error>> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

/// Starts the ranks and passes on what is asked of them.
fn lead(
    transport: &str,
    (hosts, each): (usize, usize),
    numbers: usize,
    namespaces: Option<&str>,
    delay_us: u64,
) -> Result<(), Box<dyn Error>> {
    let workers = hosts * each;
    let task = |rank: usize| -> Result<Task, Box<dyn Error>> {
        let address = match namespaces {
            None => "127.0.0.1:0".to_owned(),
            Some(_) => format!("10.77.0.{}:0", rank / each + 1),
        };
        Ok(Task {
            transport: transport.to_owned(),
            hosts,
            each,
            numbers,
            rank,
            address: address.parse()?,
            delay_us,
            segment: None,
        })
    };
    let plan = task(0)?.plan()?;
    let mut segments = Vec::new();
    match transport {
        "shm" => {
            let segment = Segment::create(ShmCollective::bytes_needed(&plan))?;
            ShmControl::new(&segment, &plan, 1)?;
            segments = vec![segment];
        }
        "tree" | "encrypted-tree" => {
            for host in 0..hosts {
                let first = task(host * each)?.membership();
                segments.push(TreeCollective::prepare(&plan, &first)?);
            }
        }
        "tcp" | "encrypted" => {}
        other => return Err(format!("no transport {other}").into()),
    }
    let mut ranks = Vec::new();
    for rank in 0..workers {
        let program = std::env::current_exe()?;
        let mut command = match namespaces {
            None => Command::new(program),
            Some(prefix) => {
                let mut command = Command::new("ip");
                let host = rank / each;
                command.args(["netns", "exec", &format!("{prefix}-{host}")]);
                command.arg(program);
                command
            }
        };
        command
            .arg("rank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut task = task(rank)?;
        let segment = segments.get(rank / each).or(segments.first());
        task.segment = segment.map(|s| s.give_to(&mut command)).transpose()?;
        let mut child = command.spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a rank has no pipes".into());
        };
        let from = BufReader::new(from);
        let mut process = Process { child, to, from };
        process.tell(&task)?;
        ranks.push(process);
    }
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for process in &mut ranks {
        addresses.push(process.hear()?);
    }
    for (process, peers) in ranks.iter_mut().zip(MeshPeer::for_all(&addresses)?) {
        process.tell(&peers)?;
    }
    for line in stdin().lines() {
        let steps: usize = line?.trim().parse()?;
        ranks
            .iter_mut()
            .try_for_each(|process| process.tell(&steps))?;
        let mut all = Vec::new();
        for process in &mut ranks {
            all.push(process.hear::<Spent>()?);
        }
        let seconds = all.iter().map(|spent| spent.seconds).fold(0.0, f64::max);
        let handing_over: Vec<f64> = all.iter().map(|spent| spent.handing_over).collect();
        let answer = serde_json::json!({ "seconds": seconds, "handing_over": handing_over });
        println!("{answer}");
    }
    for process in ranks {
        let Process { mut child, to, .. } = process;
        drop(to);
        child.wait()?;
    }
    Ok(())
}

/// One rank: is told its task and its peers, and then how many steps to do.
fn rank() -> Result<(), Box<dyn Error>> {
    let input = stdin();
    let task: Task = serde_json::from_str(&next_line(&input)?)?;
    let listener = TcpListener::bind(task.address)?;
    let address = match task.delay_us {
        0 => listener.local_addr()?,
        delay => delay::before(listener.local_addr()?, Duration::from_micros(delay))?,
    };
    println!("{}", serde_json::to_string(&address)?);
    let peers: Vec<MeshPeer> = serde_json::from_str(&next_line(&input)?)?;
    let (membership, plan) = (task.membership(), task.plan()?);
    let mesh = Mesh {
        listener: &listener,
        peers: &peers,
        encrypt: task.transport.starts_with("encrypted"),
        keepers: &[],
        refused: &|refusal| eprintln!("{refusal}"),
    };
    let segment = task.segment.map(Segment::inherited).transpose()?;
    match segment {
        Some(segment) if task.is_tree() => {
            let meeting = HostMesh { segment, mesh };
            serve(TreeCollective::join(meeting, plan, &membership)?, &input)
        }
        Some(segment) => serve(ShmCollective::join(&segment, plan, &membership)?, &input),
        None => serve(TcpCollective::join(&mesh, plan, &membership)?, &input),
    }
}

fn next_line(input: &Stdin) -> Result<String, Box<dyn Error>> {
    let mut line = String::new();
    match input.lock().read_line(&mut line)? {
        0 => Err("the parent is gone".into()),
        _ => Ok(line),
    }
}

fn serve(mut gang: impl Collective, input: &Stdin) -> Result<(), Box<dyn Error>> {
    let mut rank = Rank::new(&gang);
    while let Ok(line) = next_line(input) {
        gang.barrier()?;
        let spent = rank.steps(&mut gang, line.trim().parse()?)?;
        println!("{}", serde_json::to_string(&spent)?);
    }
    Ok(())
}
