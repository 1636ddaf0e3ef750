//! Writes the few shapes of SVG that pictures and charts need. All text is escaped.

use lockstep_base::markup::escaped;
use std::fmt::Write;

/// Which part of a text lies at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
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
pub(crate) struct Canvas {
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
    /// A file with these attributes beside its size.
    pub(crate) fn file(width: f64, height: f64, attributes: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\"{attributes}>\n"
        );
        Self { text }
    }

    /// A part of a page that says how its text and lines look.
    pub(crate) fn part(width: f64, height: f64, label: &str) -> Self {
        let label = escaped(label);
        let text =
            format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\n");
        Self { text }
    }

    /// What the picture shows, for those who cannot see it.
    pub(crate) fn describe(&mut self, title: &str, description: &str) {
        let (title, description) = (escaped(title), escaped(description));
        self.push(format_args!(
            "<title>{title}</title>\n<desc>{description}</desc>\n\
             <style>text {{ pointer-events: none }}</style>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        ));
    }

    /// A filled rectangle that says something when pointed at.
    pub(crate) fn rect(
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
    pub(crate) fn text(
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
    pub(crate) fn turned(
        &mut self,
        (x, y): (f64, f64),
        degrees: f64,
        size: f64,
        fill: &str,
        anchor: Anchor,
        text: &str,
    ) {
        let anchor = anchor.word();
        let [size, degrees] = [size, degrees].map(short);
        let turn = match degrees.as_str() {
            "0" => String::new(),
            degrees => format!(" transform=\"rotate({degrees} {} {})\"", short(x), short(y)),
        };
        let looks = format!("font-size=\"{size}\" fill=\"{fill}\" text-anchor=\"{anchor}\"{turn}");
        self.words((x, y), &looks, text);
    }

    /// A line of text that looks as the file or its page says.
    pub(crate) fn label(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.words(at, &format!("text-anchor=\"{}\"", anchor.word()), text);
    }

    /// A line of text with these attributes beside its place.
    pub(crate) fn words(&mut self, (x, y): (f64, f64), attributes: &str, text: &str) {
        let [x, y] = [x, y].map(short);
        let text = escaped(text);
        self.push(format_args!(
            "<text x=\"{x}\" y=\"{y}\" {attributes}>{text}</text>\n"
        ));
    }

    /// Thin lines between `cells` x `cells` squares.
    pub(crate) fn grid(&mut self, (x, y): (f64, f64), cell: f64, cells: usize) {
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
    pub(crate) fn frame(&mut self, (x, y): (f64, f64), side: f64) {
        let [x, y, side] = [x, y, side].map(short);
        self.push(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill=\"none\" \
             stroke=\"#cbd2d9\"/>\n"
        ));
    }

    /// The whole file.
    pub(crate) fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }

    /// Any other shape.
    pub(crate) fn push(&mut self, piece: std::fmt::Arguments<'_>) {
        self.text.write_fmt(piece).expect("a string takes any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [1.0, 0.5, -0.001, 12.345].map(short),
            ["1", "0.5", "0", "12.35"]
        );
    }
}
