//! The names of columns inside a model's file, where other programs look for them.
//!
//! They are put in when the file is written, and are none of what is hashed: trees are the same trees whatever their
//! columns are called, and runs from before have none.

/// What comes before the names: their key, and the marks of a list. Its length follows.
const KEY: &[u8] = b"L\0\0\0\0\0\0\0\x0dfeature_names[#L";
/// Bytes of a length.
const LENGTH: usize = 8;

/// The model with these names of its columns. It stays as it is if there are none, if XGBoost would not take one of them in
/// a table, or if the file is not as XGBoost writes it.
pub(crate) fn with_names(model: &[u8], names: &[String]) -> Vec<u8> {
    let is_taken = |name: &String| !name.is_empty() && !name.contains(['[', ']', '<', '\0']);
    let unnamed = place(model).filter(|&at| length(model, at) == Some(0));
    let (Some(at), true) = (unnamed, !names.is_empty() && names.iter().all(is_taken)) else {
        return model.to_vec();
    };
    let mut named = model[..at].to_vec();
    named.extend((names.len() as i64).to_be_bytes());
    for name in names {
        named.extend(b"SL");
        named.extend((name.len() as i64).to_be_bytes());
        named.extend(name.as_bytes());
    }
    named.extend(&model[at + LENGTH..]);
    named
}

/// The model without the names of its columns: what is hashed.
pub fn without_names(model: &[u8]) -> Vec<u8> {
    let unnamed = || {
        let at = place(model)?;
        let mut end = at + LENGTH;
        for _ in 0..length(model, at)? {
            if model.get(end..end + 2)? != b"SL" {
                return None;
            }
            let text = length(model, end + 2)?;
            end = (end + 2 + LENGTH).checked_add(text)?;
        }
        let rest = model.get(end..)?;
        Some([&model[..at], &[0; LENGTH], rest].concat())
    };
    unnamed().unwrap_or_else(|| model.to_vec())
}

/// Where the number of names is, if there is one place for it.
fn place(model: &[u8]) -> Option<usize> {
    let is_key = |(at, bytes): (usize, &[u8])| (bytes == KEY).then_some(at + KEY.len());
    let mut places = model.windows(KEY.len()).enumerate().filter_map(is_key);
    places.next().filter(|_| places.next().is_none())
}

/// A length that is written at this place.
fn length(model: &[u8], at: usize) -> Option<usize> {
    let bytes = model.get(at..at + LENGTH)?;
    usize::try_from(i64::from_be_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unnamed() -> Vec<u8> {
        [&b"{"[..], KEY, &[0; LENGTH], b"L rest}"].concat()
    }

    #[test]
    fn names_go_in_and_out_and_leave_no_trace() {
        let names = ["area", "größe m²"].map(String::from);
        let named = with_names(&unnamed(), &names);
        assert!(named.windows(4).any(|bytes| bytes == b"area"));
        assert_eq!(without_names(&named), unnamed());
        assert_eq!(without_names(&unnamed()), unnamed());
        // Twice makes no difference.
        assert_eq!(with_names(&named, &names), named);
    }

    #[test]
    fn what_xgboost_would_not_take_or_has_not_written_stays_as_it_is() {
        for names in [&["a<b"][..], &["a", ""], &["x[1]"], &[]] {
            let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
            assert_eq!(with_names(&unnamed(), &names), unnamed(), "{names:?}");
        }
        let twice = [unnamed(), unnamed()].concat();
        assert_eq!(with_names(&twice, &["a".to_owned()]), twice);
        let named = with_names(&unnamed(), &["area".to_owned()]);
        for cut in 0..named.len() {
            without_names(&named[..cut]);
        }
    }
}
