//! S3 in another's name: credentials of a role that STS gives for a while (`AssumeRole`).
//!
//! One signed request brings them. They are held until shortly before they end and are then asked for
//! anew; while that fails, the old ones serve as long as they are good.

use super::failure::{AttemptFailure, ServerAnswer};
use super::transport::small;
use crate::Access;
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use object_store::CredentialProvider;
use object_store::aws::{AwsAuthorizer, AwsCredential, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpRequestBody};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use url::form_urlencoded;

/// New credentials are asked for when the old ones have less time left than this, or a quarter of theirs.
const MARGIN: TimeDelta = TimeDelta::minutes(5);

/// The credentials of a role.
#[derive(Debug)]
pub(super) struct AssumedRole {
    base: AwsCredentialProvider,
    client: HttpClient,
    endpoint: String,
    region: String,
    form: String,
    stall: Duration,
    held: Mutex<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    credential: Arc<AwsCredential>,
    renew: DateTime<Utc>,
    end: DateTime<Utc>,
}

impl AssumedRole {
    /// The role `role` as `access` describes it, asked for at `endpoint` with the credentials of `base`.
    pub(super) fn new(
        role: &str,
        access: &Access,
        endpoint: String,
        region: String,
        base: AwsCredentialProvider,
        client: HttpClient,
    ) -> AssumedRole {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", "AssumeRole")
            .append_pair("Version", "2011-06-15")
            .append_pair("RoleArn", role)
            .append_pair("RoleSessionName", &access.session_name)
            .append_pair("DurationSeconds", &access.session_s.to_string());
        if let Some(id) = &access.external_id {
            form.append_pair("ExternalId", id);
        }
        AssumedRole {
            base,
            client,
            endpoint,
            region,
            form: form.finish(),
            stall: access.stall(),
            held: Mutex::new(None),
        }
    }

    async fn assume(&self) -> Result<Held, AttemptFailure> {
        let base = self.base.get_credential().await?;
        let mut request = http::Request::post(format!("{}/", self.endpoint))
            .header(
                http::header::CONTENT_TYPE,
                "application/x-www-form-urlencoded; charset=utf-8",
            )
            .header(http::header::ACCEPT, "application/xml")
            .body(HttpRequestBody::from(self.form.clone()))
            .map_err(|error| {
                AttemptFailure::Other(format!("the address of STS is wrong: {error}"))
            })?;
        AwsAuthorizer::new(&base, "sts", &self.region).try_authorize(&mut request, None)?;
        let sent = self.client.execute(request);
        let answer = tokio::time::timeout(self.stall, sent)
            .await
            .map_err(|_| AttemptFailure::Stalled(self.stall))?
            .map_err(|error| object_store::Error::Generic {
                store: "STS",
                source: Box::new(error),
            })
            .map_err(AttemptFailure::from)
            .map_err(|failure| by_sts(failure, &self.endpoint))?;
        understand(&small(answer.into_body(), self.stall).await?, Utc::now())
    }
}

#[async_trait]
impl CredentialProvider for AssumedRole {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut held = self.held.lock().await;
        let now = Utc::now();
        if let Some(held) = held.as_ref().filter(|held| now < held.renew) {
            return Ok(held.credential.clone());
        }
        match (self.assume().await, held.as_ref()) {
            (Ok(new), _) => Ok(held.insert(new).credential.clone()),
            (Err(_), Some(old)) if now < old.end => Ok(old.credential.clone()),
            (Err(failure), _) => Err(object_store::Error::Generic {
                store: "STS",
                source: Box::new(failure),
            }),
        }
    }
}

/// Says of a failure that it was STS, not S3, that failed.
fn by_sts(failure: AttemptFailure, endpoint: &str) -> AttemptFailure {
    match failure {
        AttemptFailure::Answer(answer) => AttemptFailure::Answer(ServerAnswer {
            message: Some(match answer.message {
                Some(message) => format!("{message} (said STS at {endpoint}, asked for the role)"),
                None => format!("STS at {endpoint} does not give the role"),
            }),
            ..answer
        }),
        AttemptFailure::Transport { cause, passing } => AttemptFailure::Transport {
            cause: format!("{cause} (STS at {endpoint}, asked for the role)"),
            passing,
        },
        other => other,
    }
}

/// Takes the credentials out of the answer. What cannot be understood is not repeated: it may hold them.
fn understand(answer: &[u8], now: DateTime<Utc>) -> Result<Held, AttemptFailure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Response {
        assume_role_result: Outcome,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Outcome {
        credentials: Credentials,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Credentials {
        access_key_id: String,
        secret_access_key: String,
        session_token: String,
        expiration: DateTime<Utc>,
    }
    let wrong = || AttemptFailure::Other("the answer of STS is not the XML of AssumeRole".into());
    let text = std::str::from_utf8(answer).map_err(|_| wrong())?;
    let response: Response = quick_xml::de::from_str(text).map_err(|_| wrong())?;
    let given = response.assume_role_result.credentials;
    // They travel in headers, which take no other letters.
    let fits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let all = [
        &given.access_key_id,
        &given.secret_access_key,
        &given.session_token,
    ];
    if !all.into_iter().all(|text| fits(text)) {
        return Err(wrong());
    }
    let left = given.expiration - now;
    Ok(Held {
        credential: Arc::new(AwsCredential {
            key_id: given.access_key_id,
            secret_key: given.secret_access_key,
            token: Some(given.session_token),
        }),
        renew: given.expiration - MARGIN.min(left / 4),
        end: given.expiration,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
        <AssumeRoleResult><AssumedRoleUser><Arn>arn:x</Arn></AssumedRoleUser><Credentials>
        <AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>hun/ter2</SecretAccessKey>
        <SessionToken>tok+en==</SessionToken><Expiration>2030-01-01T01:00:00Z</Expiration>
        </Credentials></AssumeRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
        </AssumeRoleResponse>"#;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    #[test]
    fn credentials_are_renewed_before_they_end() {
        let held = understand(ANSWER.as_bytes(), at("2030-01-01T00:00:00Z")).unwrap();
        assert_eq!(held.credential.key_id, "ASIA");
        assert_eq!(held.credential.token.as_deref(), Some("tok+en=="));
        assert_eq!(held.renew, at("2030-01-01T00:55:00Z"));
        let short = understand(ANSWER.as_bytes(), at("2030-01-01T00:56:00Z")).unwrap();
        assert_eq!(short.renew, at("2030-01-01T00:59:00Z"));
    }

    #[test]
    fn an_answer_that_cannot_be_understood_is_not_repeated() {
        let now = at("2030-01-01T00:00:00Z");
        let broken = [
            ANSWER.replace("Expiration>", "Exp>"),
            ANSWER.replace("2030-", "x"),
            ANSWER.replace("tok+en==", "a\nb"),
            ANSWER.replace("tok+en==", ""),
            ANSWER.replace("</Credentials>", ""),
            "hun/ter2".into(),
        ];
        for answer in broken {
            let failure = understand(answer.as_bytes(), now).unwrap_err();
            let shown = format!("{failure}{failure:?}");
            assert!(shown.contains("not the XML of AssumeRole"), "{shown}");
            assert!(!shown.contains("hun/ter2"), "{shown}");
        }
    }

    #[test]
    fn what_is_held_shows_no_secret() {
        let held = understand(ANSWER.as_bytes(), at("2030-01-01T00:00:00Z")).unwrap();
        let shown = format!("{held:?}");
        assert!(
            !shown.contains("hun/ter2") && !shown.contains("tok+en"),
            "{shown}"
        );
    }
}
