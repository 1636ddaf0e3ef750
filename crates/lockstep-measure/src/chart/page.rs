//! Everything on one page, which needs nothing else: no script, no font, no picture from elsewhere.

use crate::chart::{STYLE, colour, escaped};
use std::fmt::Write;

const PAGE: &str = "
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;background:#fff;color:#1f2328}
h1{font-size:1.4rem;margin:0 0 .2rem}h2{font-size:1.05rem;margin:2rem 0 .5rem}
p{margin:.2rem 0;color:#59636e}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .8rem;border-bottom:1px solid #d0d7de;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
thead th{border-bottom-width:2px}
i{display:inline-block;width:.9em;height:.3em;margin-right:.5em;vertical-align:middle;border-radius:2px}
ul{list-style:none;padding:0}
.warning{border-left:4px solid #e8710a;padding:.2rem .8rem;margin:.4rem 0}
svg{width:100%;height:auto}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}p{color:#9198a1}
th,td{border-color:#3d444d}}
";

/// A page with this title, which is text, and this body, which is HTML.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{}</title>\n<style>{PAGE}{STYLE}</style></head>\n<body>\n{body}</body></html>\n",
        escaped(title)
    )
}

/// A mark in the colour of the curve of this number.
pub fn mark(number: usize) -> String {
    format!("<i style=\"background:{}\"></i>", colour(number))
}

/// A table: what its columns are called, in HTML, and its rows, in text.
pub fn table<'a>(head: &[String], rows: impl IntoIterator<Item = Vec<&'a str>>) -> String {
    let mut text = "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>".to_owned();
    for name in head {
        let _ = write!(text, "<th>{name}</th>");
    }
    text += "</tr></thead><tbody>\n";
    for row in rows {
        text += "<tr>";
        for cell in row {
            let _ = write!(text, "<td>{}</td>", escaped(cell));
        }
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}
