//! Writes the few shapes of SVG that a picture needs. All text is escaped.

use std::fmt::Write;

/// Which part of a text lies at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn word(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// An SVG file in the making.
pub(super) struct Canvas {
    text: String,
}

/// A number with as many decimals as anybody sees.
fn short(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

impl Canvas {
    /// A white page.
    pub(super) fn new(width: f64, height: f64) -> Self {
        let mut canvas = Self {
            text: String::new(),
        };
        let (width, height) = (width.ceil(), height.ceil());
        canvas.push(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"Inter, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\">\n"
        ));
        canvas
    }

    /// What the picture shows, for those who cannot see it.
    pub(super) fn describe(&mut self, title: &str, description: &str) {
        let (title, description) = (escaped(title), escaped(description));
        self.push(format_args!(
            "<title>{title}</title>\n<desc>{description}</desc>\n\
             <style>text {{ pointer-events: none }}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        ));
    }

    /// A filled rectangle that says something when pointed at.
    pub(super) fn rect(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        fill: &str,
        story: Option<&str>,
    ) {
        let [x, y, width, height] = [x, y, width, height].map(short);
        let shape = format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\""
        );
        self.push(shape);
        match story {
            Some(story) => self.push(format_args!("><title>{}</title></rect>\n", escaped(story))),
            None => self.push(format_args!("/>\n")),
        }
    }

    /// A line of text.
    pub(super) fn text(
        &mut self,
        at: (f64, f64),
        size: f64,
        fill: &str,
        anchor: Anchor,
        text: &str,
    ) {
        self.turned(at, 0.0, size, fill, anchor, text);
    }

    /// A line of text, turned around its point.
    pub(super) fn turned(
        &mut self,
        (x, y): (f64, f64),
        degrees: f64,
        size: f64,
        fill: &str,
        anchor: Anchor,
        text: &str,
    ) {
        let [x, y, size, degrees] = [x, y, size, degrees].map(short);
        let anchor = anchor.word();
        let text = escaped(text);
        let turn = match degrees.as_str() {
            "0" => String::new(),
            degrees => format!(" transform=\"rotate({degrees} {x} {y})\""),
        };
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\" \
             text-anchor=\"{anchor}\"{turn}>{text}</text>\n"
        ));
    }

    /// Thin lines between `cells` x `cells` squares.
    pub(super) fn grid(&mut self, (x, y): (f64, f64), cell: f64, cells: usize) {
        let side = cell * cells as f64;
        let mut path = String::new();
        for i in 0..=cells {
            let at = i as f64 * cell;
            let [across, down, side] = [x + at, y + at, side].map(short);
            let [x, y] = [x, y].map(short);
            path += &format!("M{across} {y}v{side}M{x} {down}h{side}");
        }
        self.push(format_args!(
            "<path d=\"{path}\" stroke=\"#e4e7eb\" fill=\"none\"/>\n"
        ));
    }

    /// A thin line around a square.
    pub(super) fn frame(&mut self, (x, y): (f64, f64), side: f64) {
        let [x, y, side] = [x, y, side].map(short);
        self.push(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"none\" \
             stroke=\"#cbd2d9\"/>\n"
        ));
    }

    /// The whole file.
    pub(super) fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }

    fn push(&mut self, piece: std::fmt::Arguments<'_>) {
        self.text.write_fmt(piece).expect("a string takes any text");
    }
}

/// Text as XML has it. What XML cannot hold at all is shown as such.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
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
            escaped("<a & \"b\">\u{0}\u{ffff}"),
            "&lt;a &amp; &quot;b&quot;&gt;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [1.0, 0.5, -0.001, 12.345].map(short),
            ["1", "0.5", "0", "12.35"]
        );
    }
}
