//! A client of Ray's Jobs API, as the head of a cluster answers it on its dashboard's port.
//!
//! A [`Client`] has found a head that answers and that accepts it. It uploads a [`Package`], submits a job that
//! runs in it, and follows the job's log ([`Tail`]). What it promises:
//!
//! - **No loss is taken for an end.** A log whose connection breaks is read again from where it was. A log that
//!   ends says nothing about the job: [`Client::job`] does.
//! - **It ends.** Every request has a deadline, and what is tried again is tried for a bounded time.
//! - **Nothing is sent in vain.** A package over the head's limit is refused before the first byte leaves, and one
//!   that the head has already is not sent again.
//! - **No secrets.** A token is sent only to a head that asks for one, and no error shows it.
//!
//! The functions block; call them from plain threads.

mod address;
mod binary;
mod client;
mod cluster;
mod credentials;
mod elf;
mod error;
mod ignore;
mod job;
mod package;
mod request;
mod tail;
mod unfit;
mod websocket;
mod zip;

pub use address::Address;
pub use binary::{Binary, Needs};
pub use client::{Client, connect};
pub use cluster::{Amount, Cluster, Node, NodeState};
pub use credentials::Credentials;
pub use error::JobsError;
pub use ignore::files_to_send;
pub(crate) use job::FILE;
pub use job::{JobInfo, RuntimeEnv, Submission};
pub use lockstep_base::JobStatus;
pub use package::{LIMIT, Package};
pub use tail::Tail;
pub use unfit::{introduced, unfit};
