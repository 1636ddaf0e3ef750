//! From the text of a formula to its tree, by the rules of Python.

use super::expression::{Expression, FormulaError, Kind, Operator, Value};
use super::function::{Aggregate, PerSample};
use super::rules::{self, number, operands, truth};
use super::token::{Token, tokens};
use lockstep_base::nearest::nearest;
use std::ops::Range;

/// The most parts of a formula: they are followed by recursion.
const MOST_PARTS: usize = 200;
/// How deep brackets and signs may lie in each other.
const DEEPEST: usize = 50;
/// What makes a number of all samples and of a share.
const QUANTILE: &str = "quantile";

/// Operators that bind alike, the loosest first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[
        ("*", Operator::Times),
        ("/", Operator::Over),
        ("%", Operator::Modulo),
    ],
];
/// The level of comparisons, above which `not` stands.
const COMPARISONS: usize = 2;

/// Reads a formula, and checks all that can be checked without data.
pub(super) fn parse(text: &str) -> Result<Expression, FormulaError> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        text,
        tokens: &tokens,
        at: 0,
        parts: 0,
        depth: 0,
    };
    let whole = parser.level(0)?;
    if parser.at < tokens.len() {
        return parser.unexpected("an operator such as `+`, or the end");
    }
    rules::check_whole(&whole)?;
    Ok(whole)
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [(Token, Range<usize>)],
    /// The next token.
    at: usize,
    parts: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    /// Whether the next token is this sign or word.
    fn is_next(&self, wanted: &str) -> bool {
        match self.peek() {
            Some(Token::Sign(sign)) => *sign == wanted,
            Some(Token::Word(word)) => word == wanted,
            _ => false,
        }
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_next = self.is_next(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn need(&mut self, wanted: &str) -> Result<(), FormulaError> {
        match self.take(wanted) {
            true => Ok(()),
            false => self.unexpected(&format!("`{wanted}`")),
        }
    }

    /// Where the next token begins, or the last one ended.
    fn begin(&self) -> usize {
        let next = self.tokens.get(self.at);
        next.map_or(self.text.len(), |(_, range)| range.start)
    }

    /// A part from there up to the last token.
    fn part(&mut self, kind: Kind, begin: usize) -> Result<Expression, FormulaError> {
        let end = self
            .at
            .checked_sub(1)
            .map_or(0, |last| self.tokens[last].1.end);
        let part = Expression::new(kind, self.text, begin..end.max(begin));
        self.parts += 1;
        match self.parts > MOST_PARTS {
            true => part.refuse(format!("a formula has at most {MOST_PARTS} parts")),
            false => Ok(part),
        }
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T, FormulaError> {
        let at = match self.tokens.get(self.at) {
            Some((Token::Sign("="), _)) => {
                return self.refuse("=", "write `==` to compare");
            }
            Some((_, range)) => self.text[range.clone()].to_owned(),
            None => return self.refuse("the end", &format!("here should stand {wanted}")),
        };
        self.refuse(&at, &format!("here should stand {wanted}"))
    }

    fn refuse<T>(&self, at: &str, reason: &str) -> Result<T, FormulaError> {
        Err(FormulaError {
            at: at.to_owned(),
            reason: reason.to_owned(),
        })
    }

    /// Operators of a level, and all that bind closer.
    fn level(&mut self, level: usize) -> Result<Expression, FormulaError> {
        let begin = self.begin();
        if level == COMPARISONS && self.take("not") {
            let of = self.deeper(|parser| parser.level(COMPARISONS))?;
            let of = Box::new(truth(of)?);
            return self.part(Kind::Not(of), begin);
        }
        let Some(operators) = LEVELS.get(level) else {
            return self.signed();
        };
        let mut left = self.level(level + 1)?;
        loop {
            let mut known = operators.iter();
            let Some((word, operator)) = known.find(|(word, _)| self.is_next(word)) else {
                return Ok(left);
            };
            let is_comparison = matches!(left.kind, Kind::Binary(of, ..) if of.compares());
            if level == COMPARISONS && is_comparison && !left.bracketed {
                return self.refuse(
                    word,
                    "compare two things at a time, and put `and` between two comparisons",
                );
            }
            self.at += 1;
            let right = self.level(level + 1)?;
            let (left_side, right_side) = operands(*operator, left, right)?;
            left = self.part(Kind::Binary(*operator, left_side, right_side), begin)?;
        }
    }

    /// A sign and what it stands before; a power binds closer.
    fn signed(&mut self) -> Result<Expression, FormulaError> {
        let begin = self.begin();
        if self.take("-") {
            let of = self.deeper(Self::signed)?;
            let of = Box::new(number(of)?);
            return self.part(Kind::Negative(of), begin);
        }
        if self.take("+") {
            return self.deeper(Self::signed).and_then(number);
        }
        let base = self.single()?;
        if !self.take("**") {
            return Ok(base);
        }
        let power = self.deeper(Self::signed)?;
        let (base, power) = operands(Operator::Power, base, power)?;
        self.part(Kind::Binary(Operator::Power, base, power), begin)
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, FormulaError>,
    ) -> Result<T, FormulaError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let reason =
                format!("brackets and signs lie more than {DEEPEST} deep in each other here");
            return self.refuse("(", &reason);
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// A number, a text, a value, a function, or what stands in brackets.
    fn single(&mut self) -> Result<Expression, FormulaError> {
        let begin = self.begin();
        let token = self.peek().cloned();
        match token {
            Some(Token::Number(number)) => {
                self.at += 1;
                self.part(Kind::Number(number), begin)
            }
            Some(Token::Text(text)) => {
                self.at += 1;
                self.part(Kind::Text(text), begin)
            }
            Some(Token::Sign("(")) => {
                self.at += 1;
                let inner = self.deeper(|parser| parser.level(0))?;
                self.need(")")?;
                Ok(Expression {
                    bracketed: true,
                    ..inner
                })
            }
            Some(Token::Word(word)) if !is_operator(&word) => {
                self.at += 1;
                match self.take("(") {
                    true => self.call(&word, begin),
                    false => self.value(&word, begin),
                }
            }
            _ => self
                .unexpected("a number, a value such as `label`, or a function such as `mean(...)`"),
        }
    }

    /// A value, and the output that it is of.
    fn value(&mut self, word: &str, begin: usize) -> Result<Expression, FormulaError> {
        let Some((_, value)) = Value::ALL.into_iter().find(|(known, _)| *known == word) else {
            let words = Value::ALL.map(|(known, _)| known);
            return self.refuse(word, &unknown(word, "value", &words));
        };
        let mut output = None;
        if self.take("[") {
            let Some(Token::Text(name)) = self.peek().cloned() else {
                return self.unexpected("a name in quotes");
            };
            self.at += 1;
            self.need("]")?;
            output = Some(name);
        }
        self.part(Kind::Value(value, output), begin)
    }

    /// A function, the bracket of which is open.
    fn call(&mut self, word: &str, begin: usize) -> Result<Expression, FormulaError> {
        let mut arguments = Vec::new();
        while !self.is_next(")") {
            arguments.push(self.deeper(|parser| parser.level(0))?);
            if !self.take(",") {
                break;
            }
        }
        self.need(")")?;
        let count = arguments.len();
        let wrong = |parser: &Self, wanted: &str| {
            let reason = format!("it takes {wanted}, and has {count}");
            parser.refuse(&format!("{word}(...)"), &reason)
        };
        if let Some((_, function)) = PerSample::ALL.into_iter().find(|(known, _)| *known == word) {
            if count != function.arguments() {
                return match function.arguments() {
                    1 => wrong(self, "one number"),
                    2 => wrong(self, "two numbers"),
                    _ => wrong(self, "a condition and two numbers"),
                };
            }
            let mut checked = Vec::new();
            for (at, argument) in arguments.into_iter().enumerate() {
                checked.push(match (function, at) {
                    (PerSample::Where, 0) => truth(argument)?,
                    _ => number(argument)?,
                });
            }
            return self.part(Kind::PerSample(function, checked), begin);
        }
        let aggregate = match (word, &arguments[..]) {
            (QUANTILE, [_, share]) => match share.kind {
                Kind::Number(share) if (0.0..=1.0).contains(&share) => Aggregate::Quantile(share),
                _ => {
                    return share
                        .refuse("the share of a quantile is a number from 0 to 1, such as 0.9");
                }
            },
            (QUANTILE, _) => return wrong(self, "what is of each sample, and a share such as 0.9"),
            _ => match Aggregate::ALL.into_iter().find(|(known, _)| *known == word) {
                Some((_, aggregate)) if count == 1 => aggregate,
                Some((name, _)) if count == 2 && ["min", "max"].contains(&name) => {
                    return wrong(
                        self,
                        &format!("what is of each sample; of two numbers, use {name}imum(a, b)"),
                    );
                }
                Some(_) => return wrong(self, "what is of each sample"),
                None => {
                    let names = PerSample::ALL.map(|(name, _)| name).into_iter();
                    let names: Vec<&str> = (names.chain(Aggregate::ALL.map(|(name, _)| name)))
                        .chain([QUANTILE])
                        .collect();
                    return self.refuse(word, &unknown(word, "function", &names));
                }
            },
        };
        let of = number(arguments.swap_remove(0))?;
        self.part(Kind::Aggregate(aggregate, Box::new(of)), begin)
    }
}

fn is_operator(word: &str) -> bool {
    ["and", "or", "not"].contains(&word)
}

/// What is said of a name that there is not.
fn unknown(word: &str, what: &str, names: &[&str]) -> String {
    match nearest(word, names) {
        Some(name) => format!("there is no such {what}; did you mean `{name}`?"),
        None => format!("there is no such {what}; there are {}", names.join(", ")),
    }
}
