//! An index says what the folders say, however it came about.

use crate::common::{BEGAN, Written, place, whole};
use lockstep_index::filter::Filter;
use lockstep_index::{Index, Keys, Kind, MarkKind, Point, Run, State, tags};
use serde_json::json;
use std::path::Path;

fn index(store: &Path) -> Index {
    let mut index = Index::open(&place(store), None).unwrap();
    let refreshed = index.refresh_all().unwrap();
    assert_eq!(refreshed.unreadable, []);
    index
}

fn runs(index: &Index) -> Vec<Run> {
    index.runs(&Keys::All).unwrap()
}

fn points(index: &Index, run: &str, name: &str) -> Vec<(u64, f64)> {
    let series = index.series(run, |_, found| found == name).unwrap();
    let points = series.into_iter().flat_map(|series| series.points);
    points
        .map(|Point { step, value, .. }| (step, value))
        .collect()
}

#[test]
fn a_run_is_known_with_its_job_its_metrics_and_its_end() {
    let store = tempfile::tempdir().unwrap();
    let name = whole(store.path(), "digits", 0.05, 0.9);
    let index = index(store.path());
    assert!(store.path().join("index.sqlite").exists());
    let details = index.details(&name).unwrap().unwrap();
    let run = &details.run;
    assert_eq!((run.job.as_str(), run.state), ("digits", State::Succeeded));
    assert_eq!(run.params["train.optimizer.lr"], 0.05);
    assert_eq!(run.metric("accuracy"), Some(0.9));
    assert_eq!(run.metric("val.loss"), Some(0.4));
    assert_eq!(run.metric("train.loss"), Some(0.5));
    assert_eq!((run.workers, run.epochs_done, run.restarts), (2, 3, 1));
    assert_eq!((run.started, run.duration(0.0)), (Some(BEGAN), Some(60.0)));
    assert_eq!(run.data[0].sha256, "ab");
    assert_eq!(details.result.unwrap()["best_epoch"], 3);
    assert!(
        details
            .artifacts
            .iter()
            .any(|file| file.path == "job.toml" && file.size > 10)
    );
    assert_eq!(points(&index, &name, "loss").len(), 9);
    assert_eq!(
        points(&index, &name, "val.accuracy"),
        [(100, 0.9), (200, 0.9), (300, 0.9)]
    );
    assert_eq!(run.marks, []);
}

#[test]
fn a_metric_is_found_by_the_names_that_it_had_in_mlflow_before() {
    let store = tempfile::tempdir().unwrap();
    whole(store.path(), "digits", 0.05, 0.9);
    let index = index(store.path());
    let names = index.names().unwrap();
    let run = &runs(&index)[0];
    for filter in [
        "train_loss < 0.6",
        "result.accuracy > 0.8",
        "train.loss < 0.6",
    ] {
        let filter = Filter::parse(filter).unwrap().resolve(&names).unwrap();
        assert!(filter.holds(run, 0.0));
    }
    assert_eq!(run.metric_name("train_loss").as_deref(), Some("train.loss"));
}

#[test]
fn what_interrupts_a_curve_is_marked_and_its_beginning_is_not() {
    let store = tempfile::tempdir().unwrap();
    let written = Written::begin(store.path(), "digits", 0.1);
    written.progress(1, 50, 1.0);
    let restart = json!({"event": "restart", "restart": 1, "workers": 1, "reason": "worker 1 was killed",
        "from": "x", "step": 40});
    written.event(5.0, restart);
    let resized = json!({"event": "resized", "workers": 2, "reason": "worker 1 came", "step": 60});
    written.event(6.0, resized);
    let marks = &runs(&index(store.path()))[0].marks;
    let found: Vec<_> = marks
        .iter()
        .map(|mark| (mark.kind, mark.step, mark.workers))
        .collect();
    let wanted = [(MarkKind::Restart, 40, 1), (MarkKind::Resized, 60, 2)];
    assert_eq!(found, wanted);
    assert_eq!(marks[0].reason, "worker 1 was killed");
    assert_eq!(marks[0].time, BEGAN + 5.0);
}

#[test]
fn what_is_added_is_read_and_what_was_read_is_not_read_again() {
    let store = tempfile::tempdir().unwrap();
    let mut written = Written::begin(store.path(), "digits", 0.1);
    written.progress(1, 10, 1.0);
    let mut index = index(store.path());
    let name = written.run.name.clone();
    assert_eq!(runs(&index)[0].state, State::Running);
    // A line that is being written is read when it is whole.
    written.text("{\"v\":1,\"time\":1794000002.0,\"event\":\"progress\",\"epoch\":1,");
    index.refresh(&written.run).unwrap();
    assert_eq!(points(&index, &name, "loss"), [(10, 1.0)]);
    written.text(
        "\"step\":20,\"steps\":100,\"loss\":0.5,\"samples_per_s\":1.0,\"rank\":0}\nnot json\n",
    );
    written.event(3.0, json!({"event": "from the future", "x": 1}));
    index.refresh(&written.run).unwrap();
    assert_eq!(points(&index, &name, "loss"), [(10, 1.0), (20, 0.5)]);
    written.end(0.8);
    assert_eq!(index.refresh_all().unwrap().read, 1);
    assert_eq!(runs(&index)[0].state, State::Succeeded);
    assert_eq!(index.refresh_all().unwrap().read, 0);
}

#[test]
fn of_steps_that_are_done_twice_the_last_word_counts() {
    let store = tempfile::tempdir().unwrap();
    let written = Written::begin(store.path(), "digits", 0.1);
    for step in [10, 20, 30, 40] {
        written.progress(1, step, 1.0);
    }
    let mut index = index(store.path());
    // Back to step 20, and killed before anything is told again.
    written.event(
        9.0,
        json!({"event": "restart", "restart": 1, "workers": 1, "reason": "", "step": 20}),
    );
    index.refresh(&written.run).unwrap();
    let name = &written.run.name;
    assert_eq!(points(&index, name, "loss"), [(10, 1.0), (20, 1.0)]);
    written.progress(1, 30, 2.0);
    // A record without that word, as earlier versions wrote it: steps tell it.
    written.progress(1, 20, 3.0);
    written.progress(1, 35, 3.0);
    index.refresh(&written.run).unwrap();
    assert_eq!(
        points(&index, name, "loss"),
        [(10, 1.0), (20, 3.0), (35, 3.0)]
    );
    // Nor does one of before say where a restart goes back to.
    written.event(
        9.5,
        json!({"event": "restart", "restart": 2, "workers": 1, "reason": "", "from": "x"}),
    );
    index.refresh(&written.run).unwrap();
    assert_eq!(points(&index, name, "loss").len(), 3);
    // All read at once comes to the same.
    let again = Index::open(&place(store.path()), None).unwrap();
    drop(again);
    Index::clear(&place(store.path()), None).unwrap();
    let anew = self::index(store.path());
    assert_eq!(
        points(&anew, name, "loss"),
        [(10, 1.0), (20, 3.0), (35, 3.0)]
    );
}

#[test]
fn many_points_are_kept_in_order_over_many_rows() {
    let store = tempfile::tempdir().unwrap();
    let written = Written::begin(store.path(), "digits", 0.1);
    let mut index = index(store.path());
    for epoch in 1..=60 {
        for step in 1..=100 {
            written.progress(epoch, step, step as f64);
        }
        if epoch % 7 == 0 {
            index.refresh(&written.run).unwrap();
        }
    }
    index.refresh(&written.run).unwrap();
    let found = points(&index, &written.run.name, "loss");
    assert_eq!(found.len(), 6000);
    assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
    // Back to the middle of a row.
    written.event(9.0, json!({"event": "started", "resumed_step": 3333}));
    index.refresh(&written.run).unwrap();
    assert_eq!(points(&index, &written.run.name, "loss").len(), 3333);
    let run = &runs(&index)[0];
    assert_eq!(run.resumes, 1);
    let mark = &run.marks[0];
    assert_eq!((mark.kind, mark.step), (MarkKind::Resumed, 3333));
    let system = index
        .series(&written.run.name, |kind, _| kind == Kind::System)
        .unwrap();
    assert_eq!(system[0].points.len(), 6000);
}

#[test]
fn a_run_whose_process_is_gone_is_lost_and_one_that_goes_on_again_is_not() {
    let store = tempfile::tempdir().unwrap();
    let mut written = Written::begin(store.path(), "digits", 0.1);
    written.progress(1, 10, 1.0);
    let mut index = index(store.path());
    assert_eq!(runs(&index)[0].state, State::Running);
    written.lock = None;
    index.refresh_all().unwrap();
    assert_eq!(runs(&index)[0].state, State::Lost);
    written.lock = Some(written.run.lock(&mut |_| {}).unwrap());
    index.refresh_all().unwrap();
    assert_eq!(runs(&index)[0].state, State::Running);
}

#[test]
fn folders_that_are_gone_are_forgotten_and_other_folders_are_no_runs() {
    let store = tempfile::tempdir().unwrap();
    let first = whole(store.path(), "a", 0.1, 0.5);
    let second = whole(store.path(), "b", 0.1, 0.5);
    std::fs::create_dir_all(store.path().join("models/x/versions")).unwrap();
    let mut index = index(store.path());
    assert_eq!(runs(&index).len(), 2);
    std::fs::remove_dir_all(store.path().join(&first)).unwrap();
    assert_eq!(index.refresh_all().unwrap().gone, 1);
    let left: Vec<String> = runs(&index).into_iter().map(|run| run.name).collect();
    assert_eq!(left, [second]);
    assert_eq!(points(&index, &first, "loss"), []);
}

#[test]
fn tags_survive_the_index() {
    let store = tempfile::tempdir().unwrap();
    let name = whole(store.path(), "digits", 0.1, 0.5);
    let run = lockstep_runs::RunDir::named(&name, place(store.path()).join(&name).unwrap());
    let mut index = index(store.path());
    tags::change(&run, &|said| {
        said.tags.insert("good".into(), "yes".into());
        said.note = "a note".into();
    })
    .unwrap();
    assert_eq!(index.refresh_all().unwrap().read, 1);
    let before = runs(&index);
    assert_eq!(before[0].tags["good"], "yes");
    drop(index);
    Index::clear(&place(store.path()), None).unwrap();
    assert_eq!(runs(&self::index(store.path())), before);
}

#[test]
fn a_store_that_is_not_there_is_empty_and_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("runs");
    assert_eq!(runs(&index(&store)).len(), 0);
    assert!(!store.exists());
}
