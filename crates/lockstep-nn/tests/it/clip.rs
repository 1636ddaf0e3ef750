//! CLIP's image encoder agrees with `transformers`, and its bits hang on nothing but weights and pixels.

use crate::agreement::{clip, clip_agreement, invented, numbers};
use lockstep_base::simd::{ISA_VARIABLE, Isa};
use lockstep_nn::encoder::{ClipConfig, Encoder, EncoderParts};
use lockstep_nn::{Precision, Threads};
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

/// An encoder of invented weights in fixed16: a small CLIP, or EfficientNet-Lite.
fn fixed16(is_clip: bool, rows: usize, threads: usize) -> Encoder {
    let config = ClipConfig {
        hidden_size: 48,
        intermediate_size: 100,
        num_hidden_layers: 2,
        num_attention_heads: 3,
        image_size: 40,
        patch_size: 8,
        ..ClipConfig::default()
    };
    let parts = match is_clip {
        true => EncoderParts::clip(&config, &mut invented),
        false => EncoderParts::efficientnet_lite(0, &mut invented),
    };
    let threads = Threads::with_threads(threads).expect("threads");
    let parts = parts.expect("invented weights fit");
    Encoder::in_precision(Precision::Fixed16, &threads, parts, rows)
}

#[test]
fn in_fixed16_a_pictures_bits_do_not_depend_on_others_either_and_are_not_those_of_f32() {
    for is_clip in [true, false] {
        let alone = vectors(fixed16(is_clip, 1, 1), 3, 1);
        for (planned, at_once, threads) in [(3, 3, 1), (3, 2, 3), (2, 3, 8)] {
            let encoder = fixed16(is_clip, planned, threads);
            assert_eq!(vectors(encoder, 3, at_once), alone);
        }
    }
    let single = vectors(lite(1, 1), 1, 1);
    let found = vectors(fixed16(false, 1, 1), 1, 1);
    assert_ne!(found, single);
    let numbers = |bits: &[u32]| {
        bits.iter()
            .map(|&bits| f32::from_bits(bits))
            .collect::<Vec<_>>()
    };
    let (found, single) = (numbers(&found), numbers(&single));
    let most = single.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    let far = found
        .iter()
        .zip(&single)
        .fold(0.0, |far: f32, (a, b)| far.max((a - b).abs()));
    assert!(far < 0.01 * most, "{far} beside {most}");
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
    // With the engine of the instruction set.
    bits.extend(vectors(fixed16(true, 2, 1), 2, 2));
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
