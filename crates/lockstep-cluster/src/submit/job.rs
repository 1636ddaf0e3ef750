//! A job file on its way to a head.

use super::one_node::{self, RoomForAll};
use super::{Packed, Prepared, SubmitRequest, inputs, layout};
use crate::follow::OURS;
use crate::jobs::{Binary, Client, FILE, Package, RuntimeEnv, Submission, introduced};
use crate::{ClusterError, shell_line};
use lockstep_base::fs::random_letters;
use lockstep_job::{Job, Location, Override};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A job file, and what the command line changes of it.
#[derive(Debug)]
pub struct JobSource {
    /// The job that both come to.
    pub job: Job,
    /// The file.
    pub path: PathBuf,
    /// The changes.
    pub overrides: Vec<Override>,
    /// How many workers, if the command line says so.
    pub workers: Option<usize>,
    /// The words behind the file's name in a command that means the same job.
    pub words: Vec<String>,
}

/// A job file that is to run on a cluster.
#[derive(Debug)]
pub struct JobRequest {
    /// The job.
    pub source: JobSource,
    /// Where workers run; by default by what the head is.
    pub engine: Option<Engine>,
    /// The program that runs it.
    pub program: Program,
    /// Goes on with a run: the one that is named, or the job's newest.
    pub resume: Option<Option<String>>,
    /// Begins a new run with these weights of that one, `best` or `last`.
    pub fork: Option<&'static str>,
    /// Whether the run tells more.
    pub verbose: bool,
}

/// Where the workers of a job run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Beside the job's command, on one machine.
    Local,
    /// All over the Ray cluster.
    Ray,
}

/// The program that runs a job on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// This one, which travels unless the server is of the same version.
    Own,
    /// The one in the nodes' image.
    Image,
    /// This file, which travels.
    File(PathBuf),
}

impl JobRequest {
    pub(super) fn pack<'r>(&self, request: &'r SubmitRequest) -> Result<Packed<'r>, ClusterError> {
        let moving = inputs::moving(&self.source)?;
        let (files, file) = layout::files(&self.source.path, &moving.inputs)?;
        Ok(Packed {
            request,
            package: Package::of(files),
            file,
            store_beside: moving.store,
        })
    }

    pub(super) fn prepare(
        &self,
        packed: Packed<'_>,
        client: &Client,
    ) -> Result<Prepared, ClusterError> {
        let Packed {
            request,
            mut package,
            file,
            store_beside,
        } = packed;
        let job = &self.source.job;
        let binary = match self.travelling_program(client)? {
            Some(path) => Some(Binary::read(&path)?),
            None => None,
        };
        // Where the server shows it, and where it stays.
        let store = client.lockstep_store().filter(|_| store_beside);
        let passing = store_beside && store.is_none();
        let engine = match self.engine {
            Some(engine) => engine,
            // A server of ours is one machine without Ray.
            None if client.lockstep_version().is_some() => Engine::Local,
            None if passing => one_node::engine(job, client, store_name(&job.run.store))?,
            None => Engine::Ray,
        };
        let warning = passing.then(|| {
            format!(
                "the run goes to {store}, a folder beside the job on the cluster, which Ray removes some time after the \
                 job's end{all}; set run.store to a URL or to an absolute path that the nodes share to keep it{spread}",
                store = store_name(&job.run.store),
                all = match engine {
                    Engine::Local => ", so all workers run on one node",
                    Engine::Ray => "",
                },
                spread = match engine {
                    Engine::Local => ", and to use several nodes",
                    Engine::Ray => "",
                },
            )
        });
        let beside = (engine == Engine::Local).then(|| RoomForAll::of(job));
        let program = match &binary {
            None => "lockstep".to_owned(),
            Some(binary) => {
                let name = match package.has("lockstep") {
                    true => "lockstep-program",
                    false => "lockstep",
                };
                package.add_program(name, binary);
                format!("./{name}")
            }
        };
        let command = self.command(program, &file, engine, store);
        let mut metadata = BTreeMap::from([
            (OURS.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("lockstep_job".to_owned(), job.name.clone()),
            (FILE.to_owned(), file.clone()),
        ]);
        metadata.extend(request.place_in_queue(client)?.iter().cloned());
        let submission = Submission {
            entrypoint: match &binary {
                // What is in the nodes' image runs on the nodes.
                None => command,
                Some(_) => introduced(&command),
            },
            // An id that no other job has: so the head can be asked for it if its answer is lost.
            submission_id: match &request.id {
                Some(id) => id.clone(),
                None => format!("{}-{}", job.name, random_letters::<8>()?),
            },
            runtime_env: RuntimeEnv {
                working_dir: None,
                env_vars: request.variables.clone(),
            },
            metadata,
            // Workers elsewhere ask for their own room.
            entrypoint_num_cpus: beside.map(|room| room.cpus),
            entrypoint_num_gpus: beside.map(|room| room.gpus).filter(|gpus| *gpus > 0.0),
            entrypoint_memory: beside.and_then(|room| room.memory),
            ..Submission::default()
        };
        Ok(Prepared {
            warning,
            sent: binary.as_ref().map(Binary::needs),
            package: Some(package),
            submission,
        })
    }

    /// The program that is to travel; none if that of the image is meant, or the same is there.
    fn travelling_program(&self, client: &Client) -> Result<Option<PathBuf>, ClusterError> {
        match &self.program {
            Program::Own if client.lockstep_version() == Some(env!("CARGO_PKG_VERSION")) => {
                Ok(None)
            }
            Program::Own => {
                let own = std::env::current_exe();
                own.map(Some).map_err(ClusterError::OwnProgram)
            }
            Program::Image => Ok(None),
            Program::File(path) => Ok(Some(path.clone())),
        }
    }

    /// The command that runs the job where its package was unpacked.
    fn command(&self, program: String, file: &str, engine: Engine, store: Option<&str>) -> String {
        let mut words = vec![program, "run".to_owned()];
        words.push(match file.starts_with('-') {
            true => format!("./{file}"),
            false => file.to_owned(),
        });
        words.extend(self.source.words.iter().cloned());
        if let Some(store) = store {
            let store = serde_json::Value::from(store);
            words.extend(["--set".to_owned(), format!("run.store={store}")]);
        }
        if engine == Engine::Ray {
            words.extend(["--engine", "ray"].map(str::to_owned));
        }
        words.push("--json".to_owned());
        if self.verbose {
            words.push("--verbose".to_owned());
        }
        if let Some(run) = &self.resume {
            words.push("--resume".to_owned());
            words.extend(run.clone());
        }
        words.extend(self.fork.map(|which| format!("--fork={which}")));
        shell_line(words)
    }
}

/// The last part of a store's name: where it lies here means nothing there.
fn store_name(store: &Location) -> &str {
    store.as_str().rsplit('/').next().unwrap_or_default()
}
