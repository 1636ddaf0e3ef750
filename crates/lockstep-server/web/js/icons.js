// Small pictures, drawn with one stroke.

import { svg } from "./dom.js";

const PATHS = {
  overview: "M3 12l9-8 9 8M6 10v10h12V10",
  jobs: "M4 6h16M4 12h16M4 18h10",
  runs: "M3 20V4M3 20h18M6 16l4-6 4 3 6-8",
  models: "M12 3l8 4.5v9L12 21l-8-4.5v-9zM12 12l8-4.5M12 12v9M12 12L4 7.5",
  cluster: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  benchmarks: "M5 20v-8M12 20V4M19 20v-12",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  moon: "M20 14.5A8.5 8.5 0 119.5 4a7 7 0 0010.5 10.5z",
  half: "M12 3a9 9 0 100 18zM12 3a9 9 0 010 18",
  help: "M9 9a3 3 0 115 2.2c-1.2.9-2 1.4-2 2.8M12 18h.01",
  down: "M12 4v14M6 12l6 6 6-6",
  left: "M15 5l-7 7 7 7",
  stop: "M7 7h10v10H7z",
  again: "M4 12a8 8 0 0113.7-5.6L20 9M20 4v5h-5M20 12a8 8 0 01-13.7 5.6L4 15M4 20v-5h5",
  remove: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  link: "M10 14a4 4 0 005.7 0l3-3a4 4 0 00-5.7-5.7l-1 1M14 10a4 4 0 00-5.7 0l-3 3a4 4 0 005.7 5.7l1-1",
  columns: "M4 4h16v16H4zM10 4v16M15 4v16",
};

/** A picture by its name; it is left to the words beside it to say what it means. */
export function icon(name, size = 18) {
  return svg("svg", {
    viewBox: "0 0 24 24", width: size, height: size, fill: "none", stroke: "currentColor",
    "stroke-width": 1.8, "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
  }, svg("path", { d: PATHS[name] }));
}

// How something is has a shape beside its colour, for those who see no difference between colours.
const STATES = {
  running: [["circle", { cx: 7, cy: 7, r: 5, opacity: .3 }], ["path", { d: "M7 2a5 5 0 015 5", class: "turn" }]],
  pending: [["circle", { cx: 7, cy: 7, r: 5, "stroke-dasharray": "2.2 2.4" }]],
  succeeded: [["circle", { cx: 7, cy: 7, r: 5.2, opacity: .35 }], ["path", { d: "M4.6 7.2l1.8 1.8 3.2-3.8" }]],
  failed: [["circle", { cx: 7, cy: 7, r: 5.2, opacity: .35 }], ["path", { d: "M5 5l4 4M9 5l-4 4" }]],
  interrupted: [["circle", { cx: 7, cy: 7, r: 5.2, opacity: .35 }], ["path", { d: "M5.7 5v4M8.3 5v4" }]],
  lost: [["circle", { cx: 7, cy: 7, r: 5.2, opacity: .35 }], ["path", { d: "M7 4.2v3.4M7 9.7v.1" }]],
};
STATES.alive = STATES.succeeded;
STATES.draining = STATES.interrupted;
STATES.dead = STATES.failed;
STATES.stopped = [STATES.interrupted[0], ["path", { d: "M5.2 5.2h3.6v3.6H5.2z" }]];

/** The shape of a state. */
export function shape(state) {
  return svg("svg", {
    viewBox: "0 0 14 14", width: 14, height: 14, fill: "none", stroke: "currentColor", "stroke-width": 1.7,
    "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
  }, (STATES[state] ?? STATES.pending).map(([tag, props]) => svg(tag, props)));
}
