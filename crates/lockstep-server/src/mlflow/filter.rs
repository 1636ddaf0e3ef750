//! The language of MLflow's searches: `metrics.loss < 0.1 AND params.kind = 'adam' ORDER BY …` without the order.
//!
//! Comparisons are joined with `AND`; MLflow has neither `OR` nor parentheses. Names are `metrics.`, `params.`, `tags.` or
//! `attributes.` and a key, which stands in backticks or quotation marks if it has spaces; an attribute may stand alone.

use super::MlflowError;
use lockstep_index::filter::{Language, LexError, Operator, Token, Worth, lex};

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Name {
    /// A metric: its newest value.
    Metric(String),
    /// A parameter.
    Param(String),
    /// A tag.
    Tag(String),
    /// Something that every run has: `status`, `start_time`.
    Attribute(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Compare(Operator, Worth),
    Like { pattern: String, any_case: bool },
    In { values: Vec<String>, wanted: bool },
    Null(bool),
}

/// A filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Filter(Vec<(Name, Test)>);

impl Filter {
    /// Understands a text. An empty one holds of everything.
    pub(crate) fn parse(text: &str) -> Result<Filter, MlflowError> {
        let tokens = tokens(text)?;
        let mut parser = Parser {
            text,
            tokens: &tokens,
        };
        let mut tests = Vec::new();
        while !parser.tokens.is_empty() {
            if !tests.is_empty() && !parser.word("AND") {
                return Err(parser.wrong("comparisons are joined with AND"));
            }
            tests.push(parser.comparison()?);
        }
        Ok(Filter(tests))
    }

    /// Whether it holds of something that has these values.
    pub(crate) fn holds(&self, of: impl Fn(&Name) -> Option<Worth>) -> bool {
        self.0.iter().all(|(name, test)| match (test, of(name)) {
            (Test::Null(wanted), found) => found.is_none() == *wanted,
            (_, None) => false,
            (test, Some(found)) => test.holds(&found),
        })
    }
}

impl Test {
    fn holds(&self, found: &Worth) -> bool {
        match (self, found) {
            (Test::Compare(operator, wanted), found) => operator.holds(found.compare(wanted)),
            (Test::Like { pattern, any_case }, Worth::Text(text)) => match any_case {
                true => like(&pattern.to_lowercase(), &text.to_lowercase()),
                false => like(pattern, text),
            },
            (Test::In { values, wanted }, Worth::Text(text)) => values.contains(text) == *wanted,
            _ => false,
        }
    }
}

/// Whether a text is like a pattern, in which `%` stands for any letters and `_` for one.
fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on from if the last `%` must stand for one letter more.
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('%') => {
                back = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '_' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match back {
                Some((after, from)) => {
                    back = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '%')
}

const LANGUAGE: Language = Language {
    signs: &["!=", "<=", ">=", "==", "=", "<", ">", "(", ")", ",", "."],
    is_of_word: |c| !c.is_whitespace() && !"'\"`!<>=(),".contains(c),
    escapes: false,
};

fn tokens(text: &str) -> Result<Vec<Token>, MlflowError> {
    let tokens = lex(text, &LANGUAGE).map_err(|error| {
        MlflowError::wrong(match error {
            LexError::Unclosed(at) => {
                let mark = &text[at..=at];
                format!("Invalid filter: a {mark} has no other in: {text}")
            }
            LexError::Meaningless(span) => {
                format!("Invalid filter: {:.40}", &text[span.start..])
            }
        })
    })?;
    Ok(tokens.into_iter().map(|(token, _)| token).collect())
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

impl Parser<'_> {
    fn wrong(&self, what: &str) -> MlflowError {
        MlflowError::wrong(format!(
            "Invalid filter: {what}; such as metrics.loss < 0.1 AND params.kind = 'adam'. Found: {}",
            self.text
        ))
    }

    fn next(&mut self) -> Option<&Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Takes this word if it comes next.
    fn word(&mut self, wanted: &str) -> bool {
        let is = matches!(self.tokens.first(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(wanted));
        if is {
            self.next();
        }
        is
    }

    fn sign(&mut self, wanted: &str) -> bool {
        let is = self
            .tokens
            .first()
            .is_some_and(|token| matches!(token, Token::Sign(sign) if *sign == wanted));
        if is {
            self.next();
        }
        is
    }

    fn comparison(&mut self) -> Result<(Name, Test), MlflowError> {
        let name = match self.next().cloned() {
            Some(Token::Word(word)) if self.sign(".") => match self.next() {
                Some(Token::Name(key) | Token::Text(key) | Token::Word(key)) => {
                    named(&format!("{word}.{key}"))
                }
                _ => return Err(self.wrong("a name has no key after its dot")),
            },
            Some(Token::Word(word) | Token::Name(word) | Token::Text(word)) => named(&word),
            _ => return Err(self.wrong("a comparison begins with a name")),
        };
        let test = self.test()?;
        let right = match (&name, &test) {
            (_, Test::Null(_)) => true,
            (Name::Metric(_), test) => matches!(test, Test::Compare(_, Worth::Number(_))),
            (Name::Param(_) | Name::Tag(_), test) => {
                !matches!(test, Test::Compare(_, Worth::Number(_)))
            }
            (Name::Attribute(_), _) => true,
        };
        match right {
            true => Ok((name, test)),
            false => Err(self.wrong(
                "metrics are compared with numbers, parameters and tags with texts in quotation marks",
            )),
        }
    }

    fn test(&mut self) -> Result<Test, MlflowError> {
        for (word, any_case) in [("LIKE", false), ("ILIKE", true)] {
            if self.word(word) {
                return match self.value()? {
                    Worth::Text(pattern) => Ok(Test::Like { pattern, any_case }),
                    Worth::Number(_) => Err(self.wrong("LIKE takes a text in quotation marks")),
                };
            }
        }
        if self.word("IS") {
            let null = !self.word("NOT");
            return match self.word("NULL") {
                true => Ok(Test::Null(null)),
                false => Err(self.wrong("IS is followed by NULL or NOT NULL")),
            };
        }
        let wanted = !self.word("NOT");
        if self.word("IN") {
            return Ok(Test::In {
                values: self.values()?,
                wanted,
            });
        }
        let operator = match self.tokens.first() {
            Some(Token::Sign(sign)) => Operator::of(sign),
            _ => None,
        };
        match operator {
            Some(operator) if wanted => {
                self.next();
                Ok(Test::Compare(operator, self.value()?))
            }
            _ => {
                Err(self
                    .wrong("a name is followed by =, !=, <, <=, >, >=, LIKE, ILIKE, IN or IS NULL"))
            }
        }
    }

    fn value(&mut self) -> Result<Worth, MlflowError> {
        let value = match self.next() {
            Some(Token::Name(text) | Token::Text(text)) => Some(Worth::Text(text.clone())),
            Some(Token::Word(word)) => word.parse().ok().map(Worth::Number),
            _ => None,
        };
        value.ok_or_else(|| self.wrong("a value is a number, or a text in quotation marks"))
    }

    fn values(&mut self) -> Result<Vec<String>, MlflowError> {
        let mut values = Vec::new();
        let mut more = self.sign("(");
        while more {
            match self.value()? {
                Worth::Text(text) => values.push(text),
                Worth::Number(_) => return Err(self.wrong("IN takes texts in quotation marks")),
            }
            more = self.sign(",");
        }
        match !values.is_empty() && self.sign(")") {
            true => Ok(values),
            false => Err(self.wrong("IN takes texts in parentheses, between commas")),
        }
    }
}

/// What a whole name means.
pub(crate) fn named(text: &str) -> Name {
    let bare = |key: &str| {
        let quoted = key.len() > 1
            && matches!(key.as_bytes()[0], b'`' | b'"')
            && key.as_bytes().last() == key.as_bytes().first();
        if quoted {
            key[1..key.len() - 1].to_owned()
        } else {
            key.to_owned()
        }
    };
    match text.split_once('.') {
        Some(("metrics" | "metric", key)) => Name::Metric(bare(key)),
        Some(("params" | "param" | "parameters" | "parameter", key)) => Name::Param(bare(key)),
        Some(("tags" | "tag", key)) => Name::Tag(bare(key)),
        Some(("attributes" | "attribute" | "attr" | "run", key)) => Name::Attribute(bare(key)),
        _ => Name::Attribute(bare(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(filter: &str) -> bool {
        let filter = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error:?}"));
        filter.holds(|name| match name {
            Name::Metric(key) if key == "loss" || key == "val loss" => Some(Worth::Number(0.25)),
            Name::Param(key) if key == "kind" => Some(Worth::Text("Adam".into())),
            Name::Tag(key) if key == "mlflow.parentRunId" => Some(Worth::Text("a-1".into())),
            Name::Attribute(key) if key == "start_time" => Some(Worth::Number(1e12)),
            Name::Attribute(key) if key == "status" => Some(Worth::Text("FINISHED".into())),
            _ => None,
        })
    }

    #[test]
    fn what_clients_commonly_ask_is_understood() {
        for yes in [
            "",
            "metrics.loss < 0.3",
            "metrics.loss<0.3 and metric.loss >= 0.25",
            "metrics.`val loss` = 2.5e-1 AND metrics.\"val loss\" != 1",
            "params.kind = 'Adam' AND param.kind != \"sgd\"",
            "parameters.kind LIKE 'A%m' AND params.kind ILIKE '%DA_'",
            "params.kind IN ('x', 'Adam') AND params.kind NOT IN ('y')",
            "tags.mlflow.parentRunId = 'a-1'",
            "tags.`mlflow.parentRunId` IS NOT NULL AND tags.none IS NULL",
            "status = 'FINISHED' AND attributes.start_time > 1000",
            "attribute.status == \"FINISHED\"",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            "metrics.loss > 0.3",
            "metrics.none < 1",
            "metrics.none != 1",
            "params.kind LIKE 'a%'",
            "params.kind NOT IN ('Adam')",
            "tags.none = 'x'",
            "start_time = 'x'",
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_and_nothing_panics() {
        for wrong in [
            "metrics.loss",
            "metrics.loss <",
            "< 1",
            "metrics.loss < 'a'",
            "params.kind = 1",
            "a = 'x' OR b = 'y'",
            "a = 'x",
            "a IN",
            "a IN ()",
            "a IN ('x'",
            "a IS",
            "a NOT = 'x'",
            "metrics. < 1",
            ".",
            "..",
            "a.",
            "`",
            "''",
            "a = 'x' b = 'y'",
            "(a = 'x')",
            "é = \u{301}",
            "a LIKE 1",
            ",",
        ] {
            assert!(Filter::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns_with_many_signs_take_no_time() {
        let pattern = "%a".repeat(200) + "b";
        assert!(!like(&pattern, &"a".repeat(2000)));
        assert!(like("%", "") && like("", "") && !like("_", "") && like("a%b%c", "axxbyyc"));
    }
}
