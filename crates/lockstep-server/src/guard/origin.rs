//! Where a request comes from: the address that the client believes to speak to, and the page that made it ask.
//!
//! A page of another site can make a browser send requests to this server. Two things make that dangerous: the browser
//! stands behind the firewall, and it adds the cookie. Three checks stop it:
//!
//! - `Host` must be a name of this server. A page whose name was made to point at this machine (*DNS rebinding*) has the
//!   browser's leave to read the answers, but its requests carry its own name.
//! - `Origin` and `Sec-Fetch-Site`, which pages cannot change, must say that the page is this server's own. Only
//!   following a link to a page of ours is allowed from elsewhere.
//! - What changes something must carry `x-lockstep` if it comes from a browser. Pages of other sites cannot add a header
//!   without asking first, and this server never says yes.
//!
//! The clients of Ray and MLflow are no browsers and send none of these headers.

use crate::Refusal;
use http::{HeaderMap, Method, Request, StatusCode, header};
use std::net::IpAddr;

/// The names that this server answers to.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// Whether addresses of other machines than this one are right too: those of a server that listens on the network.
    pub(crate) any_address: bool,
    /// Names beside `localhost`.
    pub(crate) names: Vec<String>,
}

impl Names {
    /// Checks the address that the client believes to speak to.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let authority = authority(request)?;
        if let Some(other) = request.uri().authority()
            && !other.as_str().eq_ignore_ascii_case(authority)
        {
            return Err(Refusal::bad("the request names two hosts"));
        }
        match self.has(host(authority)) {
            true => Ok(()),
            false => Err(Refusal::new(
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "{authority} is not a name of this server; start it with --allow-host {} if it is",
                    host(authority)
                ),
            )),
        }
    }

    fn has(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return self.any_address || address.to_canonical().is_loopback();
        }
        let host = host.trim_end_matches('.');
        let mut names = self.names.iter().map(String::as_str).chain(["localhost"]);
        names.any(|name| name.eq_ignore_ascii_case(host))
    }
}

/// Checks the page that made a browser ask. `page_form` is whether the request may be a form of a page of ours, which
/// cannot add headers.
pub(crate) fn check_page<B>(
    request: &Request<B>,
    encrypted: bool,
    page_form: bool,
) -> Result<(), Refusal> {
    let headers = request.headers();
    let site = text(headers, "sec-fetch-site");
    let origin = text(headers, header::ORIGIN.as_str());
    if let Some(origin) = origin
        && !is_own(origin, authority(request)?, encrypted)
    {
        return Err(other_site(origin));
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let follows_link = reads
        && text(headers, "sec-fetch-mode") == Some("navigate")
        && text(headers, "sec-fetch-dest") == Some("document");
    if let Some(site) = site
        && !matches!(site, "same-origin" | "none")
        && !follows_link
    {
        return Err(other_site(site));
    }
    let browser = site.is_some() || origin.is_some();
    if browser && !reads && !page_form && !headers.contains_key("x-lockstep") {
        return Err(Refusal::forbidden(
            "a browser's request that changes something must have the header x-lockstep",
        ));
    }
    Ok(())
}

fn other_site(said: &str) -> Refusal {
    Refusal::forbidden(format!("a page of another site asks: {said:.200}"))
}

/// Whether a link on a page of another site was followed: the browser then leaves the cookie away.
pub(crate) fn follows_foreign_link(headers: &HeaderMap) -> bool {
    text(headers, "sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none")
}

fn is_own(origin: &str, authority: &str, encrypted: bool) -> bool {
    let Some((scheme, named)) = origin.split_once("://") else {
        return false;
    };
    // In front of a server without TLS there may be something that has it.
    let right = scheme == "https" || (scheme == "http" && !encrypted);
    right && named.eq_ignore_ascii_case(authority)
}

fn authority<B>(request: &Request<B>) -> Result<&str, Refusal> {
    let mut all = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (all.next(), all.next()) else {
        return Err(Refusal::bad("a request must have one Host header"));
    };
    let host = host.to_str().ok().filter(|host| !host.is_empty());
    host.ok_or_else(|| Refusal::bad("the Host header is not a name"))
}

/// The name or address alone, without the port.
fn host(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // What is not text is like nothing that would be right.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(method: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri("/api/jobs/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn a_server_on_loopback_has_only_names_of_loopback() {
        let names = Names {
            any_address: false,
            names: vec!["train.lan".to_owned()],
        };
        let said = |host: &str| names.check(&asks("GET", &[("host", host)])).is_ok();
        for right in [
            "localhost",
            "LOCALHOST:8265",
            "127.0.0.1:8265",
            "127.1.2.3",
            "[::1]:8265",
            "Train.lan:1",
        ] {
            assert!(said(right), "{right}");
        }
        for wrong in [
            "evil.example",
            "evil.example:8265",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost:8265.evil.example",
            "localhost@evil.example",
            "xlocalhost",
            "",
            "[::2]",
            "0.0.0.0",
        ] {
            assert!(!said(wrong), "{wrong}");
        }
        assert!(names.check(&asks("GET", &[])).is_err());
        let two = asks("GET", &[("host", "localhost"), ("host", "evil.example")]);
        assert!(names.check(&two).is_err());
    }

    #[test]
    fn one_on_the_network_has_any_address_but_no_strange_name() {
        let names = Names {
            any_address: true,
            names: vec!["box".to_owned()],
        };
        let said = |host: &str| names.check(&asks("GET", &[("host", host)])).is_ok();
        assert!(said("10.0.0.1:8265") && said("[2001:db8::1]:8265") && said("box:8265"));
        assert!(!said("evil.example") && !said("box.evil.example"));
    }

    #[test]
    fn pages_of_other_sites_are_refused_and_other_clients_are_not() {
        let host = ("host", "localhost:8265");
        let check = |method: &str, headers: &[(&str, &str)], form: bool| {
            let all = [&[host], headers].concat();
            check_page(&asks(method, &all), false, form).is_ok()
        };
        assert!(check("POST", &[], false), "ray's client");
        let ours = ("origin", "http://localhost:8265");
        assert!(check("POST", &[ours, ("x-lockstep", "1")], false));
        assert!(!check("POST", &[ours], false), "no header of ours");
        assert!(check("POST", &[ours], true), "a form of ours");
        for other in [
            "http://evil.example",
            "null",
            "http://localhost:8266",
            "http://localhost:8265.evil",
            "file://",
        ] {
            for method in ["GET", "POST", "DELETE", "OPTIONS"] {
                let headers = [("origin", other), ("x-lockstep", "1")];
                assert!(!check(method, &headers, true), "{method} {other}");
            }
        }
        for site in ["cross-site", "same-site"] {
            let site = ("sec-fetch-site", site);
            assert!(!check("GET", &[site, ("sec-fetch-mode", "no-cors")], false));
            let navigates = ("sec-fetch-mode", "navigate");
            assert!(check(
                "GET",
                &[site, navigates, ("sec-fetch-dest", "document")],
                false
            ));
            assert!(!check(
                "GET",
                &[site, navigates, ("sec-fetch-dest", "iframe")],
                false
            ));
            assert!(!check(
                "POST",
                &[site, navigates, ("sec-fetch-dest", "document")],
                true
            ));
        }
        let secure = [
            ("origin", "http://localhost:8265"),
            host,
            ("x-lockstep", "1"),
        ];
        assert!(check_page(&asks("POST", &secure), true, false).is_err());
    }
}
