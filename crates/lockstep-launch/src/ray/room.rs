//! What workers ask of a cluster, and why it has no room for them, in words.

use crate::ray::protocol::{Amounts, Node, Waiting};
use lockstep_job::{Placement, Resources};
use std::collections::BTreeMap;

/// How many nodes are described; a large cluster has many alike.
const NODES_SHOWN: usize = 8;

/// What one worker needs, by Ray's names.
pub(crate) fn amounts(resources: &Resources) -> Amounts {
    let memory = resources.memory.map_or(0.0, |memory| memory.0 as f64);
    let all = [
        ("CPU", resources.cpus),
        ("GPU", resources.gpus),
        ("memory", memory),
    ];
    let asked = all.into_iter().filter(|(_, amount)| *amount > 0.0);
    asked
        .map(|(kind, amount)| (kind.to_owned(), amount))
        .collect()
}

/// Ray's name of how workers are placed.
pub(crate) fn strategy(place: Placement) -> &'static str {
    match place {
        Placement::Pack => "PACK",
        Placement::Spread => "SPREAD",
        Placement::StrictSpread => "STRICT_SPREAD",
    }
}

/// What was asked, what each node has, and what is missing.
pub(crate) fn why_not(workers: usize, resources: &Resources, waiting: &Waiting) -> String {
    let Waiting { nodes, free, .. } = waiting;
    let asked = amounts(resources);
    let labels = &resources.labels;
    let apart = match resources.place {
        Placement::StrictSpread => ", each on a node of its own",
        Placement::Pack | Placement::Spread => "",
    };
    let labelled = match labels.is_empty() {
        true => String::new(),
        false => format!(" and the labels {}", label_words(labels)),
    };
    let mut text = format!(
        "asked for {workers} workers with {} each{labelled}{apart}; ",
        amount_words(&asked)
    );
    let fitting = |node: &Node| {
        if !has_labels(node, labels) {
            return 0;
        }
        let each = asked.iter().map(|(kind, amount)| {
            (node.has.get(kind).copied().unwrap_or(0.0) / amount + 1e-9) as usize
        });
        let most = match resources.place {
            Placement::StrictSpread => 1,
            Placement::Pack | Placement::Spread => usize::MAX,
        };
        each.min().unwrap_or(usize::MAX).min(most)
    };
    let told: Vec<String> = nodes
        .iter()
        .take(NODES_SHOWN)
        .map(|node| {
            let labels = match labels.is_empty() {
                true => String::new(),
                false => format!(" and the labels {}", label_words(&node.labels)),
            };
            format!("{} has {}{labels}", node.node, amount_words(&node.has))
        })
        .collect();
    text += &format!("the cluster has {} nodes: {}", nodes.len(), told.join(", "));
    if nodes.len() > NODES_SHOWN {
        text += &format!(" and {} more", nodes.len() - NODES_SHOWN);
    }
    let room = nodes
        .iter()
        .map(fitting)
        .fold(0usize, usize::saturating_add);
    text += &match room < workers {
        true => format!("; even if nobody else used it, it would hold {room} of them"),
        false => format!(
            "; it could hold them, but others use it: {} free on all nodes together",
            amount_words(free)
        ),
    };
    if !waiting.pending.is_empty() {
        text += &format!("; the autoscaler brings {}", waiting.pending.join(", "));
    }
    if !waiting.failures.is_empty() {
        text += &format!("; the autoscaler failed: {}", waiting.failures.join(", "));
    }
    text
}

/// Whether a node has the labels.
fn has_labels(node: &Node, labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .all(|(name, rule)| fulfils(node.labels.get(name).map(String::as_str), rule))
}

/// Whether a label fulfils what Ray reads as a rule: a value, `in(a,b)`, or one of these after a `!`.
fn fulfils(label: Option<&str>, rule: &str) -> bool {
    if let Some(refused) = rule.strip_prefix('!') {
        return !fulfils(label, refused);
    }
    let any = rule
        .strip_prefix("in(")
        .and_then(|rest| rest.strip_suffix(')'));
    match any {
        Some(values) => values.split(',').any(|value| label == Some(value.trim())),
        None => label == Some(rule),
    }
}

fn label_words(labels: &BTreeMap<String, String>) -> String {
    let own = labels
        .iter()
        .filter(|(name, _)| !name.starts_with("ray.io/"));
    let words: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(" "),
    }
}

fn amount_words(amounts: &Amounts) -> String {
    let words = amounts.iter().map(|(kind, amount)| match kind.as_str() {
        "memory" => format!("{:.1} GiB of memory", amount / f64::from(1 << 30)),
        "CPU" => format!("{amount} CPUs"),
        _ => format!("{amount} GPUs"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, cpus: f64, zone: &str) -> Node {
        Node {
            node: name.to_owned(),
            has: [("CPU".to_owned(), cpus)].into(),
            labels: [("zone".to_owned(), zone.to_owned())].into(),
        }
    }

    #[test]
    fn what_is_missing_is_told() {
        let mut waiting = Waiting {
            nodes: vec![node("10.0.0.1", 4.0, "a"), node("10.0.0.2", 2.0, "b")],
            free: Amounts::from([("CPU".to_owned(), 1.0)]),
            pending: Vec::new(),
            failures: Vec::new(),
        };
        let mut asked = Resources {
            cpus: 2.0,
            ..Resources::default()
        };
        let said = why_not(3, &asked, &waiting);
        assert!(said.contains("3 workers with 2 CPUs each"), "{said}");
        assert!(
            said.contains("10.0.0.1 has 4 CPUs, 10.0.0.2 has 2 CPUs"),
            "{said}"
        );
        assert!(said.contains("others use it: 1 CPUs free"), "{said}");
        assert!(!said.contains("autoscaler"), "{said}");
        waiting.pending = vec!["small, 2 launching".to_owned()];
        let said = why_not(3, &asked, &waiting);
        assert!(said.contains("brings small, 2 launching"), "{said}");
        asked.place = Placement::StrictSpread;
        let said = why_not(3, &asked, &waiting);
        assert!(said.contains("it would hold 2 of them"), "{said}");
        asked.labels.insert("zone".to_owned(), "a".to_owned());
        let said = why_not(2, &asked, &waiting);
        assert!(said.contains("the labels zone=a, each on a node"), "{said}");
        assert!(said.contains("it would hold 1 of them"), "{said}");
    }

    #[test]
    fn labels_are_compared_as_ray_does() {
        for (rule, held) in [
            ("a", true),
            ("b", false),
            ("in(b, a)", true),
            ("in(b)", false),
            ("!b", true),
            ("!in(a,b)", false),
        ] {
            assert_eq!(fulfils(Some("a"), rule), held, "{rule}");
        }
        assert!(!fulfils(None, "in(a)") && fulfils(None, "!a"));
    }
}
