// Comparisons of one worker with many, and of Lockstep with others: folders of the store that have a comparison.json.
// First what people ask for, speedup and efficiency, then the settings as a picture and as a table. Everything else that
// was measured is a click away.

import { get, part } from "../api.js";
import { h, put } from "../dom.js";
import { count, named, value } from "../format.js";
import * as live from "../live.js";
import { empty, facts, head, middle, section, when } from "../parts.js";

const times = (number) => (Number.isFinite(number) ? `${number.toFixed(2)}×` : "–");
const percent = (number) => (Number.isFinite(number) ? `${Math.round(number * 100)} %` : "–");
const seconds = (number) => (Number.isFinite(number) ? `${number.toFixed(2)} s` : "–");
const between = (least, most, words) => (Number.isFinite(least) && Number.isFinite(most) ? `${words(least)} to ${words(most)}` : "–");
/** When measuring began, in seconds since 1970. */
const began = (found) => Date.parse(`${found.created?.replace(" ", "T")}Z`) / 1000 || null;
/** Whether it is a comparison as `lockstep bench` writes it. Others may write what they like. */
const isKnown = (found) => Array.isArray(found?.settings) && found.settings.every((one) => typeof one?.setting === "string");

function headline({ comparison, baseline, distributed }) {
  if (!comparison || !baseline || !distributed) return null;
  const { speedup, speedup_spread: spread, efficiency, share_of_limit: share, same_weights: same } = comparison;
  return [
    h("p", { class: "headline" }, `${distributed.name}, beside ${baseline.name}`),
    facts([
      ["Speedup", [times(speedup), spread ? h("span", { class: "spread" }, between(spread.min, spread.max, (one) => one.toFixed(2))) : null]],
      ["Efficiency", percent(efficiency)],
      ["Of the limit", Number.isFinite(share) ? percent(share) : null],
      ["Accuracy", Number.isFinite(distributed.test_accuracy) ? named("accuracy", distributed.test_accuracy) : null],
      ["Weights", same === true ? "the same to the bit" : same === false ? "others" : null],
    ]),
  ];
}

/** The speedup of each setting as a bar, with the least and the most of its rounds, and a mark where it would be ideal. */
function picture({ settings, baseline }) {
  const first = baseline?.workers ?? Math.min(...settings.map((one) => one.workers));
  const ideal = (one) => one.workers / first;
  const most = Math.max(1, ...settings.map((one) => Math.max(ideal(one), one.most_speedup ?? one.speedup ?? 1)));
  const share = (number) => `${number / most * 100}%`;
  return h("div", { class: "card pad speedups", role: "img", "aria-label": `Speedup: ${settings.map((one) => `${one.setting} ${times(one.speedup ?? 1)}`).join(", ")}` },
    settings.map((one) => [
      h("span", { class: "what" }, one.setting),
      h("div", { class: "track" },
        h("i", { class: one.speedup === null ? "base" : one.accuracy === null ? "apart" : null, css: { width: share(one.speedup ?? 1) } }),
        Number.isFinite(one.least_speedup) && h("b", { css: { left: share(one.least_speedup), width: share(one.most_speedup - one.least_speedup) } }),
        h("u", { css: { left: `calc(${share(ideal(one))} - 2px)` } })),
      h("span", { class: "num worth" }, times(one.speedup ?? 1)),
    ]), h("p", { class: "small faint" }, "Bars: speedup, with the least and the most of the rounds. Marks: where it would be ideal."));
}

const COLUMNS = [
  ["training", (one) => seconds(one.training_time_seconds)],
  ["least to most", (one) => between(one.least_seconds, one.most_seconds, (number) => number.toFixed(2))],
  ["total", (one) => seconds(one.total_time_seconds)],
  ["samples/s", (one) => count(one.samples_per_second)],
  ["speedup", (one) => times(one.speedup)],
  ["its least to most", (one) => between(one.least_speedup, one.most_speedup, (number) => number.toFixed(2))],
  ["efficiency", (one) => percent(one.efficiency)],
  ["of the limit", (one) => percent(one.share_of_limit)],
  ["accuracy", (one) => named("accuracy", one.accuracy)],
];
const FORECAST = [
  ["batch", (one) => count(one.batch)],
  ["step", (one) => `${one.step_ms.toFixed(2)} ms`],
  ["exchange", (one) => `${one.exchange_ms.toFixed(2)} ms`],
  ["speedup", (one) => times(one.speedup)],
  ["efficiency", (one) => percent(one.efficiency)],
  ["measured here", (one) => (Number.isFinite(one.measured_speedup) ? times(one.measured_speedup) : "–")],
];

/** Rows as people read them: the first column says what a row is. */
function told(rows, title, name, columns) {
  return h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, h("th", {}, title), columns.map(([words]) => h("th", { class: "right" }, words)))),
    h("tbody", {}, rows.map((one) => h("tr", {}, h("th", { scope: "row", class: "first" }, name(one)),
      columns.map(([words, show]) => {
        const text = show(one);
        return h("td", { class: text === "–" ? "right none" : "right", data: { name: words } }, text);
      }))))));
}

/** A table of what is alike: a list of objects, a row each. */
function table(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => rows.every((row) => typeof row[key] !== "object" || row[key] === null));
  return h("div", { class: "scroll", tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, keys.map((key) => h("th", { class: "right" }, key.replaceAll("_", " "))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, keys.map((key) => h("td", { class: "right" }, value(row[key]))))))));
}

/** Anything that a comparison may hold: lists of objects as tables, other values by their names. */
function raw(found) {
  const entries = Object.entries(found ?? {});
  const isTable = ([, one]) => Array.isArray(one) && one.length && one.every((row) => row && typeof row === "object" && !Array.isArray(row));
  const isGroup = ([, one]) => one && typeof one === "object" && !Array.isArray(one);
  const plain = (of) => facts(Object.entries(of).filter(([, one]) => typeof one !== "object").map(([name, one]) => [name.replaceAll("_", " "), value(one)]), true);
  return [
    plain(found ?? {}),
    entries.filter(isGroup).map(([name, group]) => section(name.replaceAll("_", " "), null, plain(group))),
    entries.filter(isTable).map(([name, rows]) => section(name.replaceAll("_", " "), null, table(rows))),
  ];
}

function known(found) {
  return [
    headline(found), found.error && h("div", { class: "error" }, h("strong", {}, "Not complete"), h("pre", {}, found.error)),
    found.settings.length ? [picture(found), section("Settings", null, told(found.settings, "Setting", (one) => one.setting, COLUMNS))] : null,
    found.predictions?.length ? section("Forecast", null, told(found.predictions, "Workers", (one) => `${one.workers} workers`, FORECAST)) : null,
    found.warnings?.length ? section("What could make these figures wrong", null, h("ul", { class: "notes" }, found.warnings.map((one) => h("li", {}, one.warning)))) : null,
    section("How it was measured", null, h("pre", { class: "command", tabindex: 0 }, found.command), h("p", { class: "soft small" },
      `${found.measured_on}; ${found.rounds === 1 ? "one round" : `${count(found.rounds)} rounds`} in turns, medians, warm-up left out; Lockstep ${found.lockstep}`)),
    h("details", { class: "raw" }, h("summary", {}, "All figures"), raw(found)),
  ];
}

function row({ name, comparison: found }) {
  const { comparison, baseline, distributed } = found ?? {};
  const workers = baseline && distributed ? `${baseline.workers} → ${distributed.workers}` : "–";
  return h("tr", { data: { row: name } },
    h("td", { class: "first" }, h("a", { href: `/benchmarks/${part(name)}`, data: { key: name } }, middle(name, 20))),
    h("td", { class: "right", data: { name: "speedup" } }, times(comparison?.speedup)), h("td", { class: "right", data: { name: "efficiency" } }, percent(comparison?.efficiency)),
    h("td", { class: "right", data: { name: "workers" } }, workers), h("td", { class: "right" }, when(began(found ?? {}))));
}

export async function open({ main, signal, given }) {
  document.title = "Benchmarks – Lockstep";
  live.want();
  if (given.length) {
    const { name, comparison } = await get(`benchmarks/${part(given[0])}`, {}, signal);
    document.title = `${name} – Lockstep`;
    const lead = [h("span", { class: "mono" }, name), began(comparison ?? {}) ? [" · measured ", when(began(comparison))] : null];
    put(main, isKnown(comparison) ? [head(comparison.job, lead, [], ["/benchmarks", "Benchmarks"]), known(comparison)]
      : [head(name, null, [], ["/benchmarks", "Benchmarks"]), raw(comparison)]);
    return;
  }
  const all = await get("benchmarks", {}, signal);
  put(main, head("Benchmarks", null), all.length ? h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, h("th", { class: "first" }, "Comparison"), ["Speedup", "Efficiency", "Workers", "Measured"].map((words) => h("th", { class: "right" }, words)))),
    h("tbody", {}, all.map(row))))
    : empty("No comparisons in this store", "What more workers gain is measured by a command, and shown here.", "lockstep bench job.toml --workers 1,2,4"));
}
