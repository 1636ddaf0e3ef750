//! What a folder of photos holds, in words and as JSON.

use crate::view::{bytes, lines_of, plural};
use lockstep_data::PictureSurvey;
use serde_json::json;

/// The most files that are named one by one.
const NAMED: usize = 10;

pub(super) fn in_words(folder: &str, survey: &PictureSurvey) -> String {
    let mut text = format!(
        "{folder}: {} in {}\n",
        plural(survey.pictures(), "picture"),
        bytes(survey.bytes)
    );
    let rows: Vec<Vec<String>> = (survey.classes.iter())
        .map(|class| {
            let name = match class.name.as_str() {
                "" => "(in no folder)",
                name => name,
            };
            let bad = match class.bad {
                0 => String::new(),
                bad => bad.to_string(),
            };
            vec![name.to_owned(), class.pictures.to_string(), bad]
        })
        .collect();
    text += &lines_of(&["class", ">pictures", ">cannot be read"], &rows);
    if let (Some([least, most]), Some(side)) = (survey.sizes, survey.shorter_side) {
        let formats: Vec<String> = (survey.formats.iter())
            .map(|(format, count)| format!("{count} {format}"))
            .collect();
        text += &format!(
            "{}; {} x {} to {} x {} pixels, half of them with a shorter side of at least {side}\n",
            formats.join(", "),
            least.0,
            least.1,
            most.0,
            most.1
        );
    }
    for file in survey.bad.iter().take(NAMED) {
        text += &format!("{} cannot be read: {}\n", file.path, file.reason);
    }
    if survey.bad.len() > NAMED {
        let more = survey.bad.len() - NAMED;
        text += &format!(
            "{} cannot be read; --json lists all\n",
            plural(more, "more file")
        );
    }
    if survey.classes.iter().any(|class| class.name.is_empty()) {
        text +=
            "to train on them, pictures must lie in folders that are named after their classes\n";
    }
    text
}

pub(super) fn in_json(folder: &str, survey: &PictureSurvey) -> String {
    let mut object = json!(survey);
    object["source"] = json!(folder);
    object["samples"] = json!(survey.pictures());
    format!("{object}\n")
}
