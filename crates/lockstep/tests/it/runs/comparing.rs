//! Runs beside each other: in words, as a picture, as a page.

use super::choosing::{json, ok, trained};
use std::fs;

#[test]
fn what_differs_is_shown_side_by_side_with_curves_that_fit() {
    let (place, names) = trained();
    let [first, second] = [0, 1].map(|run| names[run].as_str());
    let text = ok(&place, &["runs", "compare", first, second]);
    let differing: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("train.optimizer.lr"))
        .collect();
    assert_eq!(differing.len(), 1, "{text}");
    assert!(
        differing[0].contains("0.05") && differing[0].contains("0.01"),
        "{text}"
    );
    assert!(!text.contains("train.optimizer.momentum"), "{text}");
    assert!(text.contains("more are the same"), "{text}");
    assert!(
        text.contains("test.accuracy") && text.contains("test.loss by step"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 110),
        "{text}"
    );
    let both = json(&place, &["runs", "compare", first, second]);
    assert_eq!(both.as_array().unwrap().len(), 2);
    assert!(both[0]["series"]["test.loss"].as_array().unwrap().len() > 1);
    assert_eq!(place.run(&["runs", "compare", first]).code, Some(1));
}

#[test]
fn a_page_needs_nothing_else_and_nothing_in_it_becomes_markup() {
    let (place, names) = trained();
    ok(
        &place,
        &[
            "runs",
            "tag",
            &names[0],
            "--note",
            "<script>alert('x')</script> & \"more\"",
        ],
    );
    let files = ["--html", "page.html", "--svg", "curves.svg"];
    let said = ok(
        &place,
        &[&["runs", "compare", "--where", "job = small"], &files[..]].concat(),
    );
    assert!(
        said.contains("page.html") && said.contains("curves.svg"),
        "{said}"
    );
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    for word in [
        "http://", "https://", "src=", "href=", "@import", "url(", "<script",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"), "{page}");
    assert!(page.contains("prefers-color-scheme:dark"));
    for name in &names {
        assert!(page.contains(name.as_str()), "{name}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    let svg = fs::read_to_string(place.path("curves.svg")).unwrap();
    assert!(
        svg.starts_with("<svg xmlns=") && svg.contains("<polyline"),
        "{svg}"
    );
}
