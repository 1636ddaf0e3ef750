//! Folders of pictures: which files are looked at, and how many may turn out unreadable.

use std::collections::HashSet;
use std::path::Path;
use std::{fs, io};

/// How the names of pictures end, in lower case. The last of them are of formats that are not read: such a file is said
/// to be unreadable, by its name and with the reason, instead of being passed over.
const ENDINGS: [&str; 12] = [
    "jpg", "jpeg", "png", "webp", "bmp", "gif", "tif", "tiff", "heic", "heif", "avif", "jxl",
];

/// Whether a path is that of a picture: neither it nor a folder on the way is hidden, and its ending is
/// one of a picture's.
pub fn names_a_picture(path: &str) -> bool {
    let ending = path
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase());
    let known = ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()));
    known && !path.split('/').any(|part| part.starts_with('.'))
}

/// A folder of a class that has no picture in it: one in `folder` that none of `paths`, which are below it, leads
/// through. Of several, the first by name.
///
/// # Errors
/// When the folder cannot be listed.
pub fn empty_class<'a>(
    folder: &Path,
    paths: impl Iterator<Item = &'a str>,
) -> io::Result<Option<String>> {
    let classes: HashSet<&str> = paths
        .filter_map(|path| Some(path.split_once('/')?.0))
        .collect();
    let mut found: Option<String> = None;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_first = found.as_ref().is_none_or(|found| name < *found);
        if is_first
            && !name.starts_with('.')
            && !classes.contains(name.as_str())
            && entry.path().is_dir()
        {
            found = Some(name);
        }
    }
    Ok(found)
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
            ("a/anim.gif", true),
            ("a/scan.TIFF", true),
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
