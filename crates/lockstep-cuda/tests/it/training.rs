//! What a training promises beside its bits: no memory is taken for a step, as much is taken as was forecast, what does
//! not fit is refused, and what was read goes on elsewhere.

use crate::conformance::{Case, device, example, samples, setup};
use crate::emulated;
use lockstep_cuda::{
    Beginning, CudaError, DataSet, Epoch, Gpu, SampleTargets, Samples, Setup, Training,
};
use lockstep_nn::{LossSum, Update};
use lockstep_testkit::allocations;

fn gpu() -> Option<Gpu> {
    let driver = emulated()?;
    Some(Gpu::of(&driver, 0).unwrap())
}

/// The parts of an epoch of a case.
fn parts(case: &Case, epoch: usize) -> (Vec<u32>, Vec<Update>, Vec<LossSum>) {
    let updates = (0..case.steps()).map(|i| case.update(epoch, i)).collect();
    let sums = vec![LossSum::default(); case.lanes()];
    (case.order(epoch), updates, sums)
}

fn begin(training: &mut Training, case: &Case, epoch: usize) -> Result<(), CudaError> {
    let (order, updates, sums) = parts(case, epoch);
    training.begin_epoch(Epoch {
        step: case.step(epoch, 0),
        in_epoch: 0,
        order: &order,
        updates: &updates,
        factors: &[],
        sums: &sums,
    })
}

fn train(training: &mut Training, case: &Case, epoch: usize) {
    begin(training, case, epoch).unwrap();
    for _ in 0..case.steps() {
        training.queue_step().unwrap();
    }
}

fn data(gpu: &Gpu, case: &Case) -> DataSet {
    DataSet::new(gpu, samples(case)).unwrap()
}

fn beginning(values: &[f32]) -> Beginning<'_> {
    Beginning {
        values,
        planes: &[],
        average: None,
    }
}

fn values(training: &Training, case: &Case) -> Vec<f32> {
    let mut values = vec![0.0; case.values.len()];
    training.read_values(&mut values).unwrap();
    values
}

#[test]
fn queueing_steps_takes_no_memory() {
    let Some(gpu) = gpu() else { return };
    let case = example();
    let mut training = device(&gpu, &case);
    begin(&mut training, &case, 0).unwrap();
    let taken = allocations(|| {
        for _ in 0..case.steps() {
            training.queue_step().unwrap();
        }
    });
    assert_eq!(taken, 0);
    let rows = training
        .report()
        .unwrap()
        .iter()
        .map(|lane| lane.epoch.rows)
        .sum::<u64>();
    assert_eq!(rows, case.samples as u64, "something was computed");
}

#[test]
fn as_much_memory_is_taken_as_was_forecast() {
    let Some(gpu) = gpu() else { return };
    let case = example();
    let before = gpu.free_memory().unwrap();
    let set = data(&gpu, &case);
    let between = gpu.free_memory().unwrap();
    assert_eq!(
        before - between,
        DataSet::bytes(set.samples(), set.shape()) as u64
    );
    let forecast = setup(&case).memory_needed().unwrap().total() as u64;
    let training =
        Training::new(&gpu, setup(&case), Some(set), None, beginning(&case.values)).unwrap();
    assert_eq!(between - gpu.free_memory().unwrap(), forecast);
    drop(training);
    assert_eq!(gpu.free_memory().unwrap(), before, "all is given back");
}

#[test]
fn what_was_read_goes_on_elsewhere_with_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let mut case = example();
    case.average = Some(0.9);
    let mut first = device(&gpu, &case);
    assert!(!first.has_average());
    train(&mut first, &case, 0);
    let average = |training: &Training| {
        let mut average = vec![0.0; case.values.len()];
        training.read_average(&mut average).unwrap();
        average
    };
    let mut plane = vec![0.0; case.values.len()];
    first.read_plane(0, &mut plane).unwrap();
    let beginning = Beginning {
        values: &values(&first, &case),
        planes: &[&plane],
        average: Some(&average(&first)),
    };
    let set = Some(data(&gpu, &case));
    let mut second = Training::new(&gpu, setup(&case), set, None, beginning).unwrap();
    for training in [&mut first, &mut second] {
        train(training, &case, 1);
    }
    let bits = |training| {
        let all = [values(training, &case), average(training)].concat();
        all.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(bits(&first), bits(&second));
}

#[test]
fn marks_wait_until_they_are_taken_however_many_they_are() {
    let Some(gpu) = gpu() else { return };
    let case = example();
    assert!(device(&gpu, &case).mark().is_err(), "there was no step");
    let (room, steps) = (setup(&case).marks, setup(&case).steps());
    let marks = |at_once: bool| {
        let (mut training, mut marks) = (device(&gpu, &case), Vec::new());
        // Three times as many as the device keeps.
        for epoch in 0..(3 * room).div_ceil(steps) {
            begin(&mut training, &case, epoch).unwrap();
            for _ in 0..steps {
                training.queue_step().unwrap();
                training.mark().unwrap();
                if at_once {
                    marks.extend(training.take_marks().unwrap());
                }
            }
        }
        marks.extend(training.take_marks().unwrap());
        assert!(training.take_marks().unwrap().is_empty());
        marks
    };
    let width = 1 + case.model(1).layout().tensors.len();
    let (waited, taken) = (marks(false), marks(true));
    assert!(waited.len() >= 3 * room * width);
    assert_eq!(waited, taken);
}

#[test]
fn workers_that_share_a_gpu_do_not_disturb_each_other() {
    let Some(gpu) = gpu() else { return };
    let case = example();
    let result = || {
        let mut training = device(&gpu, &case);
        train(&mut training, &case, 0);
        values(&training, &case)
    };
    let alone = result();
    let both = std::thread::scope(|scope| {
        [(); 2]
            .map(|()| scope.spawn(result))
            .map(|worker| worker.join().unwrap())
    });
    assert!(both.iter().all(|values| *values == alone));
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let Some(gpu) = gpu() else { return };
    let case = example();
    let refused = |setup: Setup, set: DataSet, values: &[f32]| {
        let training = Training::new(&gpu, setup, Some(set), None, beginning(values));
        training.err().expect("a refusal").to_string()
    };
    let found = refused(setup(&case), data(&gpu, &case), &case.values[1..]);
    let (short, all) = (case.values.len() - 1, case.values.len());
    assert_eq!(
        found,
        format!("the state vector: {short} numbers instead of {all} numbers")
    );

    let many = vec![7; case.targets.classes.len()];
    let content = Samples {
        targets: SampleTargets::Classes(&many),
        ..samples(&case)
    };
    let set = DataSet::new(&gpu, content).unwrap();
    let found = refused(setup(&case), set, &case.values);
    assert_eq!(
        found,
        "the classes of the data set: 8 instead of at most the 5 that the network has"
    );

    let mut wrong = setup(&case);
    wrong.batches[1].samples += 1;
    let found = refused(wrong, data(&gpu, &case), &case.values);
    assert!(
        found.starts_with("the samples of the last batch: "),
        "{found}"
    );

    let mut wide = setup(&case);
    wide.scored_rows = 1 << 30;
    let found = refused(wide, data(&gpu, &case), &case.values);
    assert!(
        found.contains("has too little free memory for training (activations 115964.1 MB"),
        "{found}"
    );

    let mut training = device(&gpu, &case);
    let over = training.queue_step().unwrap_err().to_string();
    assert_eq!(over, "a step of the epoch: 4 instead of at most 3");
    let (mut order, updates, sums) = parts(&case, 0);
    order[2] = 1000;
    let epoch = Epoch {
        step: 0,
        in_epoch: 0,
        order: &order,
        updates: &updates,
        factors: &[],
        sums: &sums,
    };
    let found = training.begin_epoch(epoch).unwrap_err().to_string();
    assert!(found.starts_with("a sample of the epoch: 1000"), "{found}");
    let found = training.scores(&case.inputs).unwrap_err().to_string();
    assert!(
        found.starts_with("the rows that are scored at a time: "),
        "{found}"
    );
}

#[test]
fn a_gpu_that_is_lost_in_a_step_is_told_by_all_that_follows_and_another_goes_on() {
    let Some(driver) = emulated() else { return };
    let case = example();
    let whole = Gpu::of(&driver, 0).unwrap();
    let mut expected = device(&whole, &case);
    let mut training = device(
        &Gpu::of(&driver.losing_the_gpu_at(case.steps() + 2), 0).unwrap(),
        &case,
    );
    train(&mut training, &case, 0);
    train(&mut expected, &case, 0);
    let mut plane = vec![0.0; case.values.len()];
    training.read_plane(0, &mut plane).unwrap();
    let kept = values(&training, &case);
    // The second step of the second epoch.
    begin(&mut training, &case, 1).unwrap();
    training.queue_step().unwrap();
    let errors = [
        training.queue_step().unwrap_err(),
        training.report().unwrap_err(),
        training.read_values(&mut plane.clone()).unwrap_err(),
        training.scores(case.scored()).unwrap_err(),
        begin(&mut training, &case, 1).unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_of_process(), "{error}");
        assert!(error.to_string().contains("is taken for lost"), "{error}");
    }
    drop(training);
    // What was kept before goes on elsewhere.
    let beginning = Beginning {
        values: &kept,
        planes: &[&plane],
        average: None,
    };
    let set = Some(data(&whole, &case));
    let mut again = Training::new(&whole, setup(&case), set, None, beginning).unwrap();
    for training in [&mut again, &mut expected] {
        train(training, &case, 1);
    }
    assert_eq!(values(&again, &case), values(&expected, &case));
}
