//! From words and signs to what a filter says.
//!
//! ```text
//! filter      = and { "or" and }
//! and         = not { "and" not }
//! not         = "not" not | "(" filter ")" | comparison
//! comparison  = NAME [ OPERATOR VALUE ]
//! ```

use super::{
    Expression, Filter, FilterError, Language, LexError, Literal, Operator, Token, Word, lex,
};
use std::ops::Range;

/// How deep parentheses and `not`s may be nested.
const DEPTH: usize = 100;

const LANGUAGE: Language = Language {
    signs: &[
        "==", "!=", "<=", ">=", "&&", "||", "=", "<", ">", "!", "~", "(", ")",
    ],
    is_of_word: |c| c.is_alphanumeric() || "_.-+:/@%[]*".contains(c),
    escapes: true,
};

fn is_joining(word: &str) -> bool {
    let known = ["and", "or", "not"];
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, FilterError> {
    lex(text, &LANGUAGE).map_err(|error| match error {
        LexError::Unclosed(start) => {
            let what = "this quotation does not end";
            FilterError::new(text, start..text.len(), what, "close it")
        }
        LexError::Meaningless(span) => {
            let what = format!("`{}` means nothing here", &text[span.clone()]);
            FilterError::new(text, span, what, "signs are = != < <= > >= ~ ( )")
        }
    })
}

impl Filter {
    /// Understands a filter.
    ///
    /// # Errors
    /// When it is none; the error shows where.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let mut parser = Parser {
            text,
            tokens: tokens(text)?,
            next: 0,
        };
        if parser.tokens.is_empty() {
            let label = "for example: accuracy > 0.9 and optimizer.lr < 0.01";
            return Err(FilterError::new(text, 0..0, "the filter is empty", label));
        }
        let root = parser.or(0)?;
        match parser.tokens.get(parser.next) {
            None => Ok(Filter {
                text: text.to_owned(),
                root,
            }),
            Some((Token::Sign(")"), span)) => Err(FilterError::new(
                text,
                span.clone(),
                "this parenthesis closes none",
                "remove it",
            )),
            Some((_, span)) => Err(FilterError::new(
                text,
                span.clone(),
                "the filter should have ended here",
                "join comparisons with `and` or `or`",
            )),
        }
    }

    /// The text as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    next: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    /// Takes this word or this sign if it comes next.
    fn take(&mut self, wanted: &str, sign: &str) -> bool {
        let found = match self.peek() {
            Some(Token::Word(word)) => word.eq_ignore_ascii_case(wanted),
            Some(Token::Sign(next)) => *next == sign,
            _ => false,
        };
        self.next += usize::from(found);
        found
    }

    /// Where the next word is, or the end.
    fn here(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        let span = self.tokens.get(self.next).map(|(_, span)| span.clone());
        span.unwrap_or(end..end)
    }

    fn error<T>(&self, message: &str, label: &str) -> Result<T, FilterError> {
        Err(FilterError::new(self.text, self.here(), message, label))
    }

    fn or(&mut self, depth: usize) -> Result<Expression, FilterError> {
        let first = self.and(depth)?;
        let mut parts = vec![first];
        while self.take("or", "||") {
            parts.push(self.and(depth)?);
        }
        Ok(one_or(parts, Expression::Or))
    }

    fn and(&mut self, depth: usize) -> Result<Expression, FilterError> {
        let first = self.not(depth)?;
        let mut parts = vec![first];
        while self.take("and", "&&") {
            parts.push(self.not(depth)?);
        }
        Ok(one_or(parts, Expression::And))
    }

    fn not(&mut self, depth: usize) -> Result<Expression, FilterError> {
        if depth > DEPTH {
            return self.error("the filter is nested too deep", "");
        }
        if self.take("not", "!") {
            return Ok(Expression::Not(Box::new(self.not(depth + 1)?)));
        }
        let open = self.here();
        if self.take("", "(") {
            let inner = self.or(depth + 1)?;
            if !self.take("", ")") {
                let what = "this parenthesis is not closed";
                return Err(FilterError::new(self.text, open, what, "add a `)`"));
            }
            return Ok(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expression, FilterError> {
        let span = self.here();
        let name = match self.tokens.get(self.next) {
            Some((Token::Name(name), _)) => name,
            Some((Token::Word(name), _)) if !is_joining(name) => name,
            Some((Token::Text(_), _)) => {
                let label = "write the name as it is, or in `backquotes`";
                return self.error("a comparison begins with a name, not with a text", label);
            }
            _ => {
                let label = "a parameter, a metric, `status`, `started`, `tag.KEY` ...";
                return self.error("there should be a name here", label);
            }
        };
        let text = name.clone();
        let name = Word { text, span };
        self.next += 1;
        let operator = match self.peek() {
            Some(Token::Sign(sign)) => Operator::of(sign),
            _ => None,
        };
        let Some(operator) = operator else {
            return Ok(Expression::Has(name));
        };
        self.next += 1;
        let span = self.here();
        let (text, quoted) = match self.tokens.get(self.next) {
            Some((Token::Word(word), _)) if !is_joining(word) => (word.clone(), false),
            Some((Token::Text(text), _)) => (text.clone(), true),
            _ => {
                let what = format!("there is no value after `{}`", operator.sign());
                let label = "a number, a word, or a text in quotation marks";
                return self.error(&what, label);
            }
        };
        self.next += 1;
        let value = Literal { text, quoted, span };
        Ok(Expression::Compare(name, operator, value))
    }
}

fn one_or(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt;

    // Where a word stands makes no difference.
    impl PartialEq for Word {
        fn eq(&self, other: &Self) -> bool {
            self.text == other.text
        }
    }

    impl PartialEq for Literal {
        fn eq(&self, other: &Self) -> bool {
            (&self.text, self.quoted) == (&other.text, other.quoted)
        }
    }

    impl fmt::Display for Expression {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let joined = |f: &mut fmt::Formatter<'_>, parts: &[Expression], word: &str| {
                for (number, part) in parts.iter().enumerate() {
                    if number > 0 {
                        write!(f, " {word} ")?;
                    }
                    match part {
                        // An `and` within an `or` needs no parentheses; all else that is joined is given them.
                        Expression::Or(_) => write!(f, "({part})")?,
                        Expression::And(_) if word == "and" => write!(f, "({part})")?,
                        _ => part.fmt(f)?,
                    }
                }
                Ok(())
            };
            match self {
                Expression::And(parts) => joined(f, parts, "and"),
                Expression::Or(parts) => joined(f, parts, "or"),
                Expression::Not(inner) => match **inner {
                    Expression::And(_) | Expression::Or(_) => write!(f, "not ({inner})"),
                    _ => write!(f, "not {inner}"),
                },
                Expression::Has(name) => name.fmt(f),
                Expression::Compare(name, operator, value) => {
                    write!(f, "{name} {} {value}", operator.sign())
                }
            }
        }
    }

    impl fmt::Display for Word {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match is_plain(&self.text) {
                true => f.write_str(&self.text),
                false => write!(f, "`{}`", self.text),
            }
        }
    }

    impl fmt::Display for Literal {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self.quoted {
                false => f.write_str(&self.text),
                true => {
                    let escaped = self.text.replace('\\', r"\\").replace('"', r#"\""#);
                    write!(f, "\"{escaped}\"")
                }
            }
        }
    }

    /// Whether a word can stand as it is: it has no signs, and joins no comparisons.
    fn is_plain(word: &str) -> bool {
        !word.is_empty() && word.chars().all(LANGUAGE.is_of_word) && !is_joining(word)
    }

    fn wrong(text: &str) -> String {
        Filter::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn and_binds_closer_than_or_and_parentheses_closest() {
        let said = |text: &str| Filter::parse(text).unwrap().root.to_string();
        assert_eq!(said("a=1 or b=2 and c=3"), "a = 1 or b = 2 and c = 3");
        assert_eq!(said("(a=1 or b=2) AND not c"), "(a = 1 or b = 2) and not c");
        assert_eq!(
            said("a == 1 && !b || c ~ 'x y'"),
            "a = 1 and not b or c ~ \"x y\""
        );
        assert_eq!(said("not (a and b)"), "not (a and b)");
        assert_eq!(said("((a))"), "a");
        assert_eq!(said("`odd name` >= 1e-3"), "`odd name` >= 1e-3");
    }

    #[test]
    fn what_is_wrong_is_marked_where_it_stands() {
        assert_eq!(
            wrong("accuracy > and lr < 1"),
            "there is no value after `>`\n  |\n  | accuracy > and lr < 1\n  |            ^^^ \
             a number, a word, or a text in quotation marks"
        );
        assert!(wrong("").contains("empty"));
        assert!(wrong("(a = 1").contains("not closed"));
        assert!(wrong("a = 1)").contains("closes none"));
        assert!(wrong("a = 1 b = 2").contains("join comparisons"));
        assert!(wrong("a = 'x").contains("does not end"));
        assert!(wrong("a = 1 and").contains("there should be a name"));
        assert!(wrong("a # b").contains("`#`"));
        assert!(wrong("'a' = 1").contains("begins with a name"));
        assert!(wrong(&"(".repeat(10_000)).contains("too deep"));
        assert!(!wrong("a \u{1b} b").contains('\u{1b}'));
    }

    fn words() -> impl Strategy<Value = Word> {
        "[a-z][a-z0-9_.]{0,6}|[a-z ]{1,5}|and|or|not".prop_map(|text| Word { text, span: 0..0 })
    }

    fn literals() -> impl Strategy<Value = Literal> {
        let plain = "[a-z0-9][a-z0-9.:-]{0,6}"
            .prop_filter("a plain word", |text| is_plain(text))
            .prop_map(|text| (text, false));
        let quoted = r#"[a-zé"'\\ ()=`]{0,8}"#.prop_map(|text| (text, true));
        prop_oneof![plain, quoted].prop_map(|(text, quoted)| Literal {
            text,
            quoted,
            span: 0..0,
        })
    }

    fn expressions() -> impl Strategy<Value = Expression> {
        let operators = prop::sample::select(vec![
            Operator::Equal,
            Operator::NotEqual,
            Operator::Less,
            Operator::LessOrEqual,
            Operator::Greater,
            Operator::GreaterOrEqual,
            Operator::Contains,
        ]);
        let leaf = prop_oneof![
            words().prop_map(Expression::Has),
            (words(), operators, literals()).prop_map(|(n, o, v)| Expression::Compare(n, o, v)),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..4).prop_map(Expression::And),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Expression::Or),
                inner.prop_map(|inner| Expression::Not(Box::new(inner))),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_understood_as_the_same(expression in expressions()) {
            let printed = expression.to_string();
            let back = Filter::parse(&printed);
            prop_assert!(back.is_ok(), "{printed}");
            prop_assert_eq!(back.unwrap().root, expression, "{}", printed);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            if let Err(error) = Filter::parse(&text) {
                let _ = error.to_string();
            }
        }
    }
}
