//! The words and signs of a filter.

use super::{FilterError, Operator};
use std::ops::Range;

/// A word or a sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    And,
    Or,
    Not,
    Open,
    Close,
    Operator(Operator),
    /// A name, a number or any other word.
    Word(String),
    /// A name in backquotes.
    Name(String),
    /// A text in quotation marks.
    Text(String),
}

/// Words that join comparisons, which a name can be only in backquotes.
const JOINING: [&str; 3] = ["and", "or", "not"];

/// Whether a word can stand as it is.
pub(super) fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(is_of_word) && !is_joining(word)
}

fn is_joining(word: &str) -> bool {
    JOINING.iter().any(|known| known.eq_ignore_ascii_case(word))
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "_.-+:/@%[]*".contains(c)
}

/// Cuts a text into words and signs.
pub(super) fn lex(text: &str) -> Result<Vec<(Token, Range<usize>)>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let start = at;
        at += c.len_utf8();
        let next_is = |at: usize, sign: char| text[at..].starts_with(sign);
        let token = match c {
            c if c.is_whitespace() => continue,
            '(' => Token::Open,
            ')' => Token::Close,
            '~' => Token::Operator(Operator::Contains),
            '=' => {
                at += usize::from(next_is(at, '='));
                Token::Operator(Operator::Equal)
            }
            '!' if next_is(at, '=') => {
                at += 1;
                Token::Operator(Operator::NotEqual)
            }
            '<' | '>' => {
                let or_equal = next_is(at, '=');
                at += usize::from(or_equal);
                Token::Operator(match (c, or_equal) {
                    ('<', false) => Operator::Less,
                    ('<', true) => Operator::LessOrEqual,
                    (_, false) => Operator::Greater,
                    (_, true) => Operator::GreaterOrEqual,
                })
            }
            '&' if next_is(at, '&') => {
                at += 1;
                Token::And
            }
            '|' if next_is(at, '|') => {
                at += 1;
                Token::Or
            }
            '!' => Token::Not,
            '"' | '\'' => Token::Text(quoted(text, &mut at, c)?),
            '`' => match text[at..].find('`') {
                Some(length) => {
                    let name = text[at..at + length].to_owned();
                    at += length + 1;
                    Token::Name(name)
                }
                None => return Err(unclosed(text, start)),
            },
            c if is_of_word(c) => {
                let rest = &text[start..];
                let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                at = start + length;
                let word = &rest[..length];
                match word.to_ascii_lowercase().as_str() {
                    "and" => Token::And,
                    "or" => Token::Or,
                    "not" => Token::Not,
                    _ => Token::Word(word.to_owned()),
                }
            }
            other => {
                let what = format!("`{other}` means nothing here");
                let label = "signs are = != < <= > >= ~ ( )";
                return Err(FilterError::new(text, start..at, what, label));
            }
        };
        tokens.push((token, start..at));
    }
    Ok(tokens)
}

fn unclosed(text: &str, start: usize) -> FilterError {
    let what = "this quotation does not end";
    FilterError::new(text, start..text.len(), what, "close it")
}

fn quoted(text: &str, at: &mut usize, mark: char) -> Result<String, FilterError> {
    let start = *at - 1;
    let mut value = String::new();
    let mut chars = text[*at..].char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c if c == mark => {
                *at += offset + 1;
                return Ok(value);
            }
            c => value.push(c),
        }
    }
    Err(unclosed(text, start))
}
