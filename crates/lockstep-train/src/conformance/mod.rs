//! What every device promises, held against the definition of a step in plain loops.
//!
//! A job is trained for some steps on one worker, and each step is also done as it is defined: every lane's gradient by
//! the layers, the lanes added in their tree, the norm clipped, each chunk updated. All vectors, losses, marks and what
//! the network says then must have the same bits. So must those of a gang of two workers, on whatever devices.

mod definition;
mod outcome;
mod running;
mod specimen;

use crate::batches::Batches;
use crate::cuda::CudaDevice;
use crate::device::{Device, ReplicaSetup};
use crate::host::HostDevice;
use crate::prepare::{evaluation_rows, largest_lane, model_on};
use definition::by_definition;
use lockstep_cuda::Gpu;
use lockstep_cuda::driver::emulated::EmulatedDriver;
use lockstep_gang::{AbortSwitch, Solo};
use lockstep_nn::{Capacity, Model, Threads};
use outcome::{Outcome, bits};
use running::{exchanging, in_gang, moved, on_device};
use specimen::{Specimen, in_fixed16, jobs};
use std::collections::BTreeSet;

/// Trains every job on the devices that `open` opens, in both precisions, and compares.
fn check(open: impl Fn(&Specimen, Model) -> Box<dyn Device>) {
    for job in jobs().into_iter().flat_map(|job| [in_fixed16(&job), job]) {
        let specimen = Specimen::new(&job);
        let (model, _) = specimen.model();
        let found = on_device(&specimen, &mut *open(&specimen, model));
        let expected = by_definition(&specimen);
        assert_eq!(found.difference(&expected), None, "{job}");
    }
}

/// A GPU, emulated, if that works here.
fn emulated_gpu() -> Option<Gpu> {
    let driver = EmulatedDriver::if_it_works(&lockstep_testkit::cache())?;
    Some(Gpu::of(&driver, 0).unwrap())
}

/// A network on a GPU.
fn on_gpu(gpu: &Gpu, specimen: &Specimen) -> Box<dyn Device> {
    let (settings, facts) = (&specimen.settings, specimen.sets.facts());
    let (model, _) = specimen.model();
    let rows = evaluation_rows(settings, &facts, &model);
    Box::new(CudaDevice::new(gpu.clone(), model, rows))
}

#[test]
fn a_gpu_trains_to_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        check(|specimen, _| on_gpu(&gpu, specimen));
    }
}

#[test]
fn a_processor_and_a_gpu_in_one_gang_train_to_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        check_mixed_gangs(&gpu);
    }
}

#[test]
fn gpus_that_read_each_others_sums_train_to_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        // Clipped, with an average, and with batches that leave workers without rows.
        let mut few: Vec<String> = [1, 3, 4].map(|number| jobs().swap_remove(number)).into();
        few.push(in_fixed16(&few[0]));
        check_peers(&gpu, few);
    }
}

#[test]
fn gpus_that_cannot_read_each_others_memory_leave_the_exchange_to_the_host() {
    let Some(driver) = EmulatedDriver::if_it_works(&lockstep_testkit::cache()) else {
        return;
    };
    let driver = driver.with_gpus(2);
    let specimen = Specimen::new(&jobs()[1]);
    let device = |index| on_gpu(&Gpu::of(&driver, index).unwrap(), &specimen);
    let found = in_gang(&specimen, vec![device(0), device(1)]);
    assert_eq!(found.difference(&by_definition(&specimen)), None);
}

#[test]
fn a_run_goes_on_on_a_gpu_and_comes_back_with_the_bits_of_the_definition() {
    if let Some(gpu) = emulated_gpu() {
        check_moves(&gpu);
    }
}

#[test]
fn rows_are_gathered_alike_on_any_threads() {
    // Varied images in lanes, mixed with others.
    let specimen = Specimen::new(&jobs()[4]);
    let (settings, sets) = (&specimen.settings, &specimen.sets);
    let (model, _) = specimen.model();
    let setup = ReplicaSetup::of(settings, &sets.facts(), model.layout(), 0).unwrap();
    let gathered = |threads: usize| {
        let threads = Threads::with_threads(threads).unwrap();
        let mut batches = Batches::new(sets, settings, false).on(threads);
        batches.begin(2);
        let mut all = Vec::new();
        for step in 0..setup.steps_per_epoch - 1 {
            batches.prepare(sets, &setup.programs[0], step);
            let rows = batches.prepared();
            all.extend(bits(rows.inputs));
            all.extend(rows.samples);
        }
        all
    };
    let (one, three) = (gathered(1), gathered(3));
    assert!(one.len() > 2 * 14 * 360 && one == three);
}

#[test]
fn a_gpu_that_computes_other_bits_is_refused_before_it_trains() {
    let Some(driver) = EmulatedDriver::if_it_works(&lockstep_testkit::cache()) else {
        return;
    };
    let gpu = Gpu::of(&driver.with_a_flipped_bit(), 0).unwrap();
    let specimen = Specimen::new(&jobs()[0]);
    let (model, beginning) = specimen.model();
    let (settings, sets) = (&specimen.settings, &specimen.sets);
    let setup = ReplicaSetup::of(settings, &sets.facts(), model.layout(), 0).unwrap();
    let alone = Solo::new(setup.exchange.plan.clone(), AbortSwitch::default()).unwrap();
    let mut device = on_gpu(&gpu, &specimen);
    let refused = device.replica(sets, setup, &beginning, Box::new(alone));
    let refused = refused.err().expect("a refusal").to_string();
    let words = "GPU 0, an emulated GPU, says something else of a row than the processor";
    assert!(refused.starts_with(words), "{refused}");
}

/// The same on the GPU of this machine, for whoever has one: `make test-gpu`.
mod gpu {
    use super::*;

    fn real() -> Option<Gpu> {
        let gpu = Gpu::open(0);
        gpu.inspect_err(|error| println!("skipped: {error}")).ok()
    }

    #[test]
    fn a_gpu_trains_to_the_bits_of_the_definition() {
        if let Some(gpu) = real() {
            check(|specimen, _| on_gpu(&gpu, specimen));
        }
    }

    #[test]
    fn a_gpu_in_a_gang_trains_to_the_bits_of_the_definition() {
        if let Some(gpu) = real() {
            check_mixed_gangs(&gpu);
            check_peers(&gpu, jobs());
            check_peers(&gpu, jobs().iter().map(|job| in_fixed16(job)).collect());
        }
    }

    #[test]
    fn a_run_goes_on_on_a_gpu_and_comes_back_with_the_bits_of_the_definition() {
        if let Some(gpu) = real() {
            check_moves(&gpu);
        }
    }
}

/// Trains jobs that begin on one device and go on on the other, both ways.
fn check_moves(gpu: &Gpu) {
    // One of dense layers, clipped, in lanes; one of images with an average; and convolutions in fixed point.
    for job in [&jobs()[1], &jobs()[3], &in_fixed16(&jobs()[4])] {
        let specimen = Specimen::new(job);
        let expected = by_definition(&specimen);
        let mut on_host = HostDevice::new(specimen.model().0);
        let mut on_gpu = on_gpu(gpu, &specimen);
        for found in [
            moved(&specimen, &mut on_host, &mut *on_gpu),
            moved(&specimen, &mut *on_gpu, &mut on_host),
        ] {
            // Marks are of the second epoch alone.
            let found = Outcome {
                marks: expected.marks.clone(),
                recent: expected.recent.clone(),
                ..found
            };
            assert_eq!(found.difference(&expected), None, "{job}");
        }
    }
}

/// Trains jobs in gangs of workers that share a GPU, where each reads what the others have come to: as many as there are lanes,
/// of which some are without rows in short batches, and two.
fn check_peers(gpu: &Gpu, jobs: Vec<String>) {
    for job in jobs {
        let specimen = Specimen::new(&job);
        let expected = by_definition(&specimen);
        let lanes = specimen.settings.lanes;
        let counts = BTreeSet::from([2, lanes]).into_iter();
        for workers in counts.filter(|&workers| workers > 1 && workers <= lanes) {
            let devices = (0..workers).map(|_| on_gpu(gpu, &specimen)).collect();
            let found = exchanging(&specimen, devices, true);
            assert_eq!(
                found.difference(&expected),
                None,
                "{job}, {workers} workers"
            );
        }
    }
}

/// Trains jobs in gangs of a GPU and a processor.
fn check_mixed_gangs(gpu: &Gpu) {
    // Every other job, and in fixed point those between: sums of several lanes, of one, averages and frozen layers.
    for (number, job) in jobs().into_iter().enumerate() {
        let job = if number % 2 == 1 {
            job
        } else {
            in_fixed16(&job)
        };
        let specimen = Specimen::new(&job);
        if specimen.settings.lanes == 1 {
            continue;
        }
        let on_host = || Box::new(HostDevice::new(specimen.model().0));
        let mut devices: Vec<Box<dyn Device>> = vec![on_gpu(gpu, &specimen), on_host()];
        if number % 4 < 2 {
            devices.reverse();
        }
        let found = in_gang(&specimen, devices);
        assert_eq!(found.difference(&by_definition(&specimen)), None, "{job}");
    }
}

#[test]
fn processors_train_fixed16_to_the_bits_of_the_definition_alone_and_in_gangs() {
    for job in jobs() {
        let job = in_fixed16(&job);
        let specimen = Specimen::new(&job);
        let expected = by_definition(&specimen);
        let on_host = || -> Box<dyn Device> { Box::new(HostDevice::new(specimen.model().0)) };
        let found = on_device(&specimen, &mut *on_host());
        assert_eq!(found.difference(&expected), None, "{job}");
        if specimen.settings.lanes > 1 {
            let found = in_gang(&specimen, vec![on_host(), on_host()]);
            assert_eq!(found.difference(&expected), None, "{job}, in a gang");
        }
    }
}

#[test]
fn the_processor_trains_to_the_bits_of_the_definition_with_any_threads_and_lanes_in_a_pass() {
    for (threads, lanes) in [(1, 1), (2, 2), (3, 9)] {
        let threads = Threads::with_threads(threads).unwrap();
        check(|specimen, model| {
            let facts = specimen.sets.facts();
            let rows = lanes * largest_lane(&specimen.settings, &facts);
            let rows = rows.max(model.capacity().rows);
            let capacity = Capacity { rows, lanes };
            let model = model_on(&threads, &specimen.settings, &facts, capacity).unwrap();
            Box::new(HostDevice::new(model))
        });
    }
}
