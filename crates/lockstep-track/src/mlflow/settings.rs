//! Which server, and as whom: what the job says, then what the environment says, as MLflow's own client has it.

use crate::http::Credentials;
use lockstep_job::{Track, without_secrets};
use percent_encoding::percent_decode_str;
use std::path::PathBuf;

/// All that is needed to keep a run in MLflow.
#[derive(Debug, Clone)]
pub struct MlflowSettings {
    /// The server's address, without a slash at its end and without secrets.
    pub server: String,
    /// Who we are to it.
    pub credentials: Credentials,
    /// The experiment's name.
    pub experiment: String,
    /// The experiment's number, where that is what is known.
    pub experiment_id: Option<String>,
    /// What the run is called there; if not given, by its own name.
    pub run_name: Option<String>,
    /// The name under which the model is registered.
    pub register: Option<String>,
    /// The alias of the new version.
    pub alias: Option<String>,
    /// Whether what workers use is sent.
    pub system: bool,
    /// Whether what was not committed is sent.
    pub uncommitted: bool,
}

impl MlflowSettings {
    /// What a job and the environment's `variables` come to; nothing where neither names a server.
    ///
    /// # Errors
    /// When what they name is no server, in words.
    pub fn of(
        track: &Track,
        job: &str,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let variable = |name: &str| variables(name).filter(|value| !value.is_empty());
        let Ok(server) = track.server() else {
            return Ok(None);
        };
        let named = server.map(str::to_owned);
        let Some(server) = named.or_else(|| variable("MLFLOW_TRACKING_URI")) else {
            return Ok(None);
        };
        Self::at(&server, track, job, &variable).map(Some)
    }

    /// The same, for a server that is given.
    ///
    /// # Errors
    /// When it is no server, in words.
    pub fn at(
        server: &str,
        track: &Track,
        job: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let open = without_secrets(server).trim_end_matches('/').to_owned();
        if !open.starts_with("http://") && !open.starts_with("https://") {
            return Err(format!(
                "{open} is not the address of an MLflow server, such as http://127.0.0.1:5000"
            ));
        }
        let user = variable("MLFLOW_TRACKING_USERNAME").map(|user| {
            let password = variable("MLFLOW_TRACKING_PASSWORD").unwrap_or_default();
            (user, password)
        });
        let credentials = Credentials {
            token: variable("MLFLOW_TRACKING_TOKEN"),
            user: user.or_else(|| user_of(server)),
            insecure: variable("MLFLOW_TRACKING_INSECURE_TLS").is_some_and(|value| is_true(&value)),
            certificates: variable("MLFLOW_TRACKING_SERVER_CERT_PATH").map(PathBuf::from),
        };
        let experiment = track.experiment.clone();
        let experiment_id = variable("MLFLOW_EXPERIMENT_ID").filter(|_| experiment.is_none());
        Ok(Self {
            server: open,
            credentials,
            experiment: experiment
                .or_else(|| variable("MLFLOW_EXPERIMENT_NAME"))
                .unwrap_or_else(|| job.to_owned()),
            experiment_id,
            run_name: track
                .run_name
                .clone()
                .or_else(|| variable("MLFLOW_RUN_NAME")),
            register: track.register.clone(),
            alias: track.alias.clone(),
            system: track.system,
            uncommitted: track.uncommitted,
        })
    }
}

fn is_true(value: &str) -> bool {
    ["1", "true"].contains(&value.to_ascii_lowercase().as_str())
}

/// The user and password that an address carries.
fn user_of(server: &str) -> Option<(String, String)> {
    let url = url::Url::parse(server).ok()?;
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    match url.username() {
        "" => None,
        user => Some((decode(user), decode(url.password().unwrap_or_default()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)], track: &Track) -> Result<Option<MlflowSettings>, String> {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        MlflowSettings::of(track, "job", &move |name| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn the_job_comes_before_the_environment_and_none_means_none() {
        let env = [("MLFLOW_TRACKING_URI", "http://env:5000/")];
        let nobody = Track::default();
        assert!(with(&[], &nobody).unwrap().is_none());
        assert_eq!(
            with(&env, &nobody).unwrap().unwrap().server,
            "http://env:5000"
        );
        let named = Track {
            mlflow: Some("https://job".to_owned()),
            ..Track::default()
        };
        assert_eq!(with(&env, &named).unwrap().unwrap().server, "https://job");
        let none = Track {
            mlflow: Some("none".to_owned()),
            ..Track::default()
        };
        assert!(with(&env, &none).unwrap().is_none());
    }

    #[test]
    fn secrets_are_taken_from_the_environment_and_never_shown() {
        let env = [
            ("MLFLOW_TRACKING_URI", "http://me:hunter%32@host:5000"),
            ("MLFLOW_EXPERIMENT_NAME", "digits"),
            ("MLFLOW_TRACKING_INSECURE_TLS", "true"),
        ];
        let found = with(&env, &Track::default()).unwrap().unwrap();
        assert_eq!(found.server, "http://host:5000");
        assert_eq!(
            found.credentials.user,
            Some(("me".to_owned(), "hunter2".to_owned()))
        );
        assert!(found.credentials.insecure);
        assert_eq!(found.experiment, "digits");
        assert!(!format!("{found:?}").contains("hunter"));
        let mut env = env.to_vec();
        env.push(("MLFLOW_TRACKING_TOKEN", "hunter3"));
        let found = with(&env, &Track::default()).unwrap().unwrap();
        assert_eq!(found.credentials.token.as_deref(), Some("hunter3"));
        assert!(!format!("{found:?}").contains("hunter"));
    }

    #[test]
    fn what_is_no_server_is_said() {
        let env = [("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db")];
        let said = with(&env, &Track::default()).unwrap_err();
        assert!(said.contains("sqlite:///mlflow.db"), "{said}");
    }
}
