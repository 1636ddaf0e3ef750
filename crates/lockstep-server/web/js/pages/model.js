// One model: its versions, where each comes from, and which the aliases mean.

import { get, part } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, named, plural } from "../format.js";
import * as live from "../live.js";
import { facts, head, section, when } from "../parts.js";

export async function open({ main, signal, given }) {
  const model = await get(`models/${part(given[0])}`, {}, signal);
  document.title = `${model.name} – Lockstep`;
  live.want();
  const names = [...new Set(model.versions.flatMap((one) => Object.keys(one.lineage.metrics)))].filter((name) => !/macro|weighted/.test(name)).slice(0, 4);
  const aliases = (number) => Object.entries(model.aliases).filter(([, to]) => to === number).map(([alias]) => alias);
  const newest = model.versions[model.versions.length - 1];
  put(main, head(model.name, plural(model.versions.length, "version"), [], ["/models", "Models"]),
    newest && facts(Object.entries(newest.lineage.metrics).slice(0, 5).map(([name, number]) => [name, named(name, number)])),
    section("Versions", null, h("div", { class: "scroll", tabindex: 0 }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { class: "right" }, "Version"), h("th", {}, "Aliases"), names.map((name) => h("th", { class: "right" }, name)),
        h("th", {}, "From run"), h("th", { class: "wide" }, "Weights"), h("th", { class: "right wide" }, "Size"), h("th", { class: "right" }, "Made"))),
      h("tbody", {}, [...model.versions].reverse().map((one) => h("tr", { data: { row: one.number } },
        h("th", { scope: "row", class: "right" }, one.number),
        h("td", {}, h("span", { class: "tags" }, aliases(one.number).map((alias) => h("span", { class: "tag" }, alias)))),
        names.map((name) => h("td", { class: "right" }, named(name, one.lineage.metrics[name]))),
        h("td", { class: "cut" }, h("a", { href: `/runs/${part(one.lineage.run)}`, class: "mono" }, one.lineage.run), one.note && h("span", { class: "soft" }, ` ${one.note}`)),
        h("td", { class: "mono wide" }, one.lineage.weights_sha256.slice(0, 12)),
        h("td", { class: "right wide" }, bytes(one.bytes)),
        h("td", { class: "right" }, when(one.created)))))))),
    section("Use it", null, h("pre", { class: "command", tabindex: 0 }, `lockstep predict --model ${model.name}@${Object.keys(model.aliases)[0] ?? newest?.number ?? 1} --data photos/ --out classes.csv`)));
}
