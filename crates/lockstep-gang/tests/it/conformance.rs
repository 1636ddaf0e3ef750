//! Every implementation of [`Collective`] keeps its promises.

use lockstep_gang::conformance::toy::{chunks, reference, train};
use lockstep_gang::*;

mod shm {
    lockstep_gang::conformance_tests!(crate::gangs::shm);
}

mod tcp {
    lockstep_gang::conformance_tests!(crate::gangs::tcp);
}

#[test]
fn a_gang_of_one_has_the_bits_of_the_sequential_run() {
    for lanes in [1, 4, 5] {
        let plan = Plan::new(chunks(&[40, 7, 300]), lanes, 1).unwrap();
        let expected = reference(5, 6, lanes, plan.len());
        let mut solo = Solo::new(plan, AbortSwitch::default()).unwrap();
        assert_eq!(train(&mut solo, 5, 6).unwrap(), expected);
    }
}
