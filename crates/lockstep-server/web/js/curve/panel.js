// Charts of several metrics and runs beside each other, with one set of choices: smoothing, scale, what they go along,
// and which part is seen. The choices stand in the address.

import { get } from "../api.js";
import { calm, h, put } from "../dom.js";
import { named } from "../format.js";
import * as live from "../live.js";
import { empty } from "../parts.js";
import { keep } from "../router.js";
import { curveColour } from "../theme.js";
import { Chart } from "./chart.js";
import { curve, extend } from "./series.js";

const DASHES = { train: [5, 3], test: [2, 3] };
const FIRST = ["loss", "accuracy"];
const TITLES = { cpu_percent: "CPU", memory_bytes: "Memory", samples_per_s: "Samples a second", waiting: "Waiting for peers" };

/** What a series measures, and on which set. `val.loss` is a loss; `worker.3.cpu_percent` one of a worker. */
function meaning(name, system) {
  if (system) {
    const found = name.match(/^worker\.(\d+)\.(.+)$/);
    return found ? { chart: found[2], label: `worker ${found[1]}` } : { chart: name, label: "all workers" };
  }
  const found = name.match(/^(train|val|test)\.(.+)$/);
  return found ? { chart: found[2], label: found[1], set: found[1] } : { chart: name, label: name === "loss" ? "steps" : name };
}

/** A panel of the curves of these runs: `[{ name, label, state, started, marks }]`. */
export function panel({ runs, system = false, values, signal }) {
  const options = {
    log: values.get("log") === "1",
    smooth: Number(values.get("smooth") ?? 0) || 0,
    by: system || values.get("x") === "time" ? "time" : "step",
    zoom: zoomOf(values.get("zoom")),
    hover: null,
  };
  const only = new Set((values.get("show") ?? "").split(",").filter(Boolean));
  const charts = new Map();
  const data = new Map();
  const grid = h("div", { class: "charts" });
  const several = runs.length > 1;
  let width = 800;

  const at = (run) => (point) => (options.by === "time" ? point[1] - run.started : point[0]);
  const redraw = () => charts.forEach(({ chart }) => chart.draw());

  function zoomed(ends) {
    options.zoom = ends;
    keep({ zoom: ends ? ends.map((end) => Number(end.toPrecision(7))).join(":") : "" });
    unzoom.hidden = !ends;
    redraw();
    refine();
  }

  async function load() {
    const [from, to] = options.zoom ?? [null, null];
    const sent = await get("curves", {
      runs: runs.map((run) => run.name).join(","), system, by: options.by, width, from, to,
    }, signal);
    data.clear();
    for (const of of sent) data.set(of.run, new Map(of.series.map((one) => [one.name, curve(one)])));
    arrange();
  }
  const refine = calm(250, () => load().catch(() => {}));

  function arrange() {
    const groups = new Map();
    runs.forEach((run, number) => {
      for (const [name, one] of data.get(run.name) ?? []) {
        const { chart, label, set } = meaning(name, system);
        if (!groups.has(chart)) groups.set(chart, []);
        const lines = groups.get(chart);
        const sets = several && set ? ` ${set}` : "";
        lines.push({
          label: several ? `${run.label}${sets || (label === "steps" ? "" : ` ${label}`)}` : label,
          colour: curveColour(several ? number : colourOf(label, lines.length)),
          dash: several ? DASHES[set] : null, curve: one, run: run.label, set,
        });
      }
    });
    const names = [...groups.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    const shown = names.filter((name) => !only.size || only.has(name));
    for (const [name, { chart, element }] of charts) {
      if (!shown.includes(name)) {
        chart.close();
        element.remove();
        charts.delete(name);
      }
    }
    for (const name of shown) {
      if (!charts.has(name)) charts.set(name, make(name));
      const { chart, legend, element } = charts.get(name);
      grid.append(element);
      chart.show(groups.get(name), marks());
      put(legend, several ? ofRuns(groups.get(name), name) : groups.get(name).slice(0, 16).map((line) => entry(line, line.label, name)));
    }
    chooser.hidden = names.length < 2;
    put(chooser, names.length > 1 && [h("summary", { class: "button small" }, "Charts"), h("div", {}, names.map((name) =>
      h("label", {}, h("input", { type: "checkbox", checked: !only.size || only.has(name), on: { change: (event) => {
        if (!only.size) names.forEach((one) => only.add(one));
        if (event.target.checked) only.add(name); else only.delete(name);
        keep({ show: only.size === names.length ? "" : [...only].join(",") });
        arrange();
      } } }), name)))]);
    nothing.hidden = shown.length > 0;
  }

  function make(name) {
    const legend = h("div", { class: "legend" });
    const chart = new Chart({ name, options, changed: redraw, zoomed });
    const element = h("figure", { class: "card chart", data: { chart: name } },
      h("figcaption", {}, h("h3", {}, TITLES[name] ?? name.replaceAll("_", " ")), legend), chart.element);
    return { chart, legend, element };
  }

  function marks() {
    return runs.flatMap((run) => (run.marks ?? []).map((mark) => ({
      x: options.by === "time" ? mark.time - run.started : mark.step,
      words: `${several ? `${run.label}: ` : ""}${{ restart: "Restarted", resized: "Resized", resumed: "Resumed" }[mark.kind]}`
        + `${mark.workers ? ` with ${mark.workers} workers` : ""}${mark.reason ? `: ${mark.reason}` : ""}`,
    })));
  }

  const redrawAll = () => { redraw(); };
  const smoothing = h("input", { type: "range", min: 0, max: .98, step: .02, value: String(options.smooth), "aria-label": "Smoothing",
    on: { input: () => {
      options.smooth = Number(smoothing.value);
      keep({ smooth: options.smooth || "" });
      redrawAll();
    } } });
  const log = h("button", { type: "button", class: "small", "aria-pressed": String(options.log), on: { click: () => {
    options.log = !options.log;
    log.setAttribute("aria-pressed", String(options.log));
    keep({ log: options.log });
    redrawAll();
  } } }, "Log scale");
  const along = [["step", "Steps"], ["time", "Time"]].map(([by, words]) => h("button", {
    type: "button", class: "small", "aria-pressed": String(options.by === by), on: { click: () => {
      options.by = by;
      along.forEach((button, number) => button.setAttribute("aria-pressed", String(["step", "time"][number] === by)));
      options.zoom = null;
      unzoom.hidden = true;
      keep({ x: by === "time" ? "time" : "", zoom: "" });
      load().catch(() => {});
    } },
  }, words));
  const unzoom = h("button", { type: "button", class: "small", hidden: !options.zoom, on: { click: () => zoomed(null) } }, "Show everything");
  const chooser = h("details", { class: "menu" });
  const nothing = empty("No curves yet", "They appear as soon as something is measured.");
  nothing.hidden = true;

  live.on("points", (news) => {
    const run = runs.find((one) => one.name === news.run);
    if (!run) return;
    run.started ??= news.started;
    const known = data.get(run.name) ?? new Map();
    data.set(run.name, known);
    let grown = false;
    for (const [name, points] of Object.entries(system ? news.system : news.series)) {
      if (!known.has(name)) known.set(name, { name, x: [], y: [], low: null, high: null, last: null });
      grown = extend(known.get(name), points, at(run)) || grown;
    }
    if (grown) arrange();
  }, signal);
  live.on("again", () => load().catch(() => {}), signal);
  signal.addEventListener("abort", () => charts.forEach(({ chart }) => chart.close()));

  const bar = h("div", { class: "bar curve-bar" },
    h("label", { class: "check small" }, "Smoothing", smoothing), log,
    !system && h("div", { class: "group", role: "group", "aria-label": "Along" }, along), unzoom,
    h("span", { class: "small faint wide end" }, "Drag to zoom, double-click to see everything"), chooser);
  width = Math.max(300, Math.min(1600, Math.round(innerWidth / 2)));
  return { element: h("div", {}, bar, grid, nothing), ready: load(), reload: load };
}

function entry(line, label, name) {
  return h("span", {}, h("i", { css: { background: `var(${line.colour})` } }), label, " ", h("b", { class: "num" }, named(name, line.curve.last?.[2])));
}

/** Of each run one entry: what was measured on validation data, or else whatever was. Dashes are told once. */
function ofRuns(lines, name) {
  const runs = new Map();
  for (const line of lines) if (!runs.has(line.run) || line.set === "val") runs.set(line.run, line);
  const dashes = ["train", "test"].filter((set) => lines.some((line) => line.set === set));
  const words = { train: "dashed: train", test: "dotted: test" };
  return [[...runs.values()].map((line) => entry(line, line.run, name)), dashes.map((set) => h("span", { class: "faint" }, words[set]))];
}

function zoomOf(text) {
  const ends = (text ?? "").split(":").map(Number);
  return ends.length === 2 && ends.every(Number.isFinite) && ends[1] > ends[0] ? ends : null;
}

function rank(name) {
  const at = FIRST.indexOf(name);
  return at < 0 ? FIRST.length : at;
}

function colourOf(label, number) {
  return { steps: 0, train: 4, val: 1, test: 2 }[label] ?? number;
}
