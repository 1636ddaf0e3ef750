use super::*;

/// Two rounds of three classes, with splits by categories, as XGBoost 3.2 wrote them.
const SAMPLE: &[u8] = include_bytes!("sample.ubj");

/// Where the bytes that follow a name are, of its first occurrence after `from`.
fn after(name: &str, from: usize) -> usize {
    let mut named = vec![b'L'];
    named.extend((name.len() as i64).to_be_bytes());
    named.extend(name.as_bytes());
    let at = SAMPLE[from..]
        .windows(named.len())
        .position(|at| at == named);
    from + at.unwrap_or_else(|| panic!("there is no {name}")) + named.len()
}

/// The sample with other bytes at a place.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = SAMPLE.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    changed
}

/// The sample in whose first tree an entry of a list of 32-bit numbers is another.
fn with_entry(list: &str, entry: usize, value: i32) -> Vec<u8> {
    with(entry_of(list) + 4 * entry, &value.to_be_bytes())
}

/// Where the entries of a list of the first tree that has categories begin.
fn entry_of(list: &str) -> usize {
    // `[$l#L` and a length of eight bytes.
    after(list, after("trees", 0)) + 13
}

#[test]
fn a_model_of_xgboosts_passes() {
    assert_eq!(check_model(SAMPLE), Ok(4));
}

#[test]
fn numbers_that_lead_nowhere_are_refused_with_what_they_are() {
    for (changed, words) in [
        (
            with_entry("left_children", 0, 1_000_000),
            "tree 0: node 0 has the children 1000000",
        ),
        (
            with_entry("left_children", 0, -7),
            "tree 0: node 0 has the children -7",
        ),
        (with_entry("right_children", 0, 0), "node 0"),
        (
            with_entry("left_children", 0, -1),
            "node 0 has the children -1 and 2",
        ),
        (
            with_entry("parents", 1, 77_777),
            "node 1 has the parent 77777",
        ),
        (with_entry("parents", 1, 2), "node 1 is a child of 0"),
        (with_entry("parents", 0, 0), "node 0 is not the root"),
        (with_entry("split_indices", 0, 4), "splits by column 4 of 4"),
        (with_entry("split_indices", 0, -2), "splits by column -2"),
        (with_entry("categories", 0, -1), "a category -1"),
        (
            with_entry("categories_nodes", 0, 99),
            "other nodes have categories",
        ),
        (
            with(entry_of("categories_segments"), &[0x7f; 8]),
            "the categories of node",
        ),
        (
            with(entry_of("categories_sizes"), &[0xff; 8]),
            "the categories of node",
        ),
        (with(entry_of("split_type"), &[9]), "neither 0 nor 1"),
        // `i` and the number.
        (
            with(after("id", after("trees", 0)) + 1, &[1]),
            "`id` is not its number",
        ),
        // `[#L`, eight bytes, and `i` before each number.
        (
            with(after("tree_info", 0) + 12, &[3]),
            "a tree is for output 3 of 3",
        ),
        (
            with(after("iteration_indptr", 0) + 14, &[7]),
            "`iteration_indptr`",
        ),
        // `SL` and eight bytes.
        (
            with(after("num_trees", 0) + 10, b"5"),
            "6 trees, says that there are 5",
        ),
        (
            with(after("num_nodes", 0) + 10, b"1"),
            "no list of 1 numbers",
        ),
        (
            with(after("num_parallel_tree", 0) + 10, b"0"),
            "`num_parallel_tree`",
        ),
        (
            with(after("num_class", 0) + 10, b"x"),
            "`num_class` is \"x\"",
        ),
        (with(after("num_class", 0) + 10, b"2"), "`base_score`"),
        (with(after("name", 0) + 10, b"gbtrex"), "gbtrex"),
    ] {
        let error = check_model(&changed).unwrap_err();
        assert!(error.contains(words), "{error}, and not {words}");
    }
}

#[test]
fn no_change_of_a_byte_is_more_than_an_error() {
    for at in 0..SAMPLE.len() {
        for change in [0x01, 0x80, 0xff] {
            let _ = check_model(&with(at, &[SAMPLE[at] ^ change]));
        }
        let _ = check_model(&SAMPLE[..at]);
    }
}
