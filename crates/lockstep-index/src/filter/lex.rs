//! The words and signs of a filter, in whichever language it is written.

use std::ops::Range;

/// A word or a sign.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A name, a number or any other word.
    Word(String),
    /// A name in backquotes.
    Name(String),
    /// A text in quotation marks.
    Text(String),
    /// A sign of the language.
    Sign(&'static str),
}

/// What tells languages apart before their grammar does.
#[derive(Debug)]
pub struct Language {
    /// Its signs; one that begins another stands behind it. Where a dot is one, no word ends with it.
    pub signs: &'static [&'static str],
    /// Whether a letter may be part of a word.
    pub is_of_word: fn(char) -> bool,
    /// Whether a backslash in a text takes the meaning from what follows.
    pub escapes: bool,
}

/// Why a text cannot be cut into words and signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LexError {
    /// What is quoted from there on does not end.
    Unclosed(usize),
    /// A letter that means nothing.
    Meaningless(Range<usize>),
}

/// Cuts a text into words and signs.
///
/// # Errors
/// When a quotation does not end, or a letter is neither of a word nor of a sign.
pub fn lex(text: &str, language: &Language) -> Result<Vec<(Token, Range<usize>)>, LexError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let (start, rest) = (at, &text[at..]);
        at += c.len_utf8();
        if c.is_whitespace() {
            continue;
        }
        let sign = language.signs.iter().find(|sign| rest.starts_with(**sign));
        let token = if let Some(sign) = sign {
            at = start + sign.len();
            Token::Sign(sign)
        } else if matches!(c, '"' | '\'' | '`') {
            let escapes = language.escapes && c != '`';
            let (inner, length) =
                quoted(&text[at..], c, escapes).ok_or(LexError::Unclosed(start))?;
            at += length;
            match c {
                '`' => Token::Name(inner),
                _ => Token::Text(inner),
            }
        } else {
            let end = rest.find(|c| !(language.is_of_word)(c));
            let mut word = &rest[..end.unwrap_or(rest.len())];
            if language.signs.contains(&".") {
                word = word.trim_end_matches('.');
            }
            if word.is_empty() {
                return Err(LexError::Meaningless(start..at));
            }
            at = start + word.len();
            Token::Word(word.to_owned())
        };
        tokens.push((token, start..at));
    }
    Ok(tokens)
}

/// What stands before the mark that ends a quotation, and how long both are.
fn quoted(text: &str, mark: char, escapes: bool) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if escapes => value.extend(chars.next().map(|(_, c)| c)),
            c if c == mark => return Some((value, at + 1)),
            c => value.push(c),
        }
    }
    None
}
