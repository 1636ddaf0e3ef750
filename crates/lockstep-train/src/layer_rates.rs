//! `train.freeze` and `train.rates`: how fast layers learn, by the names that their tensors have in the model.

use crate::TrainError;
use lockstep_base::nearest::nearest;
use lockstep_nn::{LayerRates, Layout, stands_for};
use lockstep_resolve::LearningSettings;

/// Names that are listed where none is near.
const LISTED: usize = 12;

/// How fast the job's layers learn.
pub(crate) fn of(learner: &LearningSettings) -> LayerRates {
    let frozen = learner.freeze.iter().map(|name| (name.clone(), 0.0));
    let slowed = learner.rates.iter();
    let slowed = slowed.map(|(name, &part)| (name.clone(), part as f32));
    LayerRates::new(frozen.chain(slowed))
}

/// Checks that every name stands for a layer, that none is said twice, and that something is left to learn.
pub(crate) fn check(learner: &LearningSettings, layout: &Layout) -> Result<(), TrainError> {
    let frozen = learner.freeze.iter().map(|name| ("train.freeze", name));
    let slowed = learner.rates.keys().map(|name| ("train.rates", name));
    let tensors = || layout.tensors.iter().map(|tensor| tensor.name.as_str());
    for (key, name) in frozen.chain(slowed) {
        let named = |tensor: &str| tensor != name && stands_for(name, tensor);
        if !tensors().any(named) {
            return Err(TrainError::misfit(key, strange(name, tensors().collect())));
        }
    }
    for name in learner.rates.keys() {
        if let Some(frozen) = learner
            .freeze
            .iter()
            .find(|&frozen| stands_for(frozen, name))
        {
            return Err(TrainError::misfit(
                "train.rates",
                format!(
                    "`{name}` has a rate, and train.freeze has `{frozen}`: a layer that is frozen has none"
                ),
            ));
        }
    }
    let learns = (layout.chunks.iter().zip(&layout.rates))
        .any(|(chunk, &rate)| chunk.start < layout.parameters && rate != 0.0);
    match learns {
        true => Ok(()),
        false => Err(TrainError::misfit(
            "train.freeze",
            "all layers are frozen, and nothing is left to train; leave out the last one at least",
        )),
    }
}

/// What is said of a model with frozen layers.
pub(crate) fn note(layout: &Layout) -> Option<String> {
    let chunks = layout.chunks.iter().zip(&layout.rates);
    let frozen = chunks.filter(|(chunk, rate)| chunk.start < layout.parameters && **rate == 0.0);
    let frozen: usize = frozen.map(|(chunk, _)| chunk.len()).sum();
    let all = layout.parameters;
    (frozen > 0).then(|| format!("{frozen} of {all} parameters are frozen"))
}

/// What is said of a name that stands for no layer.
fn strange(name: &str, tensors: Vec<&str>) -> String {
    let layer_of = |tensor: &str| tensor.rsplit_once('.').map(|(layer, _)| layer.to_owned());
    if tensors.contains(&name) {
        let layer = layer_of(name).unwrap_or_default();
        return format!("`{name}` is one tensor, and layers learn as a whole; use `{layer}`");
    }
    // Every layer, and everything that layers are parts of, in the order of the model.
    let mut names: Vec<&str> = Vec::new();
    for tensor in &tensors {
        for (end, _) in tensor.match_indices('.') {
            if !names.contains(&&tensor[..end]) {
                names.push(&tensor[..end]);
            }
        }
    }
    if let Some(near) = nearest(name, &names) {
        return format!("the model has no layer `{name}`; did you mean `{near}`?");
    }
    // The outermost names, unless all layers are parts of one.
    let depth = |depth: usize| {
        let dots = |name: &&&str| name.matches('.').count() == depth;
        names.iter().filter(dots).copied().collect::<Vec<&str>>()
    };
    let listed = match depth(0) {
        outermost if outermost.len() > 1 => outermost,
        _ => depth(1),
    };
    let more = if listed.len() > LISTED { ", …" } else { "" };
    let listed: Vec<&str> = listed.into_iter().take(LISTED).collect();
    format!(
        "the model has no layer `{name}`; its layers are {}{more}",
        listed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strange_name_gets_the_nearest_or_all() {
        let tensors = [
            "conv1.weight",
            "bn1.weight",
            "layer1.0.conv1.weight",
            "fc.weight",
        ];
        let said = |name| strange(name, tensors.to_vec());
        assert_eq!(
            said("convl"),
            "the model has no layer `convl`; did you mean `conv1`?"
        );
        assert_eq!(
            said("backbone"),
            "the model has no layer `backbone`; its layers are conv1, bn1, layer1, fc"
        );
        assert_eq!(
            said("fc.weight"),
            "`fc.weight` is one tensor, and layers learn as a whole; use `fc`"
        );
        let stack = vec!["layers.0.weight", "layers.2.weight"];
        assert!(strange("head", stack).ends_with("its layers are layers.0, layers.2"));
    }
}
