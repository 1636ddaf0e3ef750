//! Folders of pictures: which files are looked at, and how many may turn out unreadable.

use std::collections::HashSet;
use std::path::Path;
use std::{fs, io};

/// How the names of pictures end, in lower case. The last of them are of formats that are not read: such a file is said
/// to be unreadable, by its name and with the reason, instead of being passed over.
const ENDINGS: [&str; 13] = [
    "jpg", "jpeg", "jfif", "png", "webp", "bmp", "gif", "tif", "tiff", "heic", "heif", "avif",
    "jxl",
];

/// Whether a path is that of a picture: neither it nor a folder on the way is hidden, and its ending is
/// one of a picture's.
pub fn names_a_picture(path: &str) -> bool {
    let known = ending(path).is_some_and(|ending| {
        let ending = ending.to_ascii_lowercase();
        ENDINGS.contains(&ending.as_str())
    });
    known && !is_hidden(path)
}

/// Whether a file of a folder of pictures is looked at: its name is that of a picture, or has no ending, so that only its
/// content says what it is. Where pictures lie in folders of `classes`, a file beside these folders that has no ending is
/// more likely a text about them.
pub fn is_looked_at(path: &str, classes: bool) -> bool {
    let may_be_one = !has_ending(path) && !is_hidden(path);
    names_a_picture(path) || (may_be_one && (path.contains('/') || !classes))
}

/// Whether the name of a file has an ending. If not, only its content says what it is.
pub fn has_ending(path: &str) -> bool {
    ending(path).is_some()
}

/// Whether the file, or a folder on the way to it, is hidden.
pub fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.'))
}

/// What stands after the last dot of a file's name.
fn ending(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    Some(name.rsplit_once('.')?.1)
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
            ("a/old.jfif", true),
            ("a.b/jpg", false),
            ("jpg", false),
        ] {
            assert_eq!(names_a_picture(path), is, "{path}");
        }
    }

    #[test]
    fn a_file_without_an_ending_is_looked_at_unless_it_lies_beside_the_folders_of_classes() {
        for (path, in_classes, without) in [
            ("husky/0017", true, true),
            ("a.b/0017", true, true),
            ("README", false, true),
            ("husky/notes.txt", false, false),
            ("husky/.DS_Store", false, false),
            (".cache/0017", false, false),
            ("1.jpg", true, true),
        ] {
            let both = [true, false].map(|classes| is_looked_at(path, classes));
            assert_eq!(both, [in_classes, without], "{path}");
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
