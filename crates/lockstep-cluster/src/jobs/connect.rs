//! From arguments and the environment to a head that answers.

use crate::args::HeadArgs;
use lockstep_cluster::jobs::{Address, Client, Credentials, JobsError};

/// Finds the head that the arguments or the environment mean, and whether it lets us in.
pub(super) fn connect(head: &HeadArgs) -> Result<Client, JobsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let address = Address::find(head.to.as_deref(), variable)?;
    let credentials = Credentials::find(head.headers.as_deref(), variable)?;
    Client::connect(address, credentials)
}
