// Several runs over each other: curves, results, and parameters side by side with the differences marked.

import { get, part } from "../api.js";
import { panel } from "../curve/panel.js";
import { h, put, spaced } from "../dom.js";
import { count, named, shortened, span, value } from "../format.js";
import * as live from "../live.js";
import { empty, head, middle, state } from "../parts.js";
import { go, keep } from "../router.js";
import { curveColour } from "../theme.js";

/** Whether less of a metric is better. */
const low = (name) => /loss|error|mse|mae|rmse|perplexity/.test(name);

/** What tells these runs apart in few letters: the job, and the end of the name. */
function labels(runs) {
  const jobs = new Set(runs.map((run) => run.job));
  return runs.map((run) => shortened(jobs.size === runs.length ? run.job : `${jobs.size > 1 ? `${run.job} ` : ""}${run.name.split("-").pop()}`));
}

function heads(runs, names) {
  return h("thead", {}, h("tr", {}, h("th", {}, ""), runs.map((run, at) => h("th", {},
    h("i", { class: "dot", css: { background: `var(${curveColour(at)})` } }), h("a", { href: `/runs/${part(run.name)}` }, names[at])))));
}

/** What stands in the column of a run. On a phone, where there are no columns, it says of which run it is. */
function cell(names, at, kind, props, content) {
  return h("td", { class: kind, data: { name: names[at] }, css: { "--dot": `var(${curveColour(at)})` }, ...props }, content);
}

function results(runs, names) {
  const all = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))].sort();
  const facts = [
    ["state", (run) => state(run.state)], ["workers", (run) => count(run.workers)], ["epochs", (run) => `${run.epochs_done}`],
    ["took", (run) => span(run.duration_s)], ["samples/s", (run) => (run.samples_per_s ? count(run.samples_per_s) : "–")],
    ["restarts", (run) => count(run.restarts)], ["weights", (run) => h("span", { class: "mono" }, run.weights_sha256?.slice(0, 12) ?? "–")],
  ];
  return h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "side-by-side" }, heads(runs, names), h("tbody", {},
    all.map((name) => {
      const known = runs.map((run) => run.metrics[name]).filter(Number.isFinite);
      const best = low(name) ? Math.min(...known) : Math.max(...known);
      return h("tr", {}, h("th", { scope: "row" }, name), runs.map((run, at) => {
        const is = run.metrics[name] === best && known.length > 1 && new Set(known).size > 1;
        return cell(names, at, is ? "num best" : "num", {}, named(name, run.metrics[name]));
      }));
    }),
    facts.map(([name, of]) => h("tr", {}, h("th", { scope: "row" }, name), runs.map((run, at) => cell(names, at, "num", {}, of(run))))))));
}

function parameters(runs, names, only) {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.params)))].sort();
  const rows = keys.map((key) => {
    const texts = runs.map((run) => JSON.stringify(run.params[key]));
    return { key, differs: new Set(texts).size > 1 };
  });
  const shown = rows.filter((row) => row.differs || !only);
  if (!shown.length) return empty("No differences", "All parameters of these runs are the same.");
  return h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "side-by-side" }, heads(runs, names), h("tbody", {}, shown.map(({ key, differs }) =>
    h("tr", { class: differs && !only ? "differs" : null }, h("th", { scope: "row", class: "mono" }, key, differs && h("span", { class: "hide" }, " (differs)")),
      runs.map((run, at) => cell(names, at, "mono cut", { title: value(run.params[key]) }, value(run.params[key]))))))));
}

export async function open({ main, signal, values }) {
  const names = (values.get("runs") ?? "").split(",").filter(Boolean).slice(0, 12);
  document.title = "Compare – Lockstep";
  const runs = await Promise.all(names.map((name) => get(`runs/${part(name)}`, {}, signal)));
  const short = labels(runs);
  const others = await get("runs", { limit: 200 }, signal);
  const address = (list) => `/compare?runs=${list.map(part).join(",")}`;
  const add = h("select", { "aria-label": "Add a run", on: { change: () => { if (add.value) go(address([...names, add.value])); } } },
    h("option", { value: "" }, "Add a run …"),
    others.runs.filter((run) => !names.includes(run.name)).map((run) => h("option", { value: run.name }, run.name)));
  const chips = h("div", { class: "runs-chips" }, runs.map((run, at) => h("span", { class: "chip" },
    h("i", { css: { background: `var(${curveColour(at)})` } }), h("a", { href: `/runs/${part(run.name)}`, title: run.name }, middle(run.name, 20)),
    h("button", { type: "button", "aria-label": `Take ${run.name} away`, on: { click: () => go(address(names.filter((one) => one !== run.name))) } }, "×"))), add);
  if (!runs.length) {
    put(main, head("Compare", null, [], ["/runs", "Runs"]), chips, empty("Nothing to compare yet", "Choose runs here, or in the list of runs."));
    return;
  }
  const [figures, params] = [h("div", {}), h("div", {})];
  let only = values.get("all") !== "1";
  const draw = () => {
    put(figures, results(runs, short));
    put(params, parameters(runs, short, only));
  };
  const toggle = h("label", { class: "check small" }, h("input", { type: "checkbox", checked: only, on: { change: (event) => {
    only = event.target.checked;
    keep({ all: !only });
    draw();
  } } }), "Only what differs");
  const curves = panel({
    runs: runs.map((run, at) => ({ name: run.name, label: short[at], started: run.started, marks: run.marks })), values, signal,
  });
  draw();
  put(main, head(`${runs.length === 1 ? "One run" : `${count(runs.length)} runs`} compared`, null, [], ["/runs", "Runs"]), chips, curves.element,
    h("section", { class: "part" }, h("header", {}, h("h2", {}, "Results")), figures),
    h("section", { class: "part" }, h("header", {}, h("h2", {}, "Parameters"), toggle), params));
  live.want({ runs: names });
  const again = spaced(1500, async () => {
    const next = await Promise.all(names.map((name) => get(`runs/${part(name)}`, {}, signal))).catch(() => null);
    if (next) { next.forEach((run, at) => Object.assign(runs[at], run)); draw(); }
  });
  for (const kind of ["runs", "again"]) live.on(kind, again, signal);
  live.on("run", (run) => { if (names.includes(run.name)) again(); }, signal);
  await curves.ready;
}
