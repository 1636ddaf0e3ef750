//! Who asks, and what that one may do.

use crate::Refusal;
use axum::extract::FromRequestParts;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of everybody where no token is needed.
pub(crate) const LOCAL: &str = "local";

/// What somebody may do. Each role may also do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look at everything.
    Read,
    /// Submit jobs, log runs, and stop and remove what is one's own.
    Submit,
    /// Everything.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Read => "read",
            Role::Submit => "submit",
            Role::Admin => "admin",
        })
    }
}

/// Who asks. The guard in front of all routes puts one into each request that it lets through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name that goes with the token; `local` where none is needed.
    pub name: String,
    /// What the caller may do.
    pub role: Role,
}

impl Caller {
    /// Refuses a caller whose role is below this one.
    ///
    /// # Errors
    /// When it is: 403.
    pub fn needs(&self, role: Role) -> Result<(), Refusal> {
        match self.role >= role {
            true => Ok(()),
            false => Err(Refusal::forbidden(format!(
                "{} may not do this: the token's role is {}, and {role} is needed",
                self.name, self.role
            ))),
        }
    }
}

impl Caller {
    /// Whether the caller may treat as one's own what is of `owner`. What is of nobody is for admins.
    pub(crate) fn owns(&self, owner: Option<&str>) -> bool {
        self.role == Role::Admin || owner == Some(self.name.as_str())
    }

    /// The highest priority that the caller's jobs may have; any if nothing is said. Others' jobs wait for one of a
    /// higher priority, so only admins may give that.
    pub(crate) fn highest_priority(&self) -> Option<i64> {
        (self.role < Role::Admin).then_some(0)
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| Refusal::unauthorised("Unauthorized: Missing authentication token"))
    }
}
