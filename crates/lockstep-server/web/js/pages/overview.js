// The first page: what runs now, what came of the last runs, and the machine.

import { get } from "../api.js";
import { Chart } from "../curve/chart.js";
import { curve, extend } from "../curve/series.js";
import { h, put, spaced } from "../dom.js";
import { count, named, plural, span } from "../format.js";
import * as live from "../live.js";
import { machineStrip } from "../machine.js";
import { empty, head, meter, middle, runName, section, state, took, when } from "../parts.js";
import { curveColour } from "../theme.js";

const NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"];

function words(number, one, several) {
  return `${NUMBERS[number] ?? count(number)} ${number === 1 ? one : several}`;
}

/** The state of things in a sentence or two. */
function sentence({ going_count: going, counts, runs }) {
  const said = [];
  if (going) said.push(words(going, "run is training", "runs are training"));
  if (counts.running) said.push(words(counts.running, "job runs", "jobs run"));
  if (counts.pending) said.push(words(counts.pending, "job waits", "jobs wait"));
  if (counts.failed_of_late) said.push(words(counts.failed_of_late, "job failed today", "jobs failed today"));
  if (!said.length) return runs ? "All is quiet." : "Ready for a first run.";
  return `${said.join(". ")}.`;
}

/** How far a run is, from 0 to 1, and when it may be done. */
export function progress(run) {
  const all = run.epochs * run.steps_per_epoch;
  const share = all ? run.step / all : run.epochs ? run.epochs_done / run.epochs : 0;
  const rest = share > .02 && run.duration_s ? run.duration_s / share * (1 - share) : null;
  return { share, rest };
}

function card(run) {
  const chart = new Chart({ name: "loss", options: {}, height: 132, small: true });
  const curves = new Map(run.curves.map((one) => [one.name, curve(one)]));
  const figures = h("div", { class: "figures" });
  const bar = h("div", {});
  const element = h("a", { class: "card going", href: `/runs/${encodeURIComponent(run.name)}` });

  function draw() {
    const lines = [...curves.values()].map((one) => ({
      label: one.name, curve: one, colour: curveColour(one.name.startsWith("val.") ? 1 : one.name.startsWith("train.") ? 4 : 0),
    }));
    chart.show(lines);
    const { share, rest } = progress(run);
    const last = [...curves.values()].find((one) => !one.name.includes(".")) ?? [...curves.values()][0];
    const measured = Object.entries(run.metrics).filter(([name]) => /^(val|test)\.|accuracy/.test(name)).slice(0, 2);
    put(figures,
      last?.last && h("div", {}, h("span", {}, last.name), h("b", { class: "num" }, named(last.name, last.last[2]))),
      measured.map(([name, value]) => h("div", {}, h("span", {}, name), h("b", { class: "num" }, named(name, value)))));
    put(bar, meter(share, `${run.name}: how far`, "on"), h("div", { class: "under" },
      h("span", { class: "num" }, run.epochs ? `epoch ${Math.min(run.epochs, run.epochs_done + 1)} of ${run.epochs}` : `${count(run.step)} reports`),
      h("span", { class: "num" }, rest ? `about ${span(rest)} left` : plural(run.workers, "worker"))));
  }
  put(element, h("div", { class: "top" }, h("div", { class: "names" }, h("h3", {}, middle(run.job)),
    h("span", { class: "mono faint" }, middle(run.name, 20))), state(run.state)), figures, chart.element, bar);
  draw();
  return {
    element, chart,
    row(next) { Object.assign(run, next); draw(); },
    points(news) {
      for (const [name, points] of Object.entries(news.series)) {
        if (curves.has(name)) extend(curves.get(name), points, (point) => point[0]);
      }
      draw();
    },
  };
}

/** The figure that says most about a run that has ended. */
export function result(run) {
  const names = Object.keys(run.metrics);
  const wanted = ["test.accuracy", "val.accuracy", "test.r2", "test.loss", "val.loss", "train.accuracy", "train.loss"];
  const name = wanted.find((one) => names.includes(one)) ?? names[0];
  return name ? [name, named(name, run.metrics[name])] : null;
}

function lately(runs) {
  if (!runs.length) return empty("No run has ended yet", "What runs come to is shown here.");
  return h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, h("th", { class: "first" }, "Run"), h("th", {}, "State"), h("th", { class: "right" }, "Result"),
      h("th", { class: "right wide" }, "Epochs"), h("th", { class: "right wide" }, "Took"), h("th", { class: "right" }, "Ended"))),
    h("tbody", {}, runs.map((run) => {
      const found = result(run);
      return h("tr", { data: { row: run.name } },
        h("td", { class: "first" }, runName(run)),
        h("td", {}, state(run.state)),
        h("td", { class: "right" }, found ? [h("span", { class: "faint small" }, `${found[0]} `), found[1]] : "–"),
        h("td", { class: "right wide" }, run.epochs_done || "–"),
        h("td", { class: "right wide" }, took(run.duration_s)),
        h("td", { class: "right" }, when(run.ended ?? run.started)));
    }))));
}

function queue(jobs) {
  return h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" }, h("tbody", {}, jobs.map((job) => h("tr", { data: { row: job.id } },
    h("td", { class: "first" }, h("a", { href: `/jobs/${encodeURIComponent(job.id)}`, class: "mono", data: { key: job.id } }, middle(job.entrypoint, 20))),
    h("td", {}, state(job.status)),
    h("td", { class: "wide soft" }, job.user),
    h("td", { class: "right" }, job.started_ms
      ? took(Date.now() / 1000 - job.started_ms / 1000, job.started_ms / 1000)
      : h("span", { class: "soft" }, job.position ? `${count(job.position)} before it` : "next")))))));
}

export async function open({ main, signal }) {
  document.title = "Overview – Lockstep";
  const lead = h("p", { class: "headline" });
  const [now, active, ended] = [h("div", {}), h("div", {}), h("div", {})];
  const strip = machineStrip();
  let cards = new Map();

  function show(found) {
    lead.textContent = sentence(found);
    cards.forEach(({ chart }) => chart.close());
    cards = new Map(found.going.map((run) => [run.name, card(run)]));
    put(now, found.going.length ? section("Now", found.going_count > found.going.length ? ["/runs?filter=status+%3D+running", "All"] : null,
      h("div", { class: "cards" }, [...cards.values()].map(({ element }) => element))) : null);
    put(active, found.jobs.length ? section("Queue", ["/jobs", "All jobs"], queue(found.jobs)) : null);
    const first = !found.runs && !found.jobs.length;
    put(ended, first
      ? empty("Nothing has run here yet", `Runs in ${found.store} and jobs that are submitted appear by themselves.`,
        `lockstep submit --to ${location.origin} -- lockstep run job.toml`)
      : section("Lately", ["/runs", `All ${plural(found.runs, "run")}`], lately(found.ended)));
    strip.show(found.machine);
    live.want({ runs: found.going.map((run) => run.name), machine: true });
  }

  const load = async () => show(await get("overview", {}, signal));
  const again = spaced(700, () => load().catch(() => {}));
  await load();
  add(main, lead, strip, now, active, ended);
  for (const kind of ["jobs", "runs", "again"]) live.on(kind, again, signal);
  live.on("run", (run) => cards.get(run.name)?.row(run), signal);
  live.on("points", (news) => cards.get(news.run)?.points(news), signal);
  live.on("machine", (sample) => strip.show(sample), signal);
  signal.addEventListener("abort", () => cards.forEach(({ chart }) => chart.close()));
}

function add(main, lead, strip, ...parts) {
  put(main, head("Overview", null), lead, strip.element, parts);
}
