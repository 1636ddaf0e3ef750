// One model: the version that its name stands for, all versions, where each comes from, and which the aliases mean.

import { get, part } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, named, plural } from "../format.js";
import * as live from "../live.js";
import { maySubmit, me } from "../me.js";
import { alias, CHAMPION, point, used } from "../models.js";
import { facts, head, middle, section, when } from "../parts.js";

/** Metrics of a version that say most: what was measured on data that it has not seen comes first. */
const telling = (metrics) => {
  const rank = (name) => ["test", "val", "train"].indexOf(name.split(".")[0]) + (/macro|weighted/.test(name) ? 10 : 0);
  return Object.entries(metrics).sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b));
};

export async function open({ main, signal, given }) {
  let [model, who] = await Promise.all([get(`models/${part(given[0])}`, {}, signal), me()]);
  document.title = `${model.name} – Lockstep`;
  live.want();
  const load = async () => { model = await get(`models/${part(given[0])}`, {}, signal); draw(); };

  function names(version) {
    const own = Object.entries(model.aliases).filter(([, to]) => to === version.number).map(([name]) => name);
    const chip = (name) => h("span", { class: "tag" }, name, maySubmit(who) && h("button", { type: "button", "aria-label": `Take ${name} away`, on: { click: async () => {
      if (await point(model, name, null)) load();
    } } }, "×"));
    return h("span", { class: "tags" }, own.map(chip));
  }

  function actions(version) {
    return h("span", { class: "acts" },
      model.aliases[CHAMPION] !== version.number && h("button", { type: "button", class: "small", data: { key: `promote-${version.number}` }, on: { click: async () => {
        if (await point(model, CHAMPION, version.number)) load();
      } } }, "Promote"),
      h("button", { type: "button", class: "small", data: { key: `alias-${version.number}` }, on: { click: () => alias(model, version.number, load) } }, "Alias …"));
  }

  function draw() {
    const { version, alias: by } = used(model);
    const columns = [...new Set(model.versions.flatMap((one) => telling(one.lineage.metrics).map(([name]) => name)))].filter((name) => !/macro|weighted|^train/.test(name)).slice(0, 3);
    put(main, head(model.name, plural(model.versions.length, "version"), [], ["/models", "Models"]),
      version && h("section", { class: "card pad version" },
        h("h2", {}, `Version ${version.number}`, by && h("span", { class: "soft" }, ` · ${by}`)),
        facts(telling(version.lineage.metrics).slice(0, 6).map(([name, number]) => [name, named(name, number)])),
        version.note && h("p", { class: "note" }, version.note),
        facts([["From run", h("a", { href: `/runs/${part(version.lineage.run)}`, class: "mono" }, version.lineage.run)],
          ["Weights", h("span", { class: "mono", title: version.lineage.weights_sha256 }, version.lineage.weights_sha256.slice(0, 16))], ["Made", when(version.created)]], true),
        h("pre", { class: "command", tabindex: 0 }, `lockstep predict --model ${model.name}@${by ?? version.number} --data photos/ --out classes.csv`)),
      section("Versions", null, h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
        h("thead", {}, h("tr", {}, h("th", {}, "Version"), h("th", {}, "Aliases"), columns.map((name) => h("th", { class: "right" }, name)),
          h("th", { class: "first" }, "From run"), h("th", { class: "right wide" }, "Size"), h("th", { class: "right" }, "Made"), maySubmit(who) && h("th", {}, h("span", { class: "hide" }, "Actions")))),
        h("tbody", {}, [...model.versions].reverse().map((one) => h("tr", { data: { row: one.number } },
          h("th", { scope: "row", data: { name: "version" } }, one.number), h("td", {}, names(one)),
          columns.map((name) => h("td", { class: "right", data: { name } }, named(name, one.lineage.metrics[name]))),
          h("td", { class: "first" }, h("a", { href: `/runs/${part(one.lineage.run)}`, class: "mono" }, middle(one.lineage.run, 20)), one.note && h("span", { class: "soft small cut" }, ` ${one.note}`)),
          h("td", { class: "right wide" }, bytes(one.bytes)),
          h("td", { class: "right" }, when(one.created)),
          maySubmit(who) && h("td", { class: "right" }, actions(one)))))))));
  }
  draw();
}
