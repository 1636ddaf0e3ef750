//! Text in HTML and XML.

/// Text that stands for itself in HTML and XML, also between quotes. What XML cannot hold at all is shown as such.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_text_holds_it_stays_text() {
        assert_eq!(
            escaped("<a href='x'>\"&\u{1b}\u{0}\u{ffff}"),
            "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(
            escaped("\"><script>'&"),
            "&quot;&gt;&lt;script&gt;&#39;&amp;"
        );
    }
}
