//! What the gang's end comes to, in words.

use super::{GangOutcome, STOP_DEADLINE, Supervisor};

impl Supervisor<'_> {
    /// What all workers' last words come to: they must agree on the weights.
    pub(super) fn agreement(&self) -> GangOutcome {
        let ends = self.gang.members.iter().enumerate();
        let mut ends = ends.filter_map(|(seat, member)| Some((seat, member.finished.as_ref()?)));
        let (first_seat, first) = ends.next().expect("somebody finished");
        for (seat, end) in ends {
            if let (Some(one), Some(other)) = (&first.weights_sha256, &end.weights_sha256)
                && one != other
            {
                return GangOutcome::Failed(format!(
                    "workers {first_seat} and {seat} ended with different weights ({one} and {other}): this is a bug"
                ));
            }
        }
        GangOutcome::Finished(Box::new(first.clone()))
    }

    /// Who failed first, and why.
    pub(super) fn verdict(&self) -> String {
        let Some(seat) = self.root_cause.culprit() else {
            return "the gang failed".to_string();
        };
        let reason = self.root_cause.reason(seat);
        let worker = self.gang.describe(seat);
        let mut verdict = format!("{worker} failed first: {reason}");
        if let Some(line) = &self.gang.members[seat].last_line
            && self.root_cause.has_last_words(seat)
        {
            verdict += &format!("; the last it wrote was: {line}");
        }
        verdict
    }

    pub(super) fn slow_to_stop(&self) -> String {
        let slow = self
            .gang
            .members
            .iter()
            .position(|member| member.finished.is_none());
        let worker = self.gang.describe(slow.unwrap_or(0));
        let seconds = STOP_DEADLINE.as_secs();
        format!("{worker} did not stop within {seconds} s of being asked to")
    }
}
