//! What travels, and what cannot.

use super::heads::{assert_says, head, ran, run, submission, submit};
use crate::common::Place;
use std::fs;

#[test]
fn a_program_that_the_node_cannot_run_is_named_as_such() {
    let place = Place::new();
    let truth = fs::read("/bin/true").unwrap();
    let with = |name: &str, program: Vec<u8>| {
        let path = place.path(name);
        fs::write(&path, program).unwrap();
        let binary = path.to_str().unwrap();
        ran(&mut submission(&place, head(), binary, &[]))
    };
    let mut foreign = truth.clone();
    let (here, elsewhere) = if cfg!(target_arch = "x86_64") {
        (62, 183)
    } else {
        (183, 62)
    };
    assert_eq!(foreign[0x12], here);
    foreign[0x12] = elsewhere;
    let ran = with("foreign", foreign);
    let words = format!("was to run it has {};", std::env::consts::ARCH);
    assert_says(
        &ran,
        1,
        &["the program that was sent is for", &words, "--binary"],
    );

    let mut newer = truth.clone();
    let name = b"GLIBC_2.34\0";
    let at = truth.windows(name.len()).position(|part| part == name);
    let at = at.expect("true is linked to a glibc of 2021 or later");
    newer[at..at + name.len()].copy_from_slice(b"GLIBC_2.99\0");
    let ran = with("newer", newer);
    assert_says(
        &ran,
        1,
        &[
            "needs glibc 2.99, and the node that was to run it has 2.",
            "--binary",
        ],
    );

    // It runs, and says nothing: that is no success either.
    let ran = with("silent", truth);
    assert_says(&ran, 1, &["without telling a result"]);
    let ran = with("script", b"#!/bin/sh\n".to_vec());
    assert_says(&ran, 1, &["it is not a program"]);
}

#[test]
fn a_package_over_the_limit_is_refused_before_it_is_sent() {
    let place = Place::new();
    let mut noise = vec![0_u8; 101 << 20];
    let mut state = 1_u64;
    for bytes in noise.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.copy_from_slice(&state.to_le_bytes());
    }
    fs::write(place.path("train-images"), noise).unwrap();
    let ran = submit(&place, head(), &["--id", "large"]);
    assert_says(&ran, 1, &["100 MiB", "train-images 101.0 MiB", "s3://"]);
    let gone = run(&place, &["jobs", "status", "large", "--to", head()]);
    assert_says(&gone, 1, &["there is no job `large`"]);
}
