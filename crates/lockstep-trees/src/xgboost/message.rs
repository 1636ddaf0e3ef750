//! The sentence in what XGBoost says when a call failed.

/// The first line that says something, without the time, the file and the stack trace around it.
pub(crate) fn sentence(said: &str) -> String {
    let said = said.split("Stack trace").next().unwrap_or(said);
    let mut lines = said
        .lines()
        .map(without_place)
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("it failed without a word");
    // A failed check says only the condition on its first line; the reason follows.
    let rest: Vec<&str> = lines.take(2).collect();
    match rest.is_empty() {
        true => first.to_owned(),
        false => format!("{first} {}", rest.join(" ")),
    }
}

/// `[12:30:11] /ws/src/data/array.h:103: Check failed` becomes `Check failed`.
fn without_place(line: &str) -> &str {
    let line = line.trim();
    let timed = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "));
    let line = timed.map_or(line, |(_, rest)| rest);
    let mut parts = line.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(number), Some(rest))
            if file.contains('/') && number.chars().all(|c| c.is_ascii_digit()) =>
        {
            rest.trim()
        }
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn a_message_is_the_sentence_without_its_place_and_trace() {
        let said = "[12:30:11] /ws/src/learner.cc:740: Check failed: a == b: The number of columns differs.\nStack \
                    trace:\n  [bt] (0) libxgboost.so(+0x2)";
        assert_eq!(
            sentence(said),
            "Check failed: a == b: The number of columns differs."
        );
        assert_eq!(sentence("Unknown objective"), "Unknown objective");
        assert_eq!(sentence(""), "it failed without a word");
    }
}
