//! The model has the same bytes on any number of ranks and threads, and after a resume with others.

use lockstep_resolve::TreesDevice;
use lockstep_trees::cuts::RankRows;
use lockstep_trees::gradients::{Objective, RankBy, RankTargets};
use lockstep_trees::xgboost::{Communicator, Rows, Tracker, Xgboost};
use lockstep_trees::{BoostSettings, Boosting};
use std::sync::OnceLock;
use std::time::Duration;

const COLUMNS: usize = 10;
const ROWS: usize = 3000;
const PATIENCE: Duration = Duration::from_secs(60);

fn xgboost() -> &'static Xgboost {
    static LOADED: OnceLock<Xgboost> = OnceLock::new();
    LOADED.get_or_init(|| {
        let library = lockstep_testkit::xgboost_library();
        Xgboost::load(&library).unwrap()
    })
}

/// A table with gaps, categories, and columns that are out to hurt: empty, constant, both zeros, very small and large.
struct Table {
    values: Vec<f32>,
    categorical: Vec<bool>,
}

fn random(n: u64) -> f64 {
    let mut x = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

fn table() -> Table {
    let cell = |row: usize, column: usize| {
        let drawn = random((row * COLUMNS + column) as u64);
        let other = random((row * COLUMNS + column) as u64 ^ 0xABCD_0000_0000);
        match column {
            0..=3 if other < 0.07 => f32::NAN,
            0..=3 => (drawn * 10.0 - 5.0) as f32,
            4 => f32::NAN,
            5 => 1.0,
            6 => [0.0, -0.0, 1e-40, 3e38][(drawn * 4.0) as usize],
            7 => (drawn * 20.0).floor() as f32,
            8 => (drawn * 3.0).floor() as f32,
            _ => (drawn * 1e6) as f32,
        }
    };
    Table {
        values: (0..ROWS * COLUMNS)
            .map(|at| cell(at / COLUMNS, at % COLUMNS))
            .collect(),
        categorical: (0..COLUMNS)
            .map(|column| column == 7 || column == 8)
            .collect(),
    }
}

impl Table {
    /// What depends on the columns, without gaps and with some noise.
    fn score(&self, row: usize) -> f64 {
        let cells = &self.values[row * COLUMNS..][..COLUMNS];
        let number = |column: usize| {
            f64::from(if cells[column].is_nan() {
                0.5
            } else {
                cells[column]
            })
        };
        number(0) * number(1) * 0.2 + number(7) % 3.0 - number(2)
            + random(row as u64 ^ 0x1234_0000_0000)
    }

    fn targets(&self, objective: Objective) -> Vec<f32> {
        let scores = (0..ROWS).map(|row| self.score(row));
        let target = |score: f64| match objective {
            Objective::Logistic => f32::from(u8::from(score > 0.5)),
            Objective::Softmax { classes } => {
                (score + 5.0).clamp(0.0, classes as f64 - 1.0).floor() as f32
            }
            Objective::SquaredError
            | Objective::PseudoHuber
            | Objective::AbsoluteError
            | Objective::Quantile { .. } => (score * 1234.5) as f32,
            Objective::Rank { by, .. } => {
                let most = if by == RankBy::Map { 1.0 } else { 4.0 };
                (score + 2.0).clamp(0.0, most).floor() as f32
            }
            Objective::Poisson | Objective::Gamma => (score.abs() + 0.1) as f32,
        };
        scores.map(target).collect()
    }
}

fn settings(objective: Objective) -> BoostSettings {
    BoostSettings {
        objective,
        exact: true,
        base_score: Some(0.5),
        bins: 64,
        row_share: 1.0,
        column_share: 1.0,
        positive: (1.0, 1.0),
        class_weights: Vec::new(),
        device: TreesDevice::Processor,
        seed: 42,
        threads: 1,
        parameters: vec![
            ("max_depth".to_owned(), "5".to_owned()),
            ("eta".to_owned(), "0.3".to_owned()),
        ],
    }
}

/// Trains up to a round with the rows divided at these places, and returns the model of every rank.
fn train(
    settings: &BoostSettings,
    weights: Option<&[f32]>,
    ends: &[usize],
    model: Option<&[u8]>,
    rounds: usize,
) -> Vec<Vec<u8>> {
    let table = table();
    let targets = table.targets(settings.objective);
    let ranks = ends.len();
    let tracker = (ranks > 1)
        .then(|| Tracker::start(xgboost(), [127, 0, 0, 1].into(), ranks, PATIENCE).unwrap());
    let meet = tracker
        .as_ref()
        .map(|tracker| (tracker.address(), tracker.port()));
    std::thread::scope(|scope| {
        let gang: Vec<_> = (0..ranks)
            .map(|rank| {
                let from = if rank == 0 { 0 } else { ends[rank - 1] };
                let (values, categorical) = (
                    &table.values[from * COLUMNS..ends[rank] * COLUMNS],
                    &table.categorical,
                );
                let groups = groups(from, ends[rank]);
                let targets = &targets[from..ends[rank]];
                let weights = weights.map(|weights| &weights[from..ends[rank]]);
                scope.spawn(move || {
                    let targets = RankTargets {
                        targets,
                        weights,
                        positive: (1.0, 1.0),
                        groups: &groups,
                        first_row: from as u64,
                        all_rows: ROWS as u64,
                    };
                    let gang = meet
                        .map(|meet| Communicator::join(xgboost(), meet, rank, PATIENCE).unwrap());
                    let rows = RankRows {
                        blocks: &mut Rows::new(values, COLUMNS),
                        categorical,
                    };
                    let mut boosting =
                        Boosting::begin(xgboost(), settings, rows, targets, model, &gang).unwrap();
                    while boosting.rounds() < rounds {
                        boosting.round().unwrap();
                    }
                    let model = boosting.model().unwrap();
                    if let Some(gang) = gang {
                        gang.leave().unwrap();
                    }
                    model
                })
            })
            .collect();
        gang.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// The groups of some rows. No division of the rows cuts through one.
fn groups(from: usize, to: usize) -> Vec<std::ops::Range<usize>> {
    let mut ends: Vec<usize> = (50..=ROWS).step_by(50).chain([1001]).collect();
    ends.sort_unstable();
    let begin = |end: usize| ends.iter().rev().find(|other| **other < end).copied();
    let own = ends.iter().filter(|end| (from + 1..=to).contains(end));
    own.map(|&end| begin(end).unwrap_or(0) - from..end - from)
        .collect()
}

/// Ways to divide the rows: alone, evenly, one rank with a single row and one with none.
const DIVISIONS: [&[usize]; 4] = [
    &[ROWS],
    &[ROWS / 2, ROWS],
    &[1000, 1001, ROWS],
    &[0, 900, 1700, ROWS],
];

fn check(what: &str, settings: &BoostSettings, weights: Option<&[f32]>) {
    let alone = train(settings, weights, DIVISIONS[0], None, 8).remove(0);
    assert!(
        alone.len() > 3000,
        "{what}: a model of {} bytes learned nothing",
        alone.len()
    );
    let threads = BoostSettings {
        threads: 2,
        ..settings.clone()
    };
    assert!(
        train(&threads, weights, DIVISIONS[0], None, 8)[0] == alone,
        "{what}: two threads"
    );
    for ends in &DIVISIONS[1..] {
        for (rank, model) in train(settings, weights, ends, None, 8).iter().enumerate() {
            assert!(*model == alone, "{what}: rank {rank} of {ends:?}");
        }
    }
    let first = train(settings, weights, DIVISIONS[2], None, 3).remove(0);
    let second = train(settings, weights, DIVISIONS[1], Some(&first), 6).remove(0);
    assert!(
        train(settings, weights, DIVISIONS[3], Some(&second), 8)[0] == alone,
        "{what}: 3, 2, 4 ranks in turn"
    );
}

#[test]
fn binary_models_are_the_same_on_any_ranks() {
    check("logistic", &settings(Objective::Logistic), None);
}

#[test]
fn models_of_several_classes_are_the_same_on_any_ranks() {
    check(
        "softmax",
        &settings(Objective::Softmax { classes: 4 }),
        None,
    );
}

#[test]
fn models_of_numbers_are_the_same_on_any_ranks() {
    for objective in [
        Objective::SquaredError,
        Objective::PseudoHuber,
        Objective::Poisson,
        Objective::Gamma,
        Objective::AbsoluteError,
        Objective::Quantile { share: 0.9 },
    ] {
        check(objective.xgboost_name(), &settings(objective), None);
    }
}

#[test]
fn models_of_rankings_are_the_same_on_any_ranks() {
    for by in [RankBy::Pairs, RankBy::Ndcg, RankBy::Map] {
        let objective = Objective::rank(by);
        check(objective.xgboost_name(), &settings(objective), None);
    }
}

#[test]
fn models_with_sampled_rows_and_columns_are_the_same_on_any_ranks() {
    let sampled = BoostSettings {
        row_share: 0.7,
        column_share: 0.5,
        ..settings(Objective::Logistic)
    };
    check("sampled", &sampled, None);
    let objective = Objective::Quantile { share: 0.2 };
    check(
        "sampled quantile",
        &BoostSettings {
            objective,
            ..sampled
        },
        None,
    );
}

#[test]
fn models_with_weights_of_all_sizes_are_the_same_on_any_ranks() {
    let weights: Vec<f32> = (0..ROWS)
        .map(|row| 10_f64.powf(random(row as u64) * 12.0 - 6.0) as f32)
        .collect();
    let mut deep = settings(Objective::SquaredError);
    deep.parameters[0].1 = "10".to_owned();
    check("weighted", &deep, Some(&weights));
    deep.objective = Objective::AbsoluteError;
    check("weighted median", &deep, Some(&weights));
}
