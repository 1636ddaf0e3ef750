//! What can go wrong between this machine and a head, each in words that say what to do.

use crate::jobs::credentials::PLACES;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// What can go wrong between this machine and a head.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JobsError {
    /// The address can be none of a head.
    #[error(
        "{given:?} from {from} is not the address of a head: {why}; write http://HOST:8265, with the port of Ray's \
         dashboard"
    )]
    Address {
        /// The option or variable it came from.
        from: String,
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// The host of the address is not known.
    #[error("the host of {address} is not known here ({cause}); is its name right?")]
    UnknownHost {
        /// The address.
        address: String,
        /// What the system says.
        cause: String,
    },
    /// Nothing answers at the address.
    #[error(
        "nothing answers at {address} ({cause}); is the head running, and is this the port of its dashboard, \
         8265 by default? A head that listens on loopback only is reached through a tunnel: \
         `ssh -L 8265:127.0.0.1:8265 HEAD` or `kubectl port-forward`"
    )]
    NoHead {
        /// The address.
        address: String,
        /// What the system says.
        cause: String,
    },
    /// The port is one that speaks no HTTP: that of Ray's own protocol.
    #[error(
        "{address} does not answer as a dashboard does ({cause}): {port} is the port that Ray's processes talk to each \
         other on (GCS). The jobs of that head are at the port of its dashboard, 8265 by default: write \
         http://HOST:8265"
    )]
    GcsPort {
        /// The address.
        address: String,
        /// Its port.
        port: u16,
        /// What came of it.
        cause: String,
    },
    /// The certificate of what answers is not to be trusted.
    #[error(
        "the certificate of {address} is not accepted ({cause}). If its authority is one of your own, SSL_CERT_FILE \
         names the file with that authority's certificate"
    )]
    Certificate {
        /// The address.
        address: String,
        /// What is wrong with it.
        cause: String,
    },
    /// What answers does not speak TLS.
    #[error(
        "no encrypted connection to {address} comes about ({cause}); is it http:// instead of https://?"
    )]
    NoTls {
        /// The address.
        address: String,
        /// What the attempt came to.
        cause: String,
    },
    /// Something answers, and it is no head.
    #[error(
        "there is no Ray Jobs API at {address}: {found}. The dashboard of a head has it, on port 8265 by default, \
         if Ray was installed as `ray[default]`"
    )]
    NoJobsApi {
        /// The address.
        address: String,
        /// What was found instead.
        found: String,
    },
    /// The head is of a Ray that is too old.
    #[error(
        "the head at {address} runs Ray {found}; its Jobs API is older than what is supported, 2.0"
    )]
    TooOld {
        /// The address.
        address: String,
        /// The version it told.
        found: String,
    },
    /// The head wants a token, and there is none.
    #[error(
        "the head at {address} wants a token, and none was found in {PLACES}; `ray get-auth-token` on the head prints it"
    )]
    TokenMissing {
        /// The address.
        address: String,
    },
    /// The head refuses what it was shown.
    #[error("the head at {address} does not accept the token from {from}: {said}")]
    TokenWrong {
        /// The address.
        address: String,
        /// Where the token came from.
        from: String,
        /// The head's words.
        said: String,
    },
    /// A token cannot be read.
    #[error("the token in {from} cannot be used: {why}")]
    Token {
        /// Where it is.
        from: String,
        /// What is wrong.
        why: String,
    },
    /// Headers that are none.
    #[error("{from}: {why}; write {{\"NAME\": \"VALUE\"}}")]
    Headers {
        /// The option or variable.
        from: String,
        /// What is wrong.
        why: String,
    },
    /// The package is larger than a head accepts.
    #[error(
        "{what}; Ray accepts packages of at most 100 MiB. Put the data on storage that the cluster reads, and name it in \
             the job file by its URL (s3://, gs://, az://) or by its absolute path there: only relative paths travel"
    )]
    TooLarge {
        /// What is too large, the largest parts by name.
        what: String,
    },
    /// A file cannot be packed.
    #[error("{path} cannot be packed: {source}")]
    Pack {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file was written while it was packed.
    #[error("{path} changed while it was packed; submit again when nobody writes it")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The program that is to travel cannot run on a cluster.
    #[error(
        "{path} cannot run on the cluster: {why}; --binary PATH sends another, --binary image uses the one in the nodes' image"
    )]
    Binary {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// There is no such job.
    #[error("there is no job `{id}` at {address}; `lockstep jobs list` shows all")]
    NoSuchJob {
        /// What was asked for.
        id: String,
        /// The address.
        address: String,
    },
    /// The head refused something.
    #[error("cannot {doing}: {address} answers {status}: {said}")]
    Refused {
        /// What was tried.
        doing: String,
        /// The address.
        address: String,
        /// The status of HTTP.
        status: u16,
        /// The head's words, in short.
        said: String,
    },
    /// The head's answer cannot be read.
    #[error("cannot {doing}: the answer of {address} makes no sense: {why}")]
    Answer {
        /// What was tried.
        doing: String,
        /// The address.
        address: String,
        /// What is wrong.
        why: String,
    },
    /// The connection broke, or took too long.
    #[error("cannot {doing}: the connection to {address} broke: {cause}")]
    Broken {
        /// What was tried.
        doing: String,
        /// The address.
        address: String,
        /// How.
        cause: String,
    },
    /// A job could not be followed any more.
    #[error(
        "the head at {address} could not be reached for {} s ({cause}). How the job `{id}` ends is not known; \
         it may well go on: `lockstep jobs wait {id} --to {address}`",
        for_.as_secs()
    )]
    Lost {
        /// The job.
        id: String,
        /// The address.
        address: String,
        /// How long it was tried.
        for_: Duration,
        /// What the last try came to.
        cause: String,
    },
    /// This machine cannot talk to a network.
    #[error("no connection can be made from here: {0}")]
    Setup(String),
}

impl JobsError {
    /// Whether it may be another tomorrow: the network, or a head that is busy or being started.
    pub fn is_passing(&self) -> bool {
        match self {
            JobsError::UnknownHost { .. }
            | JobsError::NoHead { .. }
            | JobsError::Broken { .. }
            | JobsError::Answer { .. } => true,
            JobsError::Refused { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}
