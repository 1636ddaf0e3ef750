//! What `lockstep pod` expects of whoever starts it: the contract between manifests and the program.
//!
//! A run on plain Kubernetes is one Indexed Job whose pods all run the same command,
//! `lockstep pod JOB [--workers N] [--set KEY=VALUE …]`. Index 0 coordinates and hosts a worker, the others host one
//! each. Nothing here knows Kubernetes: any system that starts numbered processes with these variables will do.
//! `docs/decisions/0026-hosts.md` says why it is so.

/// The program's hidden command.
pub const COMMAND: &str = "pod";

/// The variable with this process's number, counted from 0. Kubernetes sets it in the pods of an Indexed Job.
pub const INDEX: &str = "JOB_COMPLETION_INDEX";

/// The variable with the run's name, which is that of its folder in `run.store`. It is chosen once for all starts of
/// all pods: the run is gone on with if it is there, and begun if not.
pub const RUN: &str = "LOCKSTEP_RUN";

/// The variable with the name and port at which index 0 is reached, such as `train-0.train:7474`. Names are looked up
/// anew for each attempt, since a pod that is replaced has another address.
pub const COORDINATOR: &str = "LOCKSTEP_COORDINATOR";

/// The variable with the path of the file that holds the run's token.
pub const TOKEN: &str = "LOCKSTEP_TOKEN_FILE";

/// The variable with this pod's own address (`status.podIP` of the downward API): the one at which index 0 listens
/// and is reached by the workers. Where it is not set, the address that the coordinator's name has.
pub const ADDRESS: &str = "LOCKSTEP_POD_ADDRESS";

/// The variable with how long, in seconds, a pod waits for index 0, and index 0 for the fewest pods that the run can
/// begin with. Where it is not set, `gang.start_deadline_s`.
pub const PATIENCE: &str = "LOCKSTEP_POD_PATIENCE_S";

/// The port at which index 0 listens for the other pods, where nothing speaks against it. Workers use further ports,
/// which the system chooses: within a gang, all ports must be open.
pub const PORT: u16 = 7474;

/// The folder of the job file in a pod, read-only. Relative paths in the job file start here, and so do scripts.
pub const JOB_FOLDER: &str = "/lockstep/job";

/// The folder of the token in a pod.
pub const TOKEN_FOLDER: &str = "/lockstep/token";

/// The name of the token's file in its folder, and of the Secret's key: 64 hexadecimal digits, which nobody but the
/// user and the group of the process may read (modes 0400 and 0440).
pub const TOKEN_FILE: &str = "token";

/// The folder for decoded data (`LOCKSTEP_CACHE`), writable.
pub const CACHE_FOLDER: &str = "/lockstep/cache";

/// The exit code of a pod whose run failed and would fail again: a wrong job file, a script's own error, no restarts
/// left. It must not be started again.
pub const FAILED: u8 = 78;

/// The exit code of a pod that may be started again, and whose run goes on then: it was asked to leave (SIGTERM), or
/// the coordinator, a store or data is out of reach. Ends by a signal and panics (101) mean the same.
pub const AGAIN: u8 = 75;
