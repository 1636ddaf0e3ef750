//! One tree of a model: its nodes lead to each other, to columns and to categories that there are.

use super::ubj::Ubj;
use super::{Parts, number, numbers, object, part};

/// What stands for no child.
const NO_CHILD: i64 = -1;
/// What stands for no parent.
const NO_PARENT: i64 = i32::MAX as i64;
/// What stands for the column of a node that was removed, as it is read from 32 bits.
const REMOVED: i64 = -1;
/// XGBoost knows no larger category.
const MOST_CATEGORIES: i64 = 1 << 24;
/// XGBoost goes down a tree by recursion.
const DEEPEST: usize = 4096;

/// Checks a tree that is to have this number, of a model with so many columns.
pub(super) fn check(tree: &Parts, id: usize, columns: i64) -> Result<(), String> {
    match part(tree, "id")? {
        Ubj::Number(said) if *said == id as i64 => {}
        _ => return Err("`id` is not its number".to_owned()),
    }
    let parameters = object(tree, "tree_param")?;
    if number(parameters, "num_feature")? != columns {
        return Err("it is for another number of columns".to_owned());
    }
    if number(parameters, "size_leaf_vector")? > 1 {
        return Err("its leaves are vectors, which no run writes".to_owned());
    }
    let count = number(parameters, "num_nodes")?;
    let of_nodes = |name: &str| {
        let list = numbers(tree, name)?;
        match list.len() as i64 == count {
            true => Ok(list),
            false => Err(format!(
                "`{name}` has {} entries for {count} nodes",
                list.len()
            )),
        }
    };
    for name in [
        "split_conditions",
        "base_weights",
        "loss_changes",
        "sum_hessian",
    ] {
        match part(tree, name)? {
            Ubj::Floats(found) if *found as i64 == count => {}
            _ => return Err(format!("`{name}` is no list of {count} numbers")),
        }
    }
    let nodes = Nodes {
        left: of_nodes("left_children")?,
        right: of_nodes("right_children")?,
        parents: of_nodes("parents")?,
        columns: of_nodes("split_indices")?,
        kinds: of_nodes("split_type")?,
    };
    let switches = nodes.kinds.iter().chain(of_nodes("default_left")?);
    if count == 0 || switches.into_iter().any(|value| !(0..=1).contains(value)) {
        return Err("it has no nodes, or a switch that is neither 0 nor 1".to_owned());
    }
    nodes.check(columns)?;
    let removed = nodes.columns.iter().filter(|&&column| column == REMOVED);
    if number(parameters, "num_deleted")? != removed.count() as i64 {
        return Err("`num_deleted` is not the number of removed nodes".to_owned());
    }
    check_categories(tree, &nodes)
}

/// The nodes of a tree, column by column.
struct Nodes<'t> {
    left: &'t [i64],
    right: &'t [i64],
    parents: &'t [i64],
    columns: &'t [i64],
    kinds: &'t [i64],
}

impl Nodes<'_> {
    /// From the root each node is reached at most once, by its parent; all that is said of a node exists.
    fn check(&self, columns: i64) -> Result<(), String> {
        let count = self.left.len();
        let is_node = |node: i64| (0..count as i64).contains(&node);
        for node in 0..count {
            let (left, right) = (self.left[node], self.right[node]);
            let is_leaf = left == NO_CHILD && right == NO_CHILD;
            let has_two = is_node(left) && is_node(right) && left != right;
            if !is_leaf && !has_two {
                return Err(format!(
                    "node {node} has the children {left} and {right} of {count} nodes"
                ));
            }
            let parent = self.parents[node];
            if parent != NO_PARENT && !is_node(parent) {
                return Err(format!(
                    "node {node} has the parent {parent} of {count} nodes"
                ));
            }
            let column = self.columns[node];
            let is_column = (0..columns).contains(&column);
            // A leaf has no column: zero stands there, also in a model without columns.
            let fits = is_column || is_leaf && (column == 0 || column == REMOVED);
            if !fits {
                return Err(format!(
                    "node {node} splits by column {column} of {columns}"
                ));
            }
        }
        if self.parents[0] != NO_PARENT || self.columns[0] == REMOVED {
            return Err("node 0 is not the root".to_owned());
        }
        let mut reached = vec![false; count];
        let mut waiting = vec![(0, 0)];
        while let Some((node, depth)) = waiting.pop() {
            if std::mem::replace(&mut reached[node], true) || depth > DEEPEST {
                return Err(format!(
                    "node {node} is reached twice, or is more than {DEEPEST} deep"
                ));
            }
            for child in [self.left[node], self.right[node]] {
                if child == NO_CHILD {
                    continue;
                }
                let child = child as usize;
                if self.parents[child] != node as i64 || self.columns[child] == REMOVED {
                    return Err(format!(
                        "node {child} is a child of {node}, and does not say so"
                    ));
                }
                waiting.push((child, depth + 1));
            }
        }
        Ok(())
    }
}

/// The nodes that split by categories, and no others, have some, which lie where they say.
fn check_categories(tree: &Parts, nodes: &Nodes<'_>) -> Result<(), String> {
    let categories = numbers(tree, "categories")?;
    let of = numbers(tree, "categories_nodes")?;
    let starts = numbers(tree, "categories_segments")?;
    let sizes = numbers(tree, "categories_sizes")?;
    if starts.len() != of.len() || sizes.len() != of.len() {
        return Err("its lists of categories are not equally long".to_owned());
    }
    let kinds = nodes.kinds.iter().enumerate();
    let split = kinds
        .filter(|(_, kind)| **kind == 1)
        .map(|(node, _)| node as i64);
    if !split.eq(of.iter().copied()) {
        return Err("other nodes have categories than those that split by them".to_owned());
    }
    if let Some(wrong) = categories
        .iter()
        .find(|&&one| !(0..MOST_CATEGORIES).contains(&one))
    {
        return Err(format!("it has a category {wrong}"));
    }
    for ((node, &start), &size) in of.iter().zip(starts).zip(sizes) {
        let end = start.checked_add(size);
        let fits = start >= 0 && size > 0 && end.is_some_and(|end| end <= categories.len() as i64);
        if !fits {
            let count = categories.len();
            return Err(format!(
                "the categories of node {node} are {size} from {start} on, of {count}"
            ));
        }
    }
    Ok(())
}
