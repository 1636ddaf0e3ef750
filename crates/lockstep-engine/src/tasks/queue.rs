//! Which task is next, and what follows when a worker is lost. Knows no processes.

use std::collections::{HashMap, VecDeque};

/// How often a task may lose its worker before it is taken to be the reason.
pub(super) const TASK_KILLS: usize = 2;

/// The tasks of a job.
#[derive(Debug)]
pub(super) struct TaskQueue {
    /// Those that nobody has, the next one first.
    waiting: VecDeque<usize>,
    /// How many are not done.
    open: usize,
    /// How often a task's worker was lost.
    kills: HashMap<usize, usize>,
    restarts: usize,
    max_restarts: usize,
}

/// What follows from the loss of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterLoss {
    /// Another is to be started in its place.
    Replace,
    /// There is nothing left that another could take.
    LetGo,
    /// This task would end the next one too.
    TaskKills(usize),
    /// Workers were replaced as often as is allowed.
    TooMany,
}

impl TaskQueue {
    /// With so many tasks, for workers that may be replaced so often.
    pub(super) fn new(tasks: usize, max_restarts: usize) -> Self {
        Self {
            waiting: (0..tasks).collect(),
            open: tasks,
            kills: HashMap::new(),
            restarts: 0,
            max_restarts,
        }
    }

    /// Takes the next task off the queue.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.waiting.pop_front()
    }

    /// A task that was taken is done.
    pub(super) fn done(&mut self) {
        self.open -= 1;
    }

    /// Whether all tasks are done.
    pub(super) fn is_done(&self) -> bool {
        self.open == 0
    }

    /// How many tasks are not done.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// How often a worker was replaced.
    pub(super) fn restarts(&self) -> usize {
        self.restarts
    }

    /// A worker is lost, and the task that it had, if any, is the next one again.
    pub(super) fn lost(&mut self, task: Option<usize>) -> AfterLoss {
        if let Some(task) = task {
            self.waiting.push_front(task);
            let kills = self.kills.entry(task).or_default();
            *kills += 1;
            if *kills >= TASK_KILLS {
                return AfterLoss::TaskKills(task);
            }
        }
        if self.waiting.is_empty() {
            return AfterLoss::LetGo;
        }
        if self.restarts == self.max_restarts {
            return AfterLoss::TooMany;
        }
        self.restarts += 1;
        AfterLoss::Replace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_task_is_the_next_one_again() {
        let mut queue = TaskQueue::new(3, 5);
        assert_eq!((queue.take(), queue.take()), (Some(0), Some(1)));
        queue.done();
        assert_eq!(queue.lost(Some(0)), AfterLoss::Replace);
        assert_eq!((queue.take(), queue.take()), (Some(0), Some(2)));
        assert_eq!(queue.take(), None);
        queue.done();
        assert!(!queue.is_done());
        queue.done();
        assert!(queue.is_done());
        assert_eq!((queue.restarts(), queue.open()), (1, 0));
    }

    #[test]
    fn a_task_that_loses_its_worker_twice_is_the_reason() {
        let mut queue = TaskQueue::new(2, 5);
        queue.take();
        assert_eq!(queue.lost(Some(0)), AfterLoss::Replace);
        queue.take();
        assert_eq!(queue.lost(Some(0)), AfterLoss::TaskKills(0));
    }

    #[test]
    fn workers_are_replaced_as_often_as_allowed_and_only_if_there_is_work() {
        let mut queue = TaskQueue::new(2, 2);
        assert_eq!(queue.lost(None), AfterLoss::Replace);
        queue.take();
        assert_eq!(queue.lost(Some(0)), AfterLoss::Replace);
        queue.take();
        queue.take();
        assert_eq!(queue.lost(None), AfterLoss::LetGo);
        assert_eq!(queue.lost(Some(1)), AfterLoss::TooMany);
    }
}
