//! Draws the confusion matrix of a made-up classifier: `picture CLASSES > confusion.svg`.

use lockstep_measure::{Outcome, Tally};

const NAMES: [&str; 10] = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
];

fn main() {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let count: usize = count.unwrap_or(10);
    let name = |class: usize| match count {
        ..=10 => NAMES[class].to_owned(),
        _ => format!("{} no. {class}", NAMES[class % NAMES.len()]),
    };
    let classes: Vec<String> = (0..count).map(name).collect();
    let mut tally = Tally::new(&classes);
    let mut noise = 1u64;
    let mut draw = |below: usize| {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise as usize % below
    };
    for row in 0..count as u64 * 1000 {
        let actual = row as usize % count;
        let predicted = match draw(100) {
            0..80 => actual,
            80..92 => (actual + 1 + draw(2)) % count,
            _ => draw(count),
        };
        tally.add(&Outcome {
            row,
            actual,
            predicted,
            probability: 0.5,
            in_top5: true,
        });
    }
    print!(
        "{}",
        tally.finish(20, |_| None).svg("Fashion-MNIST, test set")
    );
}
