//! Names of objects: those that Kubernetes, the Job controller and KubeRay's operator all take.

use crate::kube::KubeError;

/// The longest name of a job: KubeRay adds to that of a RayJob, and the Job controller to that of a Job.
pub const LONGEST: usize = 47;
/// Letters that are added to a job's name.
const SUFFIX: usize = 6;

/// Whether Kubernetes takes it as the name of everything that belongs to a job (RFC 1035: a Service is the strictest).
pub(crate) fn is_label(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Finds out whether objects can have this name.
///
/// # Errors
/// When it is too long, or has letters that names cannot have.
pub fn check_name(name: &str) -> Result<(), KubeError> {
    let why = if name.len() > LONGEST {
        format!(
            "it has {} characters, and at most {LONGEST} fit",
            name.len()
        )
    } else if !is_label(name) {
        "small letters, digits and `-` are allowed; it begins with a letter, and ends with a letter or digit".to_owned()
    } else {
        return Ok(());
    };
    Err(KubeError::Name {
        name: name.to_owned(),
        why,
    })
}

/// A name for the objects of a job: the job's, as far as Kubernetes takes it, and letters that no other has.
pub fn name_of(job: &str, letters: Option<&str>) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    let mut name: String = job.chars().map(plain).collect();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "job-");
    }
    name.truncate(LONGEST - SUFFIX);
    let name = name.trim_end_matches('-');
    match letters {
        Some(letters) => format!("{name}-{letters}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_job_becomes_one_that_kubernetes_takes() {
        for job in ["digits", "9.lives", "A_b.C", "x", &"long-".repeat(20), "7"] {
            for letters in [None, Some("abc23")] {
                check_name(&name_of(job, letters)).unwrap();
            }
        }
        assert_eq!(
            name_of("Fashion_MNIST", Some("ab2de")),
            "fashion-mnist-ab2de"
        );
    }

    #[test]
    fn a_name_that_is_too_long_is_refused_with_its_length() {
        let error = check_name(&"a".repeat(48)).unwrap_err().to_string();
        assert!(
            error.contains("48 characters") && error.contains("47"),
            "{error}"
        );
        for wrong in ["", "A", "1a", "a-", "a.b", "a_b"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
