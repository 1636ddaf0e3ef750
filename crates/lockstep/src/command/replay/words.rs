//! What holding two runs against each other came to, for people and for programs.

use crate::view::count;
use lockstep_engine::replay::{ChangedLibrary, ChangedSet, Verdict};
use lockstep_events::Difference;
use lockstep_events::event::UsedLibrary;
use serde_json::{Value, json};

/// Tensors that are named; of more, their number is said.
const NAMED: usize = 4;

/// For people. Where the two are not the same, `libraries` that are others now may be why.
pub(super) fn words(verdict: &Verdict, libraries: &[ChangedLibrary], run: &str) -> String {
    let mut words = of_verdict(verdict, run);
    for ChangedLibrary { before, now } in libraries.iter().filter(|_| !verdict.is_same()) {
        let name = &now.name;
        let file = |library: &UsedLibrary| {
            format!(
                "{} with SHA-256 {}",
                library.version,
                short(&library.sha256)
            )
        };
        words += &format!(
            ". {name} is another now, which may be why: {} then, {} now",
            file(before),
            file(now)
        );
    }
    words
}

fn of_verdict(verdict: &Verdict, run: &str) -> String {
    match verdict {
        Verdict::Same {
            steps,
            whole,
            reports,
            weights,
        } => {
            let mut compared = Vec::new();
            if *steps > 0 {
                let steps = count(*steps as u64);
                compared.push(format!("{steps} steps, {whole} times all weights"));
            }
            if *reports > 0 {
                compared.push(format!("{reports} reports"));
            }
            if let Some(weights) = weights {
                compared.push(format!("weights {}", short(weights)));
            }
            format!("the same as {run}, to the bit: {}", compared.join(", "))
        }
        Verdict::Data(found) => {
            let found: Vec<String> = found.iter().map(changed).collect();
            format!(
                "{run} cannot be trained again as it was: {}",
                found.join("; ")
            )
        }
        Verdict::Parted(Difference { step, tensors }) if tensors.is_empty() => format!(
            "not the same as {run}: the loss of step {} differs, so its batch was another, or the \
             weights of the first layer were",
            count(*step)
        ),
        Verdict::Parted(Difference { step, tensors }) => format!(
            "not the same as {run}: after step {} these differ: {}",
            count(*step),
            names(tensors)
        ),
        Verdict::Reported {
            report,
            values: [then, now],
        } => format!(
            "not the same as {run}: report {report} was {then} then and is {now} now. A script comes to the \
             same only if all that it does is fixed by its seed"
        ),
        Verdict::Weights([then, now]) => format!(
            "not the same as {run}: the weights were {then} then and are {now} now, though no step that was \
             marked differs"
        ),
        Verdict::Torn(step) => format!(
            "{run} is not one with itself: step {} was trained twice, after a failure, and came to something \
             else the second time; this is a bug, or the memory of a machine is bad",
            count(*step)
        ),
    }
}

/// For programs.
pub(super) fn json(verdict: &Verdict, libraries: &[ChangedLibrary], run: &str) -> Value {
    let libraries = libraries.iter();
    let libraries =
        libraries.map(|ChangedLibrary { before, now }| json!({ "then": before, "now": now }));
    let libraries: Vec<Value> = libraries.collect();
    let difference = match verdict {
        Verdict::Same { .. } => Value::Null,
        Verdict::Data(found) => {
            let sets: Vec<String> = found.iter().map(changed).collect();
            json!({ "kind": "data", "sets": sets })
        }
        Verdict::Parted(Difference { step, tensors }) => {
            json!({ "kind": "step", "step": step, "tensors": tensors })
        }
        Verdict::Reported { report, values } => {
            json!({ "kind": "report", "report": report, "values": values })
        }
        Verdict::Weights(hashes) => json!({ "kind": "weights", "weights_sha256": hashes }),
        Verdict::Torn(step) => json!({ "kind": "torn", "step": step }),
    };
    let (steps, weights) = match verdict {
        Verdict::Same { steps, weights, .. } => (*steps, weights.clone()),
        _ => (0, None),
    };
    json!({
        "event": "replayed", "run": run, "same": verdict.is_same(), "steps": steps,
        "weights_sha256": weights, "difference": difference, "libraries": libraries,
    })
}

/// A set that holds other samples, as a sentence.
fn changed(ChangedSet { before, now }: &ChangedSet) -> String {
    let set = &before.set;
    let Some(now) = now else {
        return format!("data.{set} is not there any more");
    };
    format!(
        "data.{set} ({}) holds other samples: {} with SHA-256 {} now, {} with {} then",
        now.name,
        count(now.samples as u64),
        short(&now.sha256),
        count(before.samples as u64),
        short(&before.sha256)
    )
}

/// The beginning of a hash: enough to tell two apart.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// Some names, and how many more there are.
fn names(names: &[String]) -> String {
    let named = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
