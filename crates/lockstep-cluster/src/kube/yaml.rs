//! Manifests as YAML that people read: `name` first among the keys of a table and the others in alphabetical order.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// Several documents in one text.
pub fn documents<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let texts: Vec<String> = values.into_iter().map(yaml).collect();
    texts.join("---\n")
}

/// One value as a YAML document.
fn yaml(value: &Value) -> String {
    // Texts with line ends become blocks; a long line stays one line, since it is a command.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    // What has only texts as keys can always be written.
    serde_saphyr::to_string_with_options(&NameFirst(value), options).unwrap_or_default()
}

/// A value whose tables begin with the key `name`.
struct NameFirst<'v>(&'v Value);

impl Serialize for NameFirst<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => {
                let (names, others): (Vec<_>, Vec<_>) =
                    map.iter().partition(|(key, _)| *key == "name");
                let mut table = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in names.into_iter().chain(others) {
                    table.serialize_entry(key, &NameFirst(value))?;
                }
                table.end()
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(NameFirst)),
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_reads_back_as_itself() {
        let value = json!({
            "apiVersion": "v1", "empty": {}, "none": [], "list": ["a", 1, true, null, {"x": 1, "y": ["z"]}, [1, [2]]],
            "tricky": ["true", "1.5", "", "- a", "a: b", "#c", "a #b", "on", "0x1F", "~", "é", "a\"b", "\t"],
            "text": "one\n  two\n\nthree\n", "no end": "one\ntwo", "more": "one\n\n", "blank": " one\ntwo\n",
            "deep": {"er": {"text": "a\nb\n"}}, "key with: colon": "C:\\x", "1": 2.5, "long": "word ".repeat(100),
        });
        let text = yaml(&value);
        let again: Value = serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(again, value, "{text}");
    }

    #[test]
    fn lists_and_texts_look_as_people_write_them() {
        let value =
            json!({"args": ["a", {"a": 1, "name": "b"}], "file": "x = 1\ny = 2\n", "quoted": "on"});
        let wanted = "args:\n- a\n- name: b\n  a: 1\nfile: |\n  x = 1\n  y = 2\nquoted: \"on\"\n";
        assert_eq!(yaml(&value), wanted);
    }
}
