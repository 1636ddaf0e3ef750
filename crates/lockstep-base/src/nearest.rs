//! The right word for a misspelt one.

/// The candidate that was probably meant by `word`, if any is near.
pub fn nearest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    let length = word.chars().count();
    let distance = |candidate: &str| {
        let candidate = plain(candidate);
        if length >= 3 && candidate.starts_with(&word) {
            return 1;
        }
        strsim::osa_distance(&word, &candidate)
    };
    candidates
        .iter()
        .map(|candidate| (distance(candidate), *candidate))
        .filter(|(distance, candidate)| {
            // A third of the letters may be wrong: more would be another word.
            *distance <= (length.min(candidate.len()) / 3).max(1)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_finds_the_right_one_and_a_strange_one_none() {
        let keys = ["epochs", "batch", "optimizer", "workers", "clip_norm"];
        assert_eq!(nearest("epoch", &keys), Some("epochs"));
        assert_eq!(nearest("optimiser", &keys), Some("optimizer"));
        assert_eq!(nearest("Clip-Norm", &keys), Some("clip_norm"));
        assert_eq!(nearest("optim", &keys), Some("optimizer"));
        assert_eq!(nearest("btach", &keys), Some("batch"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!(nearest("", &keys), None);
    }
}
