//! The files of the dashboard, as they lie in `web/`.

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../../web/", $name)))),*]
    };
}

/// The name and the content of each file.
pub(super) const FILES: &[(&str, &[u8])] = files! {
    "icon.svg"
    "index.html"
    "js/api.js"
    "js/app.js"
    "js/curve/chart.js"
    "js/curve/panel.js"
    "js/curve/scale.js"
    "js/curve/series.js"
    "js/dom.js"
    "js/evaluation.js"
    "js/events.js"
    "js/format.js"
    "js/icons.js"
    "js/jobs.js"
    "js/keys.js"
    "js/live.js"
    "js/log.js"
    "js/machine.js"
    "js/me.js"
    "js/models.js"
    "js/pages/benchmarks.js"
    "js/pages/cluster.js"
    "js/pages/compare.js"
    "js/pages/job.js"
    "js/pages/jobs.js"
    "js/pages/model.js"
    "js/pages/models.js"
    "js/pages/overview.js"
    "js/pages/run.js"
    "js/pages/runs.js"
    "js/parts.js"
    "js/router.js"
    "js/runs.js"
    "js/table.js"
    "js/theme.js"
    "style/base.css"
    "style/layout.css"
    "style/pages.css"
    "style/parts.css"
};
