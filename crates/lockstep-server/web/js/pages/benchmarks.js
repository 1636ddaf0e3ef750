// Comparisons of one worker with many, and of Lockstep with others: folders of the store that have a comparison.json.

import { get, part } from "../api.js";
import { h, put } from "../dom.js";
import { value } from "../format.js";
import * as live from "../live.js";
import { empty, head } from "../parts.js";

/** A table of what is alike: a list of objects, a row each. */
function table(rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((key) => rows.every((row) => typeof row[key] !== "object" || row[key] === null));
  return h("div", { class: "scroll", tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, keys.map((key) => h("th", { class: "right" }, key.replaceAll("_", " "))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, keys.map((key) => h("td", { class: "right" }, value(row[key]))))))));
}

/** Anything that a comparison may hold: lists of objects as tables, other values by their names. */
function content(found) {
  const entries = Object.entries(found ?? {});
  const isTable = ([, one]) => Array.isArray(one) && one.length && one.every((row) => row && typeof row === "object" && !Array.isArray(row));
  return [
    h("dl", { class: "facts plain" }, entries.filter(([, one]) => typeof one !== "object").map(([name, one]) => h("div", {}, h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, value(one))))),
    entries.filter(isTable).map(([name, rows]) => h("section", { class: "part" }, h("header", {}, h("h2", {}, name.replaceAll("_", " "))), table(rows))),
  ];
}

export async function open({ main, signal, given }) {
  document.title = "Benchmarks – Lockstep";
  live.want();
  if (given.length) {
    const found = await get(`benchmarks/${part(given[0])}`, {}, signal);
    put(main, head(found.name, null, [], ["/benchmarks", "Benchmarks"]), content(found.comparison));
    return;
  }
  const all = await get("benchmarks", {}, signal);
  put(main, head("Benchmarks", null), all.length ? h("div", { class: "scroll", tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "Comparison"))),
    h("tbody", {}, all.map((one) => h("tr", { data: { row: one.name } }, h("td", {}, h("a", { href: `/benchmarks/${part(one.name)}`, data: { key: one.name } }, one.name)))))))
    : empty("No comparisons in this store", "A folder of the store that has a comparison.json is shown here, with its tables."));
}
