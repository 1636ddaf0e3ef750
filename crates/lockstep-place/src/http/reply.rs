//! What a server answered.

use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

/// How much of a server's words is told.
const TOLD: usize = 500;

/// What a server answered.
#[derive(Debug)]
pub struct Reply {
    /// Whether it is what was asked for.
    pub status: StatusCode,
    /// What stands before the body.
    pub headers: HeaderMap,
    /// All of the body.
    pub body: Vec<u8>,
}

impl Reply {
    /// What the server said, in short: the `message` of a JSON object, the last line of a traceback, or else its text.
    pub fn said(&self) -> String {
        let json: Option<serde_json::Value> = self.json().ok();
        let message = json.as_ref().and_then(|json| json["message"].as_str());
        let text = String::from_utf8_lossy(&self.body);
        let told = match message.unwrap_or(&text).trim() {
            text if text.starts_with("Traceback") => text.lines().next_back().unwrap_or_default(),
            text => text,
        };
        match in_short(told) {
            told if told.is_empty() => "nothing".to_owned(),
            told => told,
        }
    }

    /// The body's JSON.
    ///
    /// # Errors
    /// When it is none, or not of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }
}

/// The beginning of a text, without control characters.
pub fn in_short(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(TOLD).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_words_are_told_in_one_short_line() {
        let said = |body: &str| {
            Reply {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: body.as_bytes().to_vec(),
            }
            .said()
        };
        assert_eq!(said(" \n"), "nothing");
        assert_eq!(said("a\u{1b}\nb"), "a  b");
        assert_eq!(said("{\"message\": \"too many\"}"), "too many");
        assert_eq!(said("Traceback:\n  file\nKeyError: 1\n"), "KeyError: 1");
        assert_eq!(said(&"ü".repeat(600)).chars().count(), TOLD);
    }
}
