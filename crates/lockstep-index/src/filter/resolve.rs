//! A filter in a store: each name is found, each value understood, and then runs are asked.

use super::named::Found;
use super::{Expression, Field, Filter, FilterError, Literal, Names, Operator, Subject};
use crate::dates;
use crate::run::{Run, State};
use serde_json::Value;
use std::cmp::Ordering;
use std::ops::Range;

/// A filter whose names are found.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The text that the user wrote.
    text: String,
    root: Node,
}

#[derive(Debug, Clone)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Has(Mention),
    Compare(Mention, Operator, Wanted),
}

/// What is asked of a run, and where the text names it.
#[derive(Debug, Clone)]
struct Mention {
    subject: Subject,
    span: Range<usize>,
}

/// What a value is held against.
#[derive(Debug, Clone, PartialEq)]
struct Wanted {
    text: String,
    number: Option<f64>,
}

/// What something is worth: what it is sorted and compared by.
#[derive(Debug, Clone, PartialEq)]
pub enum Worth {
    /// A number.
    Number(f64),
    /// Anything else.
    Text(String),
}

impl Worth {
    /// The order of two values of a kind; numbers and texts have none, nor has what is not a number.
    pub fn compare(&self, other: &Worth) -> Option<Ordering> {
        match (self, other) {
            (Worth::Number(a), Worth::Number(b)) => a.partial_cmp(b),
            (Worth::Text(a), Worth::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// Numbers come before texts.
    pub fn order(&self, other: &Worth) -> Ordering {
        match (self, other) {
            (Worth::Number(a), Worth::Number(b)) => a.total_cmp(b),
            (Worth::Text(a), Worth::Text(b)) => a.cmp(b),
            (Worth::Number(_), Worth::Text(_)) => Ordering::Less,
            (Worth::Text(_), Worth::Number(_)) => Ordering::Greater,
        }
    }
}

impl Filter {
    /// Finds out what each name of the filter means.
    ///
    /// # Errors
    /// When a name means nothing, or a value does not fit what it is compared with.
    pub fn resolve(&self, names: &Names) -> Result<Resolved, FilterError> {
        Ok(Resolved {
            text: self.text().to_owned(),
            root: self.node(&self.root, names)?,
        })
    }

    fn node(&self, expression: &Expression, names: &Names) -> Result<Node, FilterError> {
        let all = |parts: &[Expression]| -> Result<Vec<Node>, FilterError> {
            parts.iter().map(|part| self.node(part, names)).collect()
        };
        Ok(match expression {
            Expression::And(parts) => Node::And(all(parts)?),
            Expression::Or(parts) => Node::Or(all(parts)?),
            Expression::Not(inner) => Node::Not(Box::new(self.node(inner, names)?)),
            Expression::Has(word) => Node::Has(self.mention(word, names)?),
            Expression::Compare(word, operator, literal) => {
                let mention = self.mention(word, names)?;
                let wanted = self.wanted(&mention.subject, *operator, literal)?;
                Node::Compare(mention, *operator, wanted)
            }
        })
    }

    fn mention(&self, word: &super::Word, names: &Names) -> Result<Mention, FilterError> {
        let span = word.span.clone();
        match names.find(&word.text) {
            Ok(subject) => Ok(Mention { subject, span }),
            Err((message, label)) => Err(FilterError::new(self.text(), span, message, label)),
        }
    }

    fn wanted(
        &self,
        subject: &Subject,
        operator: Operator,
        literal: &Literal,
    ) -> Result<Wanted, FilterError> {
        let text = literal.text.clone();
        let plain = || text.parse::<f64>().ok().filter(|_| !literal.quoted);
        if operator == Operator::Contains {
            return Ok(Wanted { text, number: None });
        }
        let wrong = |message: String, label: &str| {
            Err(FilterError::new(
                self.text(),
                literal.span.clone(),
                message,
                label,
            ))
        };
        let number = match subject {
            Subject::Field(Field::Started | Field::Ended) => match dates::parse(&text) {
                Some(date) => Some(date),
                None => {
                    let label =
                        "such as 2026-11-01 or \"2026-11-01 13:45\"; for spans use `age < 7d`";
                    return wrong(format!("`{text}` is not a date"), label);
                }
            },
            Subject::Field(Field::Duration | Field::Age) => match dates::parse_span(&text) {
                Some(span) => Some(span),
                None => {
                    return wrong(
                        format!("`{text}` is not a span of time"),
                        "such as 90s, 5min, 2h, 7d",
                    );
                }
            },
            Subject::Field(Field::Status) => {
                if !State::ALL.iter().any(|state| state.word() == text) {
                    let words = State::ALL.map(State::word).join(", ");
                    return wrong(format!("no run is ever `{text}`"), &words);
                }
                None
            }
            Subject::Metric(_) => match plain() {
                Some(number) => Some(number),
                None => return wrong(format!("`{text}` is not a number"), "metrics are numbers"),
            },
            // The runs whose parameter is called like the metrics of others may be asked for a text.
            Subject::Named(named) if named.metric && !operator.is_of_texts() => match plain() {
                Some(number) => Some(number),
                None => return wrong(format!("`{text}` is not a number"), "metrics are numbers"),
            },
            _ => plain(),
        };
        Ok(Wanted { text, number })
    }
}

impl Node {
    /// All that is asked.
    fn each<'a>(&'a self, see: &mut impl FnMut(&'a Mention)) {
        match self {
            Node::And(parts) | Node::Or(parts) => parts.iter().for_each(|part| part.each(see)),
            Node::Not(inner) => inner.each(see),
            Node::Has(mention) | Node::Compare(mention, ..) => see(mention),
        }
    }

    fn holds(&self, run: &Run, now: f64) -> bool {
        match self {
            Node::And(parts) => parts.iter().all(|part| part.holds(run, now)),
            Node::Or(parts) => parts.iter().any(|part| part.holds(run, now)),
            Node::Not(inner) => !inner.holds(run, now),
            Node::Has(mention) => match worth(&mention.subject, run, now) {
                Some(Worth::Text(text)) => text != "false",
                found => found.is_some(),
            },
            Node::Compare(mention, operator, wanted) => {
                let found = match &mention.subject {
                    // A text is no metric's.
                    Subject::Named(named) if wanted.number.is_none() => {
                        found_worth(named.param_of(run))
                    }
                    subject => worth(subject, run, now),
                };
                found.is_some_and(|found| compare(&found, *operator, wanted))
            }
        }
    }
}

impl Resolved {
    /// The keys of the parameters that it asks for.
    pub fn params(&self) -> Vec<String> {
        let mut keys = Vec::new();
        self.root
            .each(&mut |mention| keys.extend_from_slice(mention.subject.keys()));
        keys
    }

    /// Checks that each name is clear in one of the runs at least, if any has it.
    ///
    /// # Errors
    /// When all runs that have something of a name have several things.
    pub fn check(&self, runs: &[Run]) -> Result<(), FilterError> {
        let mut wrong = None;
        self.root.each(&mut |mention| {
            if let Err((message, label)) = mention.subject.check(runs) {
                let span = mention.span.clone();
                wrong = Some(FilterError::new(&self.text, span, message, label));
            }
        });
        wrong.map_or(Ok(()), Err)
    }

    /// Whether a run is meant, at the time `now`. One that has no such value is meant by no comparison with it.
    pub fn holds(&self, run: &Run, now: f64) -> bool {
        self.root.holds(run, now)
    }
}

fn compare(found: &Worth, operator: Operator, wanted: &Wanted) -> bool {
    if operator == Operator::Contains {
        let text = match found {
            Worth::Text(text) => text.to_lowercase(),
            Worth::Number(number) => number.to_string(),
        };
        return text.contains(&wanted.text.to_lowercase());
    }
    let order = match (found, wanted.number) {
        (Worth::Number(found), Some(wanted)) => found.partial_cmp(&wanted),
        (Worth::Number(_), None) => None,
        (Worth::Text(found), _) => Some(found.as_str().cmp(&wanted.text)),
    };
    operator.holds(order)
}

/// What a subject is worth in a run, at the time `now`; nothing if the run has no such thing.
pub fn worth(subject: &Subject, run: &Run, now: f64) -> Option<Worth> {
    let number = |number: u64| Some(Worth::Number(number as f64));
    let text = |text: &str| (!text.is_empty()).then(|| Worth::Text(text.to_owned()));
    match subject {
        Subject::Tag(key) => run.tags.get(key).map(|value| Worth::Text(value.clone())),
        Subject::Metric(name) => run.metric(name).map(Worth::Number),
        Subject::Param(key) => run.params.get(key).map(param_worth),
        Subject::Named(named) => found_worth(named.of(run)),
        Subject::Field(field) => match field {
            Field::Job => text(&run.job),
            Field::Name => text(&run.name),
            Field::RunName => text(&run.run_name),
            Field::Status => text(run.state.word()),
            Field::Started => run.started.map(Worth::Number),
            Field::Ended => run.ended.map(Worth::Number),
            Field::Duration => run.duration(now).map(Worth::Number),
            Field::Age => run.started.map(|began| Worth::Number(now - began)),
            Field::Workers => number(run.workers),
            Field::Epochs => number(run.epochs_done),
            Field::Steps => number(run.step),
            Field::Restarts => number(run.restarts),
            Field::Parameters => number(run.parameters),
            Field::SamplesPerS => run.samples_per_s.map(Worth::Number),
            Field::Bytes => number(run.bytes),
            Field::Error => text(run.error.as_deref().unwrap_or_default()),
            Field::Weights => text(run.weights_sha256.as_deref().unwrap_or_default()),
            Field::Commit => text(run.commit.as_deref().unwrap_or_default()),
            Field::Host => text(run.host.as_deref().unwrap_or_default()),
            Field::User => text(run.user.as_deref().unwrap_or_default()),
            Field::Note => text(&run.note),
        },
    }
}

fn found_worth(found: Found<'_>) -> Option<Worth> {
    match found {
        Found::Metric(number) => Some(Worth::Number(number)),
        Found::Param(value) => Some(param_worth(value)),
        Found::Nothing | Found::Unclear(..) => None,
    }
}

fn param_worth(value: &Value) -> Worth {
    match value {
        Value::Number(number) => Worth::Number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => Worth::Text(text.clone()),
        other => Worth::Text(other.to_string()),
    }
}

/// Sorts runs; those that have no such value come last.
pub fn sort_by(runs: &mut [Run], subject: &Subject, ascending: bool, now: f64) {
    runs.sort_by(
        |a, b| match (worth(subject, a, now), worth(subject, b, now)) {
            (Some(a), Some(b)) => {
                let nan = |worth: &Worth| matches!(worth, Worth::Number(number) if number.is_nan());
                let order = nan(&a).cmp(&nan(&b));
                order.then(match ascending {
                    true => a.order(&b),
                    false => b.order(&a),
                })
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let mut run = Run {
            name: "digits-1".into(),
            job: "digits".into(),
            state: State::Succeeded,
            started: dates::parse("2026-11-10 12:00"),
            ..Run::default()
        };
        run.metrics.insert("test.accuracy".into(), 0.93);
        run.metrics.insert("val.loss".into(), 0.2);
        run.params.insert("train.optimizer.lr".into(), 0.005.into());
        run.params
            .insert("train.optimizer.kind".into(), "sgd".into());
        run.tags.insert("good".into(), String::new());
        run
    }

    fn names() -> Names {
        let run = run();
        Names {
            metrics: run.metrics.keys().cloned().collect(),
            params: run.params.keys().cloned().collect(),
            tags: run.tags.keys().cloned().collect(),
        }
    }

    fn holds(text: &str) -> bool {
        let now = dates::parse("2026-11-12").unwrap();
        let filter = Filter::parse(text).unwrap();
        filter.resolve(&names()).unwrap().holds(&run(), now)
    }

    #[test]
    fn runs_are_chosen_by_all_that_is_known_of_them() {
        for text in [
            "accuracy > 0.9 and optimizer.lr < 0.01",
            "status = succeeded",
            "job = digits and name ~ DIGITS",
            "optimizer.kind = sgd or accuracy > 1",
            "started > 2026-11-01 and started < \"2026-11-10 13:00\"",
            "age < 2d and not age < 1d",
            "tag.good",
            "not tag.bad",
            "val.loss <= 0.2",
            "optimizer.lr = 5e-3",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in [
            "accuracy < 0.9",
            "tag.bad",
            "tag.bad != x",
            "optimizer.kind != sgd",
        ] {
            assert!(!holds(text), "{text}");
        }
    }

    #[test]
    fn another_clients_names_change_nothing_of_what_a_filter_says_of_a_run() {
        let now = dates::parse("2026-11-12").unwrap();
        let mut other = Run {
            name: "theirs".into(),
            ..Run::default()
        };
        other.metrics.insert("lr".into(), 0.001);
        other.params.insert("params.lr".into(), 0.001.into());
        other
            .params
            .insert("params.optimizer.lr".into(), 0.001.into());
        other.params.insert("params.kind".into(), "adam".into());
        let mut names = names();
        names.metrics.extend(other.metrics.keys().cloned());
        names.params.extend(other.params.keys().cloned());
        let runs = [run(), other];
        let chosen = |text: &str| {
            let filter = Filter::parse(text).unwrap().resolve(&names).unwrap();
            filter.check(&runs).unwrap();
            let held = runs.iter().filter(|run| filter.holds(run, now));
            held.map(|run| run.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(chosen("lr = 0.005"), ["digits-1"]);
        assert_eq!(chosen("optimizer.lr < 0.01"), ["digits-1", "theirs"]);
        assert_eq!(chosen("lr < 0.002"), ["theirs"]);
        assert_eq!(chosen("param.lr"), ["digits-1", "theirs"]);
        assert_eq!(chosen("kind = sgd"), ["digits-1"]);
        assert_eq!(chosen("kind = adam"), ["theirs"]);
    }

    #[test]
    fn a_value_that_cannot_be_is_marked() {
        let wrong = |text: &str| {
            let filter = Filter::parse(text).unwrap();
            filter.resolve(&names()).unwrap_err().to_string()
        };
        assert!(wrong("started > yesterday").contains("not a date"));
        assert!(wrong("duration > long").contains("2h"));
        assert!(wrong("status = done").contains("succeeded"));
        assert!(wrong("accuracy > high").contains("not a number"));
        assert!(wrong("acuracy > 1").contains("did you mean `accuracy`"));
    }
}
