//! Programs that hand out credentials, as the clouds' clusters have them: `aws eks get-token`, `kubelogin`.

use crate::kube::KubeError;
use lockstep_place::http::in_short;
use serde::Deserialize;
use serde_json::json;
use std::process::{Command, Stdio};

/// A program that hands out credentials.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Exec {
    command: String,
    args: Option<Vec<String>>,
    env: Option<Vec<Variable>>,
    #[serde(rename = "apiVersion")]
    api: String,
    #[serde(default, rename = "installHint")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Variable {
    name: String,
    value: String,
}

/// What it handed out.
pub(super) struct PluginCredential {
    pub(super) token: Option<String>,
    pub(super) identity: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct Answer {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Exec {
    pub(super) fn run(&self) -> Result<PluginCredential, KubeError> {
        let failed = |why: String| KubeError::Exec {
            command: self.command.clone(),
            why,
        };
        let mut command = Command::new(&self.command);
        command.args(self.args.iter().flatten());
        for variable in self.env.iter().flatten() {
            command.env(&variable.name, &variable.value);
        }
        let told = json!({ "apiVersion": self.api, "kind": "ExecCredential", "spec": { "interactive": false } });
        command.env("KUBERNETES_EXEC_INFO", told.to_string());
        let output = command.stdin(Stdio::null()).output().map_err(|error| {
            let hint = self
                .hint
                .as_deref()
                .map(|hint| format!("; {}", in_short(hint)));
            failed(format!("{error}{}", hint.unwrap_or_default()))
        })?;
        if !output.status.success() {
            let said = in_short(&String::from_utf8_lossy(&output.stderr));
            return Err(failed(format!("{}: {said}", output.status)));
        }
        let answer: Answer = serde_json::from_slice(&output.stdout)
            .map_err(|error| failed(format!("its answer is not an ExecCredential: {error}")))?;
        let status = answer
            .status
            .ok_or_else(|| failed("its answer has no status".to_owned()))?;
        let identity = match (status.client_certificate_data, status.client_key_data) {
            (Some(certificate), Some(key)) => Some(format!("{certificate}\n{key}").into_bytes()),
            _ => None,
        };
        Ok(PluginCredential {
            token: status.token,
            identity,
        })
    }
}
