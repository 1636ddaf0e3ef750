//! The door for browsers: a page that asks for a token and keeps it as a cookie, and Ray's two questions about tokens.
//!
//! The cookie has the name that Ray's has and holds the token itself. No script can read it, and the browser sends it
//! only with requests that a page of this server makes.

use super::origin::follows_foreign_link;
use super::{Credential, cookie_token, header_token};
use crate::endpoint::Endpoint;
use crate::{Refusal, Server};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use lockstep_base::markup::escaped;
use serde_json::json;
use url::form_urlencoded;

/// The cookie's name: Ray's.
pub(super) const COOKIE: &str = "ray-authentication-token";
/// How long a browser keeps it, in seconds: 30 days.
const KEPT: u32 = 30 * 86_400;

const PAGE: &str = include_str!("login.html");
const STYLE: &str = include_str!("login.css");

/// Whether it is a form of a page of ours.
pub(super) fn is_form(path: &str) -> bool {
    matches!(path, "/login" | "/logout")
}

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/login", show, "A page that asks for a token")
            .open()
            .undescribed(),
        Endpoint::post("/login", log_in, "Keeps a token as a cookie")
            .open()
            .undescribed(),
        Endpoint::get("/login.css", style, "How that page looks")
            .open()
            .undescribed(),
        Endpoint::post("/logout", log_out, "Removes the cookie")
            .open()
            .undescribed(),
        Endpoint::get(
            "/api/authentication_mode",
            mode,
            "Whether a token is needed",
        )
        .open(),
        Endpoint::post(
            "/api/authenticate",
            authenticate,
            "Checks a token, and makes it a cookie",
        )
        .open(),
    ]
}

/// The page, for a browser that asked for another one without a token.
pub(super) fn page(headers: &HeaderMap, next: &str, said: &str, status: StatusCode) -> Response {
    // Behind a link from elsewhere the browser leaves the cookie away. If the page loads itself again, it does not.
    let again = match status == StatusCode::UNAUTHORIZED && follows_foreign_link(headers) {
        true => "<meta http-equiv=\"refresh\" content=\"0\">",
        false => "",
    };
    let page = PAGE
        .replace("{again}", again)
        .replace("{said}", &escaped(said))
        .replace("{next}", &escaped(next));
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, kind, page).into_response()
}

async fn show(headers: HeaderMap) -> Response {
    page(&headers, "/", "", StatusCode::OK)
}

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

async fn log_in(State(server): State<Server>, headers: HeaderMap, body: String) -> Response {
    let (mut token, mut next) = (String::new(), "/".to_owned());
    for (key, value) in form_urlencoded::parse(body.as_bytes()) {
        match &*key {
            "token" => token = value.trim().to_owned(),
            "next" if is_own_path(&value) => next = value.into_owned(),
            _ => (),
        }
    }
    match server.guard().caller_of(Credential::Token(&token)).await {
        Ok(_) => {
            let cookie = cookie(&token, KEPT, server.guard().encrypted);
            let to = [(header::SET_COOKIE, cookie), (header::LOCATION, next)];
            (StatusCode::SEE_OTHER, to).into_response()
        }
        Err(refusal) if refusal.status.is_client_error() => {
            let said = "This token is not known here. It may have been removed.";
            page(&headers, &next, said, StatusCode::FORBIDDEN)
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Whether it is a path of this server, and not a way to another one, such as `//evil.example`.
fn is_own_path(path: &str) -> bool {
    let mut bytes = path.bytes();
    bytes.next() == Some(b'/')
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && path.bytes().all(|byte| byte.is_ascii_graphic())
}

async fn log_out(State(server): State<Server>) -> impl IntoResponse {
    let cookie = cookie("", 0, server.guard().encrypted);
    let to = [
        (header::SET_COOKIE, cookie),
        (header::LOCATION, "/login".to_owned()),
    ];
    (StatusCode::SEE_OTHER, to)
}

fn cookie(token: &str, seconds: u32, encrypted: bool) -> String {
    let secure = if encrypted { "; Secure" } else { "" };
    format!("{COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

async fn mode(State(server): State<Server>) -> impl IntoResponse {
    let mode = match server.guard().tokens.is_some() {
        true => "token",
        false => "disabled",
    };
    axum::Json(json!({ "authentication_mode": mode }))
}

async fn authenticate(
    State(server): State<Server>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let given = header_token(&headers).unwrap_or_else(|| cookie_token(&headers));
    server.guard().caller_of(given).await?;
    let said = axum::Json(json!({ "status": "authenticated", "message": "Token is valid" }));
    let mut answer = said.into_response();
    if let Credential::Token(token) = given
        && let Ok(cookie) = cookie(token, KEPT, server.guard().encrypted).parse()
    {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_elsewhere_after_logging_in() {
        assert!(is_own_path("/") && is_own_path("/runs/a?b=c#d"));
        for other in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "evil",
            "/a\r\nb: c",
            "/\t/evil",
        ] {
            assert!(!is_own_path(other), "{other:?}");
        }
    }
}
