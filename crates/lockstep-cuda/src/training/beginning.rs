//! What a training begins with, and how it is made.

use super::Training;
use super::extras::Extras;
use super::peers::PeerExchange;
use crate::data_set::DataSet;
use crate::epoch::check;
use crate::error::CudaError;
use crate::gang::GangMemory;
use crate::gpu::Gpu;
use crate::launch::load_all;
use crate::memory::DeviceMemory;
use crate::network::LaneSum;
use crate::peers::PeerMemory;
use crate::plan::Plan;
use crate::ring::Ring;
use crate::rows::RowShape;
use crate::scoring::Scoring;
use crate::setup::{InputPlace, Setup};
use crate::streams::{Event, Graph, Stream};

/// What training begins with.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// The state vector.
    pub values: &'a [f32],
    /// The optimizer's vectors, or what there is of each of them from the front on; the rest begins with zeros.
    pub planes: &'a [&'a [f32]],
    /// The average of the weights, if there is one yet.
    pub average: Option<&'a [f32]>,
}

impl Training {
    /// Plans all memory, brings the state to the GPU, and records the steps. The data set is there if the setup says that
    /// it is resident; the memory of peers if it says that devices exchange themselves.
    ///
    /// # Errors
    /// When there is no kernel for something in the network, the parts do not fit each other, or the GPU has too little
    /// memory.
    pub fn new(
        gpu: &Gpu,
        setup: Setup,
        set: Option<DataSet>,
        peers: Option<PeerMemory>,
        beginning: Beginning<'_>,
    ) -> Result<Self, CudaError> {
        let layout = &setup.model.layout;
        check_set(&setup, set.as_ref())?;
        check_peers(&setup, peers.as_ref())?;
        check("the state vector", beginning.values.len(), layout.len())?;
        let device = &gpu.device;
        let forecast = Plan::new(&setup, [0; 2])?;
        let [kept, scratch] = forecast.bytes();
        let what = format!("training ({})", forecast.needs());
        let memory = DeviceMemory::new(device, kept + scratch, &what)?;
        let at = memory.address();
        let plan = Plan::new(&setup, [at, at + kept as u64])?;
        let stream = Stream::new(device)?;
        for (tables, batch) in plan.tables.iter().zip(&setup.batches) {
            for (slice, numbers) in tables.content(batch) {
                memory.write(&stream, slice, &numbers)?;
            }
        }
        for constant in &plan.constants {
            memory.write(&stream, constant.slice, &constant.numbers)?;
        }
        if let Some(shape) = &setup.shape {
            let weights = plan.batch.targets.class_weights;
            memory.write(&stream, weights, &shape.class_weights)?;
        }
        let sums = vec![LaneSum::nothing(); plan.batch.sums.len()];
        memory.write(&stream, plan.batch.sums, &sums)?;
        memory.write(&stream, plan.update.values, beginning.values)?;
        for (i, plane) in plan.update.planes.into_iter().enumerate() {
            memory.clear(&stream, plane)?;
            if let Some(&known) = beginning.planes.get(i).filter(|_| plane.len() > 0) {
                let known = &known[..known.len().min(plane.len())];
                memory.write(&stream, plane.first(known.len()), known)?;
            }
        }
        let content = set.as_ref().map(DataSet::content);
        let record = |last| {
            let launches = plan.step(&setup, content, last);
            Graph::new(device, &stream, &load_all(device, launches)?)
        };
        let graphs = [record(false)?, record(true)?];
        let places = (plan.batch.rows.inputs, plan.batch.scores);
        let shape = [setup.model.inputs(), setup.model.outputs()];
        let most = setup.peer_shape().partials;
        let on_device = (&memory, &stream);
        let extras = Extras::new(&plan, on_device, beginning)?;
        Ok(Self {
            graphs,
            extras,
            marks: [Event::new(device)?, Event::new(device)?],
            ring: match setup.inputs.is_prepared() {
                false => None,
                true => Some(Ring::new(device, plan.ring, setup.slot_shape())?),
            },
            gang: match setup.exchange.updates() {
                true => None,
                false => Some(GangMemory::new(
                    device,
                    most,
                    layout.len(),
                    layout.trained(),
                )?),
            },
            peers: peers
                .map(|peers| {
                    let on_device = (device, &stream);
                    let write = |to, numbers: &[u64]| memory.write(&stream, to, numbers);
                    PeerExchange::new(on_device, (&plan, &setup), peers, write)
                })
                .transpose()?,
            scoring: Scoring::new(gpu, places, shape, setup.scored_rows)?,
            is_loaded: false,
            step: 0,
            in_epoch: setup.steps(),
            queued: 0,
            gpu: gpu.clone(),
            stream,
            memory,
            set,
            plan,
            setup,
        })
    }
}

/// Checks that there is memory of peers where it is needed, and as much as is needed.
fn check_peers(setup: &Setup, peers: Option<&PeerMemory>) -> Result<(), CudaError> {
    match (peers, setup.exchange.peer_sums()) {
        (None, None) => Ok(()),
        (Some(peers), Some(_)) => peers.check(setup),
        (found, _) => Err(CudaError::Mismatch {
            what: "memory of other workers",
            found: if found.is_some() { "some" } else { "none" }.to_owned(),
            expected: "what the setup says".to_owned(),
        }),
    }
}

/// Checks that the data set is one for the setup, and is there if it is to be resident.
fn check_set(setup: &Setup, set: Option<&DataSet>) -> Result<(), CudaError> {
    let wrong = |what, found: String, expected: String| {
        Err(CudaError::Mismatch {
            what,
            found,
            expected,
        })
    };
    let Some(set) = set else {
        return match setup.inputs {
            InputPlace::Host => Ok(()),
            InputPlace::Resident | InputPlace::Images => {
                wrong("the data set", "none".to_owned(), "one".to_owned())
            }
        };
    };
    if setup.inputs == InputPlace::Host {
        let expected = "none, since the host prepares the batches";
        return wrong("the data set", "one".to_owned(), expected.to_owned());
    }
    if set.place() != setup.inputs {
        let words = |place: InputPlace| format!("{place:?}");
        let (found, expected) = (words(set.place()), words(setup.inputs));
        return wrong("the kind of the data set", found, expected);
    }
    let (found, mut expected) = (set.shape(), setup.row_shape());
    if setup.inputs == InputPlace::Images {
        // The host tells the rest.
        expected = RowShape {
            inputs: expected.inputs,
            ..found
        };
    }
    if found != expected {
        let words = |shape: RowShape| format!("{shape:?}");
        return wrong("the samples of the data set", words(found), words(expected));
    }
    let outputs = setup.model.outputs();
    if set.classes() > outputs {
        return wrong(
            "the classes of the data set",
            set.classes().to_string(),
            format!("at most the {outputs} that the network has"),
        );
    }
    Ok(())
}
