// Models, and what their aliases point to.

import { get, part } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, count, plural } from "../format.js";
import * as live from "../live.js";
import { empty, head, middle, when } from "../parts.js";
import { result } from "./overview.js";

export async function open({ main, signal }) {
  document.title = "Models – Lockstep";
  const models = await get("models", {}, signal);
  live.want();
  put(main, head("Models", models.length ? plural(models.length, "model") : null), models.length ? h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, h("th", { class: "first" }, "Model"), h("th", {}, "Aliases"), h("th", { class: "right" }, "Newest"), h("th", { class: "right" }, "Result"),
      h("th", { class: "right wide" }, "Versions"), h("th", { class: "right wide" }, "Size"), h("th", { class: "right" }, "Made"))),
    h("tbody", {}, models.map((model) => {
      const newest = model.versions[model.versions.length - 1];
      const found = newest && result(newest.lineage);
      return h("tr", { data: { row: model.name } },
        h("td", { class: "first" }, h("a", { href: `/models/${part(model.name)}`, data: { key: model.name } }, middle(model.name))),
        h("td", {}, h("span", { class: "tags" }, Object.entries(model.aliases).map(([alias, number]) => h("span", { class: "tag" }, `${alias} → ${number}`)))),
        h("td", { class: "right", data: { name: "newest" } }, newest?.number ?? "–"),
        h("td", { class: "right" }, found ? [h("span", { class: "faint small" }, `${found[0]} `), found[1]] : "–"),
        h("td", { class: "right wide" }, count(model.versions.length)),
        h("td", { class: "right wide" }, bytes(model.versions.reduce((sum, one) => sum + one.bytes, 0))),
        h("td", { class: "right" }, when(newest?.created)));
    })))) : empty("No models yet", "A model is a name for what a run has learned; its versions never change.", "lockstep models register digits RUN"));
}
