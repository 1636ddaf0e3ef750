//! Folders of pictures: which files are looked at, and how many may turn out unreadable.

/// How the names of pictures end, in lower case.
const ENDINGS: [&str; 5] = ["jpg", "jpeg", "png", "webp", "bmp"];

/// Whether a path is that of a picture: neither it nor a folder on the way is hidden, and its ending is
/// one of those that are read.
pub fn names_a_picture(path: &str) -> bool {
    let ending = path
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    let known = ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()));
    known && !path.split('/').any(|part| part.starts_with('.'))
}

/// How many of `total` pictures a share stands for.
pub fn tolerated(share: f64, total: usize) -> usize {
    // 29 of 100 are allowed by 0.29, whose product with 100 is a little less.
    (share * total as f64 + 1e-6) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_not_hidden_ones_are_pictures() {
        for (path, is) in [
            ("husky/1.JPG", true),
            ("a/b/c.webp", true),
            ("a/.hidden.png", false),
            (".git/a.png", false),
            ("a/notes.txt", false),
            ("jpg", false),
        ] {
            assert_eq!(names_a_picture(path), is, "{path}");
        }
    }

    #[test]
    fn a_share_that_has_no_exact_float_is_not_short_of_one() {
        assert_eq!(
            [tolerated(0.29, 100), tolerated(0.0, 9), tolerated(1.0, 9)],
            [29, 0, 9]
        );
    }
}
