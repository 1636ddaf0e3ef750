//! Curves and bars as plain SVG, and pages that hold them.
//!
//! A picture stands for itself, on light ground and on dark. A page needs nothing else: no script, no font, no
//! picture from elsewhere. What users called their things is [`escaped`], so that none of it becomes markup.

mod bars;
mod curves;
mod page;

pub use bars::{Bar, bars, titled_bars};
pub use curves::{Curve, Picture, single, stacked};
pub use lockstep_base::markup::escaped;
pub use page::{mark, page, table};

/// The colours of curves, which come again after the last; seen on light ground and on dark.
pub const COLOURS: [&str; 8] = [
    "#2f7ed8", "#e8710a", "#1a9850", "#d6306a", "#8662d6", "#1a9ba1", "#a98300", "#7a7f87",
];

/// The colour of the curve of this number.
pub fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// What makes a text a title.
pub(crate) const TITLE: &str = "class=\"t\"";

/// What a picture looks like; a page that holds it has the same.
pub(crate) const STYLE: &str = "svg text{font:12px system-ui,sans-serif;fill:#1f2328}\
svg .t{font-weight:600;font-size:14px}svg .g{stroke:#d0d7de;stroke-width:1}svg .c{fill:none;stroke-width:1.6}\
svg .d{stroke-dasharray:5 4}\
@media(prefers-color-scheme:dark){svg text{fill:#e6edf3}svg .g{stroke:#3d444d}}";
