//! What all turns say together.
//!
//! This is `comparison.json`. What stands in lists of plain objects is shown as tables by the dashboard, other plain values
//! by their names.

use crate::measured::EpochPoint;
use crate::{Bench, How, MachineFacts, Prediction, Setting, Spread, Turn, warnings};
use lockstep_events::event::StepTimes;
use serde::Serialize;

/// All that was measured, and what it says.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The job's name.
    pub job: String,
    /// When measuring began, in UTC.
    pub created: String,
    /// The version of Lockstep.
    pub lockstep: &'static str,
    /// The command that measured.
    pub command: String,
    /// The machine in one line.
    pub measured_on: String,
    /// `strong` where the batch is the same, `weak` where that of a worker is.
    pub scaling: &'static str,
    /// How often each setting was to be measured.
    pub rounds: usize,
    /// Numbers that are learned.
    pub parameters: Option<u64>,
    /// Whether all turns were measured.
    pub complete: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The load of the machine at the end.
    pub load_at_the_end: f64,
    /// What could make the figures wrong, one each.
    pub warnings: Vec<Warning>,
    /// What is compared with.
    pub baseline: Option<Side>,
    /// What is compared.
    pub distributed: Option<Side>,
    /// The two beside each other.
    pub comparison: Option<Compared>,
    /// Every setting.
    pub settings: Vec<SettingRow>,
    /// What more workers are expected to do; first what can be held against what was measured here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// Where the time of a step goes, of each setting that says so.
    pub steps: Vec<StepRow>,
    /// Epoch by epoch, of the last turn of each setting.
    pub epochs: Vec<EpochRow>,
    /// Every measurement.
    pub turns: Vec<TurnRow>,
    /// The machine.
    pub machine: MachineFacts,
}

/// Something that could make the figures wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    /// What, as a sentence.
    pub warning: String,
}

/// One of the two that are compared.
#[derive(Debug, Clone, Serialize)]
pub struct Side {
    /// What people call it.
    pub name: String,
    /// Workers.
    pub workers: usize,
    /// The samples of a step.
    pub batch: Option<u64>,
    /// Seconds from the first step to the last: the median.
    pub training_time_seconds: f64,
    /// The same, with how far the turns lie apart.
    pub training_time: Spread,
    /// Seconds from the start to the result: the median.
    pub total_time_seconds: f64,
    /// Training samples a second: the median.
    pub samples_per_second: f64,
    /// The accuracy of what was learned.
    pub test_accuracy: Option<f64>,
    /// Its loss.
    pub test_loss: Option<f64>,
    /// Its hash.
    pub weights_sha256: Option<String>,
}

/// How the two compare.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// How many times faster training is: the median of the rounds.
    pub speedup: f64,
    /// The same, with how far the rounds lie apart.
    pub speedup_spread: Spread,
    /// The speedup by how many times more workers there are.
    pub efficiency: f64,
    /// How many times faster all is, the start included.
    pub total_speedup: f64,
    /// How many times faster workers are that exchange nothing: no gang can do better here.
    pub limit_speedup: Option<f64>,
    /// The share of that limit which was reached, in samples a second.
    pub share_of_limit: Option<f64>,
    /// Accuracy after, less accuracy before.
    pub accuracy_difference: Option<f64>,
    /// Whether both have learned the same, to the bit.
    pub same_weights: Option<bool>,
}

/// A setting in a row.
#[derive(Debug, Clone, Serialize)]
pub struct SettingRow {
    /// What people call it.
    pub setting: String,
    /// Workers.
    pub workers: usize,
    /// The samples of a step.
    pub batch: Option<u64>,
    /// How often it was measured.
    pub turns: usize,
    /// Seconds of training: the median, the least, the most.
    pub training_time_seconds: f64,
    /// The least.
    pub least_seconds: f64,
    /// The most.
    pub most_seconds: f64,
    /// Seconds to the end of the first step.
    pub start_seconds: f64,
    /// Seconds from the start to the result.
    pub total_time_seconds: f64,
    /// Training samples a second.
    pub samples_per_second: f64,
    /// How many times faster than the first of its group; none for that.
    pub speedup: Option<f64>,
    /// The least of the rounds.
    pub least_speedup: Option<f64>,
    /// The most.
    pub most_speedup: Option<f64>,
    /// The speedup by how many times more workers there are.
    pub efficiency: Option<f64>,
    /// The share of what its workers do without each other.
    pub share_of_limit: Option<f64>,
    /// The accuracy of what was learned.
    pub accuracy: Option<f64>,
    /// The hash of what was learned.
    pub weights_sha256: Option<String>,
    #[serde(skip)]
    pub(crate) how: How,
    #[serde(skip)]
    pub(crate) group: Option<u64>,
    #[serde(skip)]
    pub(crate) training: Spread,
    #[serde(skip)]
    pub(crate) loss: Option<f64>,
    #[serde(skip)]
    pub(crate) speedups: Option<Spread>,
}

/// Where the time of a setting's steps goes: shares of 1.
#[derive(Debug, Clone, Serialize)]
pub struct StepRow {
    /// What people call it.
    pub setting: String,
    /// Seconds of all steps of a worker.
    pub seconds: f64,
    /// Making batches.
    pub data: f64,
    /// Forward passes.
    pub forward: f64,
    /// Backward passes.
    pub backward: f64,
    /// Waiting for others.
    pub waiting: f64,
    /// Exchanging.
    pub exchange: f64,
    /// The optimizer.
    pub update: f64,
    #[serde(skip)]
    pub(crate) times: StepTimes,
}

/// An epoch of a setting.
#[derive(Debug, Clone, Serialize)]
pub struct EpochRow {
    /// What people call it.
    pub setting: String,
    /// The epoch.
    #[serde(flatten)]
    pub point: EpochPoint,
}

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct TurnRow {
    /// The round, counted from 1.
    pub round: usize,
    /// What people call the setting.
    pub setting: String,
    /// Seconds from the first step to the last.
    pub training_time_seconds: f64,
    /// Seconds to the end of the first step.
    pub start_seconds: f64,
    /// Seconds from the start to the result.
    pub total_time_seconds: f64,
    /// Training samples a second.
    pub samples_per_second: f64,
    /// Cores that other processes took meanwhile.
    pub cores_of_others: f64,
    /// Cores that other machines took.
    pub cores_stolen: f64,
    /// The hash of what was learned.
    pub weights_sha256: Option<String>,
}

impl Comparison {
    /// What `turns` say.
    pub(crate) fn of(
        bench: &Bench,
        turns: &[Turn],
        error: Option<String>,
        load_at_the_end: f64,
    ) -> Comparison {
        let settings = rows(bench, turns);
        let (first, second) = sides(&settings).unzip();
        let comparison = first.zip(second).map(|sides| compared(sides, &settings));
        let name = |turn: &Turn| bench.plan.settings[turn.setting].name();
        let mut comparison = Comparison {
            job: bench.job.clone(),
            created: bench.created.clone(),
            lockstep: env!("CARGO_PKG_VERSION"),
            command: bench.command.clone(),
            measured_on: bench.machine.words(),
            scaling: if bench.plan.weak { "weak" } else { "strong" },
            rounds: bench.plan.rounds,
            parameters: turns
                .iter()
                .map(|turn| turn.measured.parameters)
                .find(|parameters| *parameters > 0),
            complete: error.is_none(),
            predictions: Vec::new(),
            error,
            load_at_the_end,
            warnings: Vec::new(),
            baseline: first.map(side),
            distributed: second.map(side),
            comparison,
            steps: steps(bench, turns),
            epochs: epochs(bench, turns),
            turns: turns
                .iter()
                .map(|turn| TurnRow {
                    round: turn.round + 1,
                    setting: name(turn),
                    training_time_seconds: turn.measured.training_s,
                    start_seconds: turn.measured.start_s,
                    total_time_seconds: turn.measured.total_s,
                    samples_per_second: turn.measured.samples_per_s,
                    cores_of_others: turn.taken.by_others,
                    cores_stolen: turn.taken.stolen,
                    weights_sha256: turn.measured.weights_sha256.clone(),
                })
                .collect(),
            machine: bench.machine.clone(),
            settings,
        };
        if let Some((workers, network)) = &bench.predict {
            comparison.add_predictions(workers, network);
        }
        comparison.warnings = warnings::find(bench, turns, &comparison.settings);
        comparison
    }
}

impl Comparison {
    /// Whether each worker keeps its batch.
    pub(crate) fn is_weak(&self) -> bool {
        self.scaling == "weak"
    }
}

/// The turns of a setting.
fn of(turns: &[Turn], setting: usize) -> impl Iterator<Item = &Turn> + Clone {
    turns.iter().filter(move |turn| turn.setting == setting)
}

/// Every setting that was measured, in the plan's order.
fn rows(bench: &Bench, turns: &[Turn]) -> Vec<SettingRow> {
    let all = &bench.plan.settings;
    let mut rows = Vec::new();
    for (number, setting) in all.iter().enumerate() {
        let base = base_of(all, setting);
        let limit = all.iter().position(|other| {
            other.how == How::Apart
                && setting.how == How::Together
                && (other.group, other.workers) == (setting.group, setting.workers)
        });
        rows.extend(row(turns, all, (number, base, limit)));
    }
    rows
}

/// The number of the setting that another is held against.
fn base_of(all: &[Setting], setting: &Setting) -> usize {
    let is_base = |other: &Setting| other.how == How::Together && other.group == setting.group;
    all.iter().position(is_base).unwrap_or(0)
}

fn row(
    turns: &[Turn],
    all: &[Setting],
    (number, base, limit): (usize, usize, Option<usize>),
) -> Option<SettingRow> {
    let setting = &all[number];
    let own = of(turns, number);
    let median = |value: fn(&Turn) -> f64| Spread::of(own.clone().map(value)).map(|s| s.median);
    let training = Spread::of(own.clone().map(|turn| turn.measured.training_s))?;
    // In pairs of one round, so that what made the whole round slow is in both.
    let ratios = |other: usize, ratio: fn(&Turn, &Turn) -> f64| {
        Spread::of(own.clone().filter_map(|turn| {
            let beside = of(turns, other).find(|beside| beside.round == turn.round)?;
            Some(ratio(beside, turn))
        }))
    };
    let faster: fn(&Turn, &Turn) -> f64 = match setting.how {
        // They see another part of the data each: what they do in a second is compared.
        How::Apart => |base, turn| turn.measured.samples_per_s / base.measured.samples_per_s,
        _ => |base, turn| base.measured.training_s / turn.measured.training_s,
    };
    let speedups = (number != base).then(|| ratios(base, faster)).flatten();
    let more = setting.workers as f64 / all[base].workers as f64;
    let share = limit.and_then(|limit| {
        ratios(limit, |apart, turn| {
            turn.measured.samples_per_s / apart.measured.samples_per_s
        })
    });
    let last = own.clone().last()?;
    Some(SettingRow {
        setting: setting.name(),
        workers: setting.workers,
        batch: setting.batch,
        turns: own.clone().count(),
        training_time_seconds: training.median,
        least_seconds: training.min,
        most_seconds: training.max,
        start_seconds: median(|turn| turn.measured.start_s)?,
        total_time_seconds: median(|turn| turn.measured.total_s)?,
        samples_per_second: median(|turn| turn.measured.samples_per_s)?,
        speedup: speedups.map(|spread| spread.median),
        least_speedup: speedups.map(|spread| spread.min),
        most_speedup: speedups.map(|spread| spread.max),
        // What another system gains from its workers is not what Lockstep does.
        efficiency: speedups
            .filter(|_| !matches!(setting.how, How::Peer(_)))
            .map(|spread| spread.median / more),
        share_of_limit: share.map(|spread| spread.median),
        accuracy: last.measured.accuracy,
        weights_sha256: last.measured.weights_sha256.clone(),
        how: setting.how.clone(),
        group: setting.group,
        training,
        loss: last.measured.loss,
        speedups,
    })
}

/// The two that are compared before all others: of the first group the least and the most workers; where all have as
/// many, the first batch and the last.
fn sides(rows: &[SettingRow]) -> Option<(&SettingRow, &SettingRow)> {
    let gangs = || rows.iter().filter(|row| row.how == How::Together);
    let first = gangs().next()?;
    let of_group = gangs().rfind(|row| row.group == first.group)?;
    let second = match of_group.workers == first.workers {
        true => gangs().next_back()?,
        false => of_group,
    };
    (second.setting != first.setting).then_some((first, second))
}

fn side(row: &SettingRow) -> Side {
    Side {
        name: row.setting.clone(),
        workers: row.workers,
        batch: row.batch,
        training_time_seconds: row.training_time_seconds,
        training_time: row.training,
        total_time_seconds: row.total_time_seconds,
        samples_per_second: row.samples_per_second,
        test_accuracy: row.accuracy,
        test_loss: row.loss,
        weights_sha256: row.weights_sha256.clone(),
    }
}

fn compared((first, second): (&SettingRow, &SettingRow), rows: &[SettingRow]) -> Compared {
    let spread = second.speedups.or_else(|| {
        // Another batch: of another group, whose rounds were not paired with this one's.
        Spread::of([first.training_time_seconds / second.training_time_seconds])
    });
    let spread = spread.unwrap_or(first.training);
    let limit = rows.iter().find(|row| {
        row.how == How::Apart && (row.group, row.workers) == (second.group, second.workers)
    });
    Compared {
        speedup: spread.median,
        speedup_spread: spread,
        efficiency: spread.median * first.workers as f64 / second.workers as f64,
        total_speedup: first.total_time_seconds / second.total_time_seconds,
        limit_speedup: limit.and_then(|row| row.speedup),
        share_of_limit: second.share_of_limit,
        accuracy_difference: second.accuracy.zip(first.accuracy).map(|(b, a)| b - a),
        same_weights: (first.batch == second.batch)
            .then(|| Some(first.weights_sha256.as_ref()? == second.weights_sha256.as_ref()?))
            .flatten(),
    }
}

fn steps(bench: &Bench, turns: &[Turn]) -> Vec<StepRow> {
    let row = |(number, setting): (usize, &Setting)| {
        let times: Vec<StepTimes> = of(turns, number).filter_map(|t| t.measured.step).collect();
        let mut sum = [0.0; 6];
        for one in &times {
            for (sum, part) in sum.iter_mut().zip(one.parts()) {
                *sum += part / times.len() as f64;
            }
        }
        let times = (!times.is_empty()).then(|| StepTimes::of_parts(sum))?;
        let seconds: f64 = times.parts().iter().sum();
        let [data, forward, backward, waiting, exchange, update] = times
            .parts()
            .map(|part| part / seconds.max(f64::MIN_POSITIVE));
        Some(StepRow {
            setting: setting.name(),
            seconds,
            data,
            forward,
            backward,
            waiting,
            exchange,
            update,
            times,
        })
    };
    bench
        .plan
        .settings
        .iter()
        .enumerate()
        .filter_map(row)
        .collect()
}

fn epochs(bench: &Bench, turns: &[Turn]) -> Vec<EpochRow> {
    let mut rows = Vec::new();
    for (number, setting) in bench.plan.settings.iter().enumerate() {
        let last = of(turns, number).last();
        let points = last.into_iter().flat_map(|turn| &turn.measured.epochs);
        rows.extend(points.map(|point| EpochRow {
            setting: setting.name(),
            point: point.clone(),
        }));
    }
    rows
}
