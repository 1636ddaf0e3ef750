//! Classes by name: which number a name is, in this set or in another's numbering.
//!
//! The classes of a set are the distinct labels of its samples, sorted; if all of them are whole numbers,
//! by value, so that labels which are 0, 1, 2, … already stay what they are. A set that is measured or
//! validated with takes the numbering of the training set: names are what both have in common.

use crate::DataError;
use crate::convert::MOST_CLASSES;
use std::collections::HashMap;

/// Numbers classes in the order in which they turn up.
#[derive(Debug, Default)]
pub(crate) struct ClassTable {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl ClassTable {
    /// How many classes there are so far.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The number of `class`, a new one if it is new. `path` says where a sample of it lies.
    pub(crate) fn label(
        &mut self,
        class: &str,
        path: &dyn Fn() -> String,
    ) -> Result<u32, DataError> {
        if let Some(&number) = self.numbers.get(class) {
            return Ok(number);
        }
        let number = self.names.len() as u32;
        if number == MOST_CLASSES {
            return Err(DataError::TooManyClasses {
                path: path(),
                class: class.to_owned(),
                most: MOST_CLASSES,
            });
        }
        self.names.push(class.to_owned());
        self.numbers.insert(class.to_owned(), number);
        Ok(number)
    }

    /// Whether the names are whole numbers that begin with 0 or 1 and leave none out, as numbers of classes do.
    pub(crate) fn are_consecutive(&self) -> bool {
        let whole: Option<Vec<i128>> = self.names.iter().map(|name| name.parse().ok()).collect();
        let ends = whole.and_then(|all| Some((*all.iter().min()?, *all.iter().max()?)));
        ends.is_some_and(|(least, most)| {
            (0..=1).contains(&least) && most - least + 1 == self.names.len() as i128
        })
    }

    /// The names in their order, and for each number that was given the place of its class in it.
    pub(crate) fn sorted(self) -> (Vec<String>, Vec<u32>) {
        let whole: Option<Vec<i128>> = self.names.iter().map(|name| name.parse().ok()).collect();
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        match whole {
            Some(values) => order.sort_by_key(|&i| (values[i], &self.names[i])),
            None => order.sort_by_key(|&i| &self.names[i]),
        }
        let mut places = vec![0; order.len()];
        for (place, &number) in order.iter().enumerate() {
            places[number] = place as u32;
        }
        let mut names: Vec<_> = self.names.into_iter().map(Some).collect();
        let names = order.iter().filter_map(|&i| names[i].take()).collect();
        (names, places)
    }
}

/// What is done with samples of classes that the training set does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnseenClasses {
    /// The set is refused, by the names of the classes.
    Refuse,
    /// They are listed by [`Dataset::unseen`](crate::Dataset::unseen). Their labels are at and above
    /// [`Dataset::classes`](crate::Dataset::classes), in the order of that list: no model can predict them.
    List,
}

/// A class of a set that the training set does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenClass {
    /// Its name.
    pub name: String,
    /// How many samples have it, at least 1.
    pub samples: usize,
    /// The first of them.
    pub first: usize,
}

/// The labels of a set in another set's numbering.
#[derive(Debug)]
pub(crate) struct Renumbered {
    /// The new labels; `None` if they are what they were.
    pub(crate) labels: Option<Vec<u32>>,
    pub(crate) unseen: Vec<UnseenClass>,
}

/// Numbers the samples of a set with the classes `own` as `classes` does; what is not among these
/// follows after them, in the order of `own`.
pub(crate) fn renumber(own: &[String], labels: &[u32], classes: &[String]) -> Renumbered {
    if own == classes {
        return Renumbered {
            labels: None,
            unseen: Vec::new(),
        };
    }
    let known: HashMap<&str, u32> = classes.iter().map(String::as_str).zip(0..).collect();
    let mut unseen = Vec::new();
    let numbers: Vec<u32> = own
        .iter()
        .map(|name| {
            known.get(name.as_str()).copied().unwrap_or_else(|| {
                unseen.push(UnseenClass {
                    name: name.clone(),
                    samples: 0,
                    first: 0,
                });
                (classes.len() + unseen.len() - 1) as u32
            })
        })
        .collect();
    let labels: Vec<u32> = labels
        .iter()
        .map(|&label| numbers[label as usize])
        .collect();
    for (sample, &label) in labels.iter().enumerate() {
        let class = (label as usize).checked_sub(classes.len());
        if let Some(class) = class.map(|class| &mut unseen[class]) {
            if class.samples == 0 {
                class.first = sample;
            }
            class.samples += 1;
        }
    }
    Renumbered {
        labels: Some(labels),
        unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(names: &[&str]) -> (Vec<String>, Vec<u32>) {
        let mut table = ClassTable::default();
        for name in names {
            table.label(name, &String::new).unwrap();
        }
        table.sorted()
    }

    #[test]
    fn classes_are_sorted_by_name_or_by_value_if_all_are_numbers() {
        assert_eq!(
            sorted(&["pug", "10", "husky", "pug"]),
            (
                ["10", "husky", "pug"].map(String::from).into(),
                vec![2, 0, 1]
            )
        );
        assert_eq!(
            sorted(&["10", "-1", "2", "0"]).0,
            ["-1", "0", "2", "10"].map(String::from)
        );
    }

    #[test]
    fn a_label_column_that_is_no_label_column_is_refused() {
        let mut table = ClassTable::default();
        for class in 0..MOST_CLASSES {
            table.label(&class.to_string(), &String::new).unwrap();
        }
        table.label("7", &String::new).unwrap();
        let error = table.label("x", &|| "a.parquet".into()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("a.parquet") && text.contains("65536"),
            "{text}"
        );
    }

    #[test]
    fn unseen_classes_follow_after_the_known_ones_and_are_counted() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.into())
                .collect::<Vec<String>>()
        };
        let own = names(&["ape", "bee", "cat"]);
        let Renumbered { labels, unseen } = renumber(&own, &[2, 0, 1, 0], &names(&["bee", "dog"]));
        assert_eq!(labels.unwrap(), [3, 2, 0, 2]);
        let ape = UnseenClass {
            name: "ape".into(),
            samples: 2,
            first: 1,
        };
        let cat = UnseenClass {
            name: "cat".into(),
            samples: 1,
            first: 0,
        };
        assert_eq!(unseen, [ape, cat]);
        assert!(renumber(&own, &[0, 1, 2], &own).labels.is_none());
    }

    proptest! {
        #[test]
        fn a_name_keeps_its_samples_whatever_the_numbering(
            classes in prop::collection::vec("[a-c0-2]{1,2}", 1..40),
        ) {
            let mut table = ClassTable::default();
            let labels: Vec<u32> = classes.iter().map(|class| table.label(class, &String::new).unwrap()).collect();
            let (names, places) = table.sorted();
            for (class, label) in classes.iter().zip(labels) {
                prop_assert_eq!(class, &names[places[label as usize] as usize]);
            }
            let mut distinct = names.clone();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), names.len());
        }
    }
}
