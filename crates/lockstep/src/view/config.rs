//! The effective configuration, dense enough to stay on the screen: a row a section.

use super::plain::{scale, split_defaults};
use super::table::{Frame, Table};
use console::{measure_text_width, style};
use lockstep_events::event::Started;

/// Space between two items of a row.
const GAP: &str = "   ";

/// The lines of a framed table that says what is about to be trained, at most `width` wide.
/// With `all`, keys that have their defaults are among it.
pub(crate) fn lines(started: &Started, width: usize, all: bool) -> Vec<String> {
    let (said, defaults) = split_defaults(started, all);
    let mut sections: Vec<(String, Vec<String>)> = vec![("run".into(), vec![started.run.clone()])];
    for (key, value) in &said {
        let (section, item) = match key.split_once('.') {
            Some((section, key)) => (section, format!("{} {value}", style(key).dim())),
            None => (key.as_str(), value.clone()),
        };
        match sections.iter_mut().find(|(name, _)| name == section) {
            Some((_, items)) => items.push(item),
            None => sections.push((section.to_owned(), vec![item])),
        }
    }
    sections.extend(defaults.map(|words| (String::new(), vec![style(words).dim().to_string()])));
    sections.push(("plan".into(), scale(started)));

    let names = sections.iter().map(|(name, _)| measure_text_width(name));
    let frame_and_name = names.max().unwrap_or(0) + 7;
    let room = width.saturating_sub(frame_and_name);
    let mut pairs = Vec::new();
    for (name, items) in sections {
        let mut name = style(name).cyan().to_string();
        for line in wrap(&items, room) {
            pairs.push((std::mem::take(&mut name), line));
        }
    }
    Table::for_pairs(&pairs, Frame::Rounded, width).pairs(&pairs)
}

/// Puts items side by side on as few lines as they need. An item is never broken.
fn wrap(items: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line)
                if measure_text_width(line) + GAP.len() + measure_text_width(item) <= width =>
            {
                line.push_str(GAP);
                line.push_str(item);
            }
            _ => lines.push(item.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::tests::started;
    use super::*;

    #[test]
    fn every_key_and_value_is_shown_within_the_width() {
        let mut run = started();
        run.config = (0..40)
            .map(|i| (format!("section{}.key{i}", i % 3), format!("value{i}")))
            .collect();
        for width in [40, 60, 100] {
            let lines = lines(&run, width, false);
            assert!(lines.iter().all(|line| measure_text_width(line) <= width));
            let text = lines.join("\n");
            for i in 0..40 {
                assert!(text.contains(&format!("key{i}")), "{text}");
                assert!(text.contains(&format!("value{i}")), "{text}");
            }
        }
    }

    #[test]
    fn items_fill_a_line_before_they_begin_another() {
        let items = ["aa", "bb", "cc"].map(String::from);
        assert_eq!(wrap(&items, 7), ["aa   bb", "cc"]);
        assert_eq!(wrap(&items, 1), ["aa", "bb", "cc"]);
    }
}
