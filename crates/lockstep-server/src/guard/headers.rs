//! What every answer tells a browser to leave alone.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};

/// Scripts, styles, pictures and requests only of this server; no frames, no plugins, nothing written into the page
/// itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

const ALWAYS: [(HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: forms of our own pages would then come from nowhere.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    (
        HeaderName::from_static("x-permitted-cross-domain-policies"),
        "none",
    ),
];

/// Adds them. A route may have chosen a stricter policy, and how long its answer may be kept.
pub(crate) fn add(headers: &mut HeaderMap) {
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        let entry = headers.entry(name);
        entry.or_insert(HeaderValue::from_static(value));
    }
}
