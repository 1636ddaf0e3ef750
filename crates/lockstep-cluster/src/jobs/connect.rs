//! From arguments and the environment to a head that answers.

use crate::jobs::{Address, Client, Credentials, JobsError};

/// Finds the head that `to` or the environment means, with headers as a JSON object or those of the environment, and
/// whether it lets us in.
///
/// # Errors
/// When there is no such head, and when it does not let us in.
pub fn connect(to: Option<&str>, headers: Option<&str>) -> Result<Client, JobsError> {
    let variable = |name: &str| std::env::var(name).ok();
    let address = Address::find(to, variable)?;
    let credentials = Credentials::find(headers, variable)?;
    Client::connect(address, credentials)
}
