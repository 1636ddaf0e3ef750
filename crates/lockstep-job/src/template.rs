//! The job file to start from.

/// The commented job file that `lockstep init` writes: it trains as it is, and shows every key with
/// its default.
///
/// `name` must be a name that [`Job::is_valid_name`](crate::Job::is_valid_name) accepts.
pub fn template(name: &str) -> String {
    include_str!("template.toml").replace("NAME", name)
}
