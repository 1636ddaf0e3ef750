//! CLIP's image encoder agrees with `transformers`, and its bits hang on nothing but weights and pixels.

use crate::agreement::{clip, clip_agreement, invented, numbers};
use lockstep_base::simd::{ISA_VARIABLE, Isa};
use lockstep_nn::Threads;
use lockstep_nn::encoder::Encoder;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/clip")
        .join(name)
}

#[test]
fn embeddings_agree_with_transformers() {
    for name in ["quick", "half"] {
        let found = clip_agreement(&fixture(name));
        println!("{name}: {found:?}");
        assert!(found.cosine > 0.999_999, "{name}: {found:?}");
        assert!(found.error < 2e-5, "{name}: {found:?}");
    }
}

/// Vectors of pictures that are made up, a few at a time.
fn vectors(mut encoder: Encoder, rows: usize, at_once: usize) -> Vec<u32> {
    let each = encoder.input().len();
    let pixels = numbers(11, rows * each);
    let mut out = vec![0.0; rows * encoder.width()];
    let parts = pixels.chunks(at_once * each);
    for (pixels, out) in parts.zip(out.chunks_mut(at_once * encoder.width())) {
        encoder.encode(pixels.len() / each, pixels, out);
    }
    assert!(out.iter().all(|x| x.is_finite()));
    out.into_iter().map(f32::to_bits).collect()
}

fn lite(rows: usize, threads: usize) -> Encoder {
    let threads = Threads::with_threads(threads).expect("threads");
    Encoder::efficientnet_lite(&threads, 0, &mut invented, rows).expect("invented weights fit")
}

#[test]
fn a_pictures_bits_do_not_depend_on_how_many_are_computed_at_once_nor_on_threads() {
    for name in ["quick", "half"] {
        let alone = vectors(clip(&fixture(name), 1, 1), 7, 1);
        for (planned, at_once, threads) in [(7, 7, 1), (7, 3, 3), (2, 7, 8), (4, 1, 2)] {
            let encoder = clip(&fixture(name), planned, threads);
            assert_eq!(vectors(encoder, 7, at_once), alone);
        }
    }
    let alone = vectors(lite(1, 1), 3, 1);
    assert_eq!(vectors(lite(3, 2), 3, 3), alone);
    assert_eq!(vectors(lite(2, 8), 3, 3), alone);
}

/// The other siblings are built and computed too.
#[test]
fn larger_variants_of_efficientnet_lite_are_built() {
    for variant in [1, 2] {
        let encoder = Encoder::efficientnet_lite(&Threads::default(), variant, &mut invented, 1)
            .expect("it fits");
        let bits = vectors(encoder, 1, 1);
        assert!(bits.iter().any(|&bits| bits != 0), "all features are 0");
    }
    assert!(Encoder::efficientnet_lite(&Threads::default(), 3, &mut invented, 1).is_err());
}

/// Not a test: prints what the next one compares.
#[test]
#[ignore = "run by the test of instruction sets, in processes of its own"]
fn print_bits() {
    println!("level {}", Isa::current().name());
    println!("bits {:?}", all_bits());
}

fn all_bits() -> Vec<u32> {
    let mut bits = vectors(clip(&fixture("quick"), 2, 1), 2, 2);
    bits.extend(vectors(clip(&fixture("half"), 2, 1), 2, 2));
    bits.extend(vectors(lite(1, 1), 1, 1));
    bits
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let ours = format!("bits {:?}", all_bits());
    for level in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
        if level > Isa::detect() {
            continue;
        }
        let output = lockstep_testkit::child!(print_bits)
            .env(ISA_VARIABLE, level.name())
            .output()
            .expect("it can be run");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&format!("level {}", level.name())), "{said}");
        assert!(said.contains(&ours), "{level:?} gives other bits");
    }
}
