//! Models that are read from files, checked before XGBoost sees them.
//!
//! XGBoost believes what a model says of itself: a child that is no node, a column that there is none of, or two trees
//! with one number make it read and write memory that is not its own. A run's folder may come from a stranger. So its
//! file is read here first, as strictly as XGBoost writes it, and everything in it that is a number of something
//! else is looked up.

mod names;
mod tree;
mod ubj;

pub(crate) use names::with_names;
pub use names::without_names;

use std::collections::BTreeMap;
use ubj::Ubj;

/// The parts of an object, by their names.
type Parts = BTreeMap<String, Ubj>;

/// XGBoost stops at as many outputs long before.
const MOST_OUTPUTS: i64 = 1 << 20;

/// Checks that bytes are a model of trees in XGBoost's binary format all of whose parts fit each other, and returns how
/// many columns its rows have.
///
/// # Errors
/// What is wrong, in words.
pub fn check_model(bytes: &[u8]) -> Result<usize, String> {
    let Ubj::Object(whole) = ubj::read(bytes)? else {
        return Err("it is no object".to_owned());
    };
    let learner = object(&whole, "learner")?;
    let parameters = object(learner, "learner_model_param")?;
    let columns = number(parameters, "num_feature")?;
    let outputs = [number(parameters, "num_class")?, target_count(parameters)?];
    let outputs = outputs.into_iter().fold(1, i64::max);
    if !(0..=i64::from(i32::MAX)).contains(&columns) || outputs > MOST_OUTPUTS {
        return Err(format!("it has {columns} columns and {outputs} outputs"));
    }
    check_base_score(text(parameters, "base_score")?, outputs)?;
    text(object(learner, "objective")?, "name")?;
    for name in ["feature_names", "feature_types"] {
        let list = match learner.get(name) {
            None => continue,
            Some(list) => texts(list).ok_or_else(|| format!("`{name}` is no list of texts"))?,
        };
        if list != 0 && list as i64 != columns {
            return Err(format!("`{name}` has {list} entries for {columns} columns"));
        }
    }
    let booster = object(learner, "gradient_booster")?;
    match text(booster, "name")? {
        "gbtree" => {}
        other => return Err(format!("its booster is {other:?}, and must be \"gbtree\"")),
    }
    let model = object(booster, "model")?;
    if model.get("cats").is_some_and(|cats| !is_empty(cats)) {
        return Err("it has categories of a data frame, which no run writes".to_owned());
    }
    check_trees(model, columns, outputs)?;
    Ok(columns as usize)
}

/// Older versions of XGBoost do not say how many numbers are predicted together.
fn target_count(parameters: &Parts) -> Result<i64, String> {
    match parameters.contains_key("num_target") {
        true => number(parameters, "num_target"),
        false => Ok(1),
    }
}

/// What is predicted without any tree: one number, or one for each output.
fn check_base_score(text: &str, outputs: i64) -> Result<(), String> {
    let list = text
        .strip_prefix('[')
        .and_then(|list| list.strip_suffix(']'));
    let numbers: Vec<&str> = list.unwrap_or(text).split(',').collect();
    let are_numbers = numbers.iter().all(|one| one.trim().parse::<f32>().is_ok());
    match are_numbers && (numbers.len() == 1 || numbers.len() as i64 == outputs) {
        true => Ok(()),
        false => Err(format!("`base_score` is {text:?}, with {outputs} outputs")),
    }
}

fn check_trees(model: &Parts, columns: i64, outputs: i64) -> Result<(), String> {
    let trees = match part(model, "trees")? {
        Ubj::Array(trees) => trees,
        _ => return Err("`trees` is no list".to_owned()),
    };
    let count = trees.len() as i64;
    let parameters = object(model, "gbtree_model_param")?;
    let said = number(parameters, "num_trees")?;
    let groups = numbers(model, "tree_info")?;
    if said != count || groups.len() as i64 != count {
        let groups = groups.len();
        return Err(format!(
            "it has {count} trees, says that there are {said}, and names the output of {groups}"
        ));
    }
    if let Some(group) = groups.iter().find(|group| !(0..outputs).contains(group)) {
        return Err(format!("a tree is for output {group} of {outputs}"));
    }
    if number(parameters, "num_parallel_tree")? < 1 {
        return Err("`num_parallel_tree` is less than 1".to_owned());
    }
    if model.contains_key("iteration_indptr") {
        let rounds = numbers(model, "iteration_indptr")?;
        let grows = rounds.is_sorted();
        if !grows || rounds.first() != Some(&0) || rounds.last() != Some(&count) {
            return Err(format!(
                "`iteration_indptr` does not divide {count} trees into rounds"
            ));
        }
    }
    for (at, tree) in trees.iter().enumerate() {
        let named = |problem: String| format!("tree {at}: {problem}");
        let Ubj::Object(tree) = tree else {
            return Err(named("it is no object".to_owned()));
        };
        tree::check(tree, at, columns).map_err(named)?;
    }
    Ok(())
}

fn part<'p>(parts: &'p Parts, name: &str) -> Result<&'p Ubj, String> {
    parts
        .get(name)
        .ok_or_else(|| format!("`{name}` is missing"))
}

fn object<'p>(parts: &'p Parts, name: &str) -> Result<&'p Parts, String> {
    match part(parts, name)? {
        Ubj::Object(parts) => Ok(parts),
        _ => Err(format!("`{name}` is no object")),
    }
}

fn text<'p>(parts: &'p Parts, name: &str) -> Result<&'p str, String> {
    match part(parts, name)? {
        Ubj::Text(text) => Ok(text),
        _ => Err(format!("`{name}` is no text")),
    }
}

/// A whole number that is written as a text, as XGBoost has all its parameters.
fn number(parts: &Parts, name: &str) -> Result<i64, String> {
    let text = text(parts, name)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain);
    number.ok_or_else(|| format!("`{name}` is {text:?}, and must be a whole number"))
}

fn numbers<'p>(parts: &'p Parts, name: &str) -> Result<&'p [i64], String> {
    match part(parts, name)? {
        Ubj::Numbers(numbers) => Ok(numbers),
        other if is_empty(other) => Ok(&[]),
        _ => Err(format!("`{name}` is no list of whole numbers")),
    }
}

/// How many texts a list has.
fn texts(list: &Ubj) -> Option<usize> {
    match list {
        Ubj::Array(items) => {
            let are_texts = items.iter().all(|item| matches!(item, Ubj::Text(_)));
            are_texts.then_some(items.len())
        }
        _ => None,
    }
}

/// Whether there is nothing in it, and nothing in what is in it.
fn is_empty(value: &Ubj) -> bool {
    match value {
        Ubj::Object(parts) => parts.values().all(is_empty),
        Ubj::Array(items) => items.is_empty(),
        Ubj::Numbers(numbers) => numbers.is_empty(),
        Ubj::Floats(count) => *count == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
