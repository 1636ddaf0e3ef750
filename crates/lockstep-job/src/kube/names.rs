//! What Kubernetes takes as a name, as a label and as an image.

use crate::field::Field;

/// Whether it is a name as most objects have it (RFC 1123).
pub(super) fn is_subdomain(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let part = |part: &str| {
        !part.is_empty()
            && part.chars().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(part)
}

fn is_plain(text: &str) -> bool {
    let end = |c: char| c.is_ascii_alphanumeric();
    text.len() <= 63
        && text.starts_with(end)
        && text.ends_with(end)
        && text.chars().all(|c| end(c) || "-_.".contains(c))
}

/// Whether it is a label's key: a name, with a domain before it if need be.
pub(super) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_subdomain(domain) && is_plain(name),
        None => is_plain(text),
    }
}

/// Whether it is a label's value.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_plain(text)
}

/// An image's name. A space or a capital letter in it would only be told by the node that pulls it.
pub(super) fn image(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let (name, rest) = match text.rsplit_once('/') {
        Some((path, last)) => (format!("{path}/"), last),
        None => (String::new(), text),
    };
    let (last, tag) = match rest.find([':', '@']) {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, "latest"),
    };
    let in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./".contains(c);
    // What stands before the first slash is a server if it looks like one.
    let path = match name.split_once('/') {
        Some((server, path)) if server.contains(['.', ':']) || server == "localhost" => path,
        _ => name.as_str(),
    };
    let right = !last.is_empty()
        && last.chars().all(in_name)
        && path.chars().all(in_name)
        && !tag.is_empty()
        && text.chars().all(|c| c.is_ascii_graphic());
    match right {
        true => Some(text.to_owned()),
        false => field.reject(
            format!("cannot be {text:?}"),
            "such as \"registry.example.com/team/lockstep:1.0\"",
        ),
    }
}
