//! What a name means: something that every run has, a tag, a metric or a parameter.
//!
//! Metrics come before parameters, so `loss` is a loss and not the job's choice of one. `metric.NAME` and
//! `param.KEY` say which is meant. A parameter may be named by the end of its key. What several things are called is
//! found out for each run by itself.

use super::named::Named;
use crate::run::Run;
use lockstep_base::nearest::nearest;
use lockstep_events::current_name;
use std::collections::BTreeSet;

/// What every run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The name of its job.
    Job,
    /// Its own name.
    Name,
    /// What a client of MLflow's calls it.
    RunName,
    /// How it is.
    Status,
    /// When it began.
    Started,
    /// When it ended.
    Ended,
    /// How long it took.
    Duration,
    /// How long ago it began.
    Age,
    /// Worker processes.
    Workers,
    /// Epochs that are trained.
    Epochs,
    /// Optimizer steps that are done.
    Steps,
    /// How often workers that were lost were replaced.
    Restarts,
    /// Numbers that are learned.
    Parameters,
    /// Training samples a second.
    SamplesPerS,
    /// Bytes that its folder takes.
    Bytes,
    /// What went wrong.
    Error,
    /// The hash of its weights.
    Weights,
    /// The git commit.
    Commit,
    /// The machine.
    Host,
    /// Who gave the command.
    User,
    /// What the user says of it.
    Note,
}

/// The fields, by the names that they have in a filter.
const FIELDS: [(&str, Field); 21] = [
    ("job", Field::Job),
    ("name", Field::Name),
    ("run_name", Field::RunName),
    ("status", Field::Status),
    ("started", Field::Started),
    ("ended", Field::Ended),
    ("duration", Field::Duration),
    ("age", Field::Age),
    ("workers", Field::Workers),
    ("epochs", Field::Epochs),
    ("steps", Field::Steps),
    ("restarts", Field::Restarts),
    ("parameters", Field::Parameters),
    ("samples_per_s", Field::SamplesPerS),
    ("bytes", Field::Bytes),
    ("error", Field::Error),
    ("weights", Field::Weights),
    ("commit", Field::Commit),
    ("host", Field::Host),
    ("user", Field::User),
    ("note", Field::Note),
];

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Something that every run has.
    Field(Field),
    /// A tag of the user's, by its key.
    Tag(String),
    /// A metric, by its name with or without the set.
    Metric(String),
    /// A parameter, by its whole key.
    Param(String),
    /// What each run has of a name that several things have.
    Named(Named),
}

impl Subject {
    /// The keys of the parameters that a run is asked for.
    pub fn keys(&self) -> &[String] {
        match self {
            Subject::Param(key) => std::slice::from_ref(key),
            Subject::Named(named) => &named.keys,
            Subject::Field(_) | Subject::Tag(_) | Subject::Metric(_) => &[],
        }
    }

    /// Checks that the name is clear in one of the runs at least, if any has it.
    ///
    /// # Errors
    /// Says what is wrong, and what would be right.
    pub fn check(&self, runs: &[Run]) -> Result<(), (String, String)> {
        let Subject::Named(named) = self else {
            return Ok(());
        };
        match named.unclear(runs) {
            None => Ok(()),
            Some((one, other)) => {
                let message = format!("`{}` may mean several parameters", named.name);
                Err((message, format!("`{one}` or `{other}`?")))
            }
        }
    }
}

/// The names that there are in a store.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Metrics, by their whole names.
    pub metrics: BTreeSet<String>,
    /// Keys of parameters.
    pub params: BTreeSet<String>,
    /// Keys of tags.
    pub tags: BTreeSet<String>,
}

impl Names {
    /// What a name means; or what is wrong with it, and what would be right.
    ///
    /// # Errors
    /// When nothing is called so.
    pub fn find(&self, name: &str) -> Result<Subject, (String, String)> {
        if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
            return Ok(Subject::Field(*field));
        }
        if let Some(key) = name.strip_prefix("tag.") {
            // A tag that no run has yet is nothing wrong.
            return Ok(Subject::Tag(key.to_owned()));
        }
        let (of_metric, of_param) = (name.strip_prefix("metric."), name.strip_prefix("param."));
        let metric = of_metric.unwrap_or(name);
        let is_metric = self.is_metric(metric);
        let key = of_param.unwrap_or(name);
        let keys = match of_metric {
            Some(_) => Vec::new(),
            None => self.keys(key),
        };
        match (is_metric, &keys[..]) {
            (true, []) => return Ok(Subject::Metric(metric.to_owned())),
            (false, []) => {}
            (false, [one]) => return Ok(Subject::Param(one.clone())),
            _ => {
                return Ok(Subject::Named(Named {
                    name: key.to_owned(),
                    metric: is_metric,
                    keys,
                }));
            }
        }
        let label = match self.nearest(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "metrics: ".to_owned() + &self.some_metrics(),
        };
        Err((format!("no run here has anything called `{name}`"), label))
    }

    /// The keys that are so, or end so.
    fn keys(&self, key: &str) -> Vec<String> {
        let ending = format!(".{key}");
        let is_meant = |param: &&String| *param == key || param.ends_with(&ending);
        self.params.iter().filter(is_meant).cloned().collect()
    }

    fn is_metric(&self, name: &str) -> bool {
        let whole = ["", "test.", "val.", "train."].map(|set| format!("{set}{name}"));
        let mut whole = whole.into_iter().chain(current_name(name));
        whole.any(|name| self.metrics.contains(&name))
    }

    /// The name that was probably meant.
    fn nearest(&self, name: &str) -> Option<String> {
        let short = |whole: &String| {
            let sets = ["test.", "val.", "train."];
            let bare = sets.iter().find_map(|set| whole.strip_prefix(set));
            bare.unwrap_or(whole).to_owned()
        };
        let mut known: Vec<String> = FIELDS.iter().map(|(name, _)| (*name).to_owned()).collect();
        known.extend(self.metrics.iter().map(short));
        known.extend(self.metrics.iter().cloned());
        known.extend(self.params.iter().cloned());
        let ends = self.params.iter().filter_map(|key| key.rsplit('.').next());
        known.extend(ends.map(str::to_owned));
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        nearest(name, &known).map(str::to_owned)
    }

    fn some_metrics(&self) -> String {
        let some: Vec<&str> = self.metrics.iter().map(String::as_str).take(8).collect();
        some.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Names {
            metrics: set(&["test.accuracy", "val.loss", "train.loss"]),
            params: set(&[
                "train.optimizer.lr",
                "train.loss",
                "embed.kind",
                "model.kind",
            ]),
            tags: set(&[]),
        }
    }

    #[test]
    fn a_name_is_a_field_a_tag_a_metric_or_the_end_of_a_key() {
        let find = |name: &str| names().find(name).unwrap();
        assert_eq!(find("status"), Subject::Field(Field::Status));
        assert_eq!(find("tag.good"), Subject::Tag("good".into()));
        assert_eq!(find("accuracy"), Subject::Metric("accuracy".into()));
        assert_eq!(find("val.loss"), Subject::Metric("val.loss".into()));
        let train_loss = Named {
            name: "train.loss".into(),
            metric: true,
            keys: vec!["train.loss".into()],
        };
        assert_eq!(find("train.loss"), Subject::Named(train_loss));
        // As it was called in MLflow once.
        assert_eq!(find("train_loss"), Subject::Metric("train_loss".into()));
        assert_eq!(
            find("param.train.loss"),
            Subject::Param("train.loss".into())
        );
        for name in ["lr", "optimizer.lr", "train.optimizer.lr"] {
            assert_eq!(find(name), Subject::Param("train.optimizer.lr".into()));
        }
    }

    #[test]
    fn what_is_unknown_or_may_be_several_is_told_with_what_is_near() {
        let (message, label) = names().find("acuracy").unwrap_err();
        assert!(
            message.contains("acuracy") && label.contains("`accuracy`"),
            "{label}"
        );
        let kind = names().find("kind").unwrap();
        let mut run = Run::default();
        for key in ["embed.kind", "model.kind"] {
            run.params.insert(key.into(), "x".into());
        }
        let (message, label) = kind.check(&[run]).unwrap_err();
        assert!(
            message.contains("several") && label.contains("model.kind"),
            "{label}"
        );
        assert!(names().find("metric.lr").is_err());
    }
}
