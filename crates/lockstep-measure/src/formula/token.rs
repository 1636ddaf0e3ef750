//! The words and signs of a formula.

use super::expression::FormulaError;
use std::ops::Range;

/// The signs, the longest first of those that begin alike.
const SIGNS: [&str; 18] = [
    "**", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", "=",
];

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Text(String),
    Word(String),
    Sign(&'static str),
}

/// The tokens of a formula, each with its place.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, FormulaError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() || (first == '.' && digit_at(rest, 1)) {
            number(rest)?
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let word = &rest[..length.unwrap_or(rest.len())];
            (Token::Word(word.to_owned()), word.len())
        } else if first == '\'' || first == '"' {
            quoted(rest, first)?
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(stranger(first));
        };
        found.push((token, at..at + length));
        at += length;
    }
    Ok(found)
}

fn digit_at(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}

/// A number at the front, as `1`, `.5` and `1e-3`.
fn number(text: &str) -> Result<(Token, usize), FormulaError> {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while digit_at(text, at) {
            at += 1;
        }
        at
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digit_at(text, end + 1 + sign) {
            end = digits(end + 1 + sign);
        }
    }
    let written = &text[..end];
    match written.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((Token::Number(number), end)),
        _ => Err(FormulaError {
            at: written.to_owned(),
            reason: "this number is too large".to_owned(),
        }),
    }
}

/// A text between quotes at the front, in which a backslash stands before a quote and before itself.
fn quoted(text: &str, quote: char) -> Result<(Token, usize), FormulaError> {
    let mut said = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => said.extend(letters.next().map(|(_, letter)| letter)),
            letter if letter == quote => return Ok((Token::Text(said), at + 1)),
            letter => said.push(letter),
        }
    }
    Err(FormulaError {
        at: text.to_owned(),
        reason: format!("this text has no {quote} at its end"),
    })
}

fn stranger(sign: char) -> FormulaError {
    let reason = match sign {
        '&' => "write `and`",
        '|' => "write `or`",
        '!' | '~' => "write `not`",
        '^' => "write `**` for a power",
        _ => "this sign means nothing in a formula",
    };
    FormulaError {
        at: sign.to_string(),
        reason: reason.to_owned(),
    }
}
