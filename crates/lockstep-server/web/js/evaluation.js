// What a run's weights are worth: figures, the confusion of classes, and the mistakes that the model was surest of.

import { get, part } from "./api.js";
import { h, put } from "./dom.js";
import { count, metric, named, plural } from "./format.js";
import { facts, middle, waiting } from "./parts.js";

const MOST_CLASSES = 60;

function figures(found) {
  const of = (name, group) => (group ? [`${name} F1`, named("f1", group.f1)] : null);
  return facts([
    ["set", found.set], ["samples", count(found.samples)],
    found.accuracy !== undefined && ["accuracy", named("accuracy", found.accuracy)],
    found.auc !== undefined && ["AUC", metric(found.auc)],
    found.auc === undefined && found.top5 !== undefined && ["top 5", named("top5", found.top5)],
    found.exact !== undefined && ["all labels right", named("exact", found.exact)],
    ["loss", metric(found.loss)], found.r2 !== undefined && ["R²", metric(found.r2)],
    found.mae !== undefined && ["mean error", metric(found.mae)],
    found.groups !== undefined && ["groups", count(found.groups)], found.ndcg !== undefined && ["NDCG", metric(found.ndcg)],
    found.ndcg10 !== undefined && ["NDCG of the first 10", metric(found.ndcg10)], found.map !== undefined && ["MAP", metric(found.map)],
    of("macro", found.macro), of("weighted", found.weighted), of("micro", found.micro),
    ...Object.entries(found.metrics ?? {}).map(([name, value]) => [name, metric(value)]),
  ].filter(Boolean));
}

/** The confusion matrix. Each cell is coloured by its share of the row: teal is right, orange wrong. */
export function confusion(matrix, names) {
  const size = names.length;
  const says = h("p", { class: "soft", role: "status" }, "Point at a cell, or move with the arrow keys.");
  const table = h("table", { class: "confusion", css: { "--size": size }, "aria-label": "Which class was taken for which" });
  const rows = matrix.map((row, actual) => {
    const sum = row.reduce((all, one) => all + one, 0) || 1;
    return h("tr", {}, h("th", { scope: "row" }, names[actual]), row.map((number, predicted) => {
      const share = number / sum;
      // Nothing lies between pale and deep, so that the number can be read on all of them.
      const deep = share > .6;
      const strength = number ? Math.round(deep ? 76 + share * 24 : 8 + share * 52) : 0;
      const cell = h("td", {
        class: `${actual === predicted ? "right" : "wrong"}${deep ? " deep" : ""}`, tabindex: actual + predicted ? -1 : 0,
        css: { "--strength": `${strength}%` },
        on: { focus: say, pointerenter: say },
      }, size <= 20 ? (number || "") : "");
      function say() {
        says.textContent = `${names[actual]}${actual === predicted ? " was recognised" : ` was taken for ${names[predicted]}`} `
          + `${plural(number, "time")}: ${(share * 100).toFixed(1)} % of ${count(sum)}`;
      }
      return cell;
    }));
  });
  put(table, h("thead", {}, h("tr", {}, h("td", {}), names.map((name) => h("th", { scope: "col" }, h("span", {}, name))))), h("tbody", {}, rows));
  table.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("tbody td");
    if (!move || !cell) return;
    event.preventDefault();
    const [y, x] = [cell.parentElement.rowIndex - 1 + move[0], cell.cellIndex - 1 + move[1]];
    const next = table.tBodies[0].rows[y]?.cells[x + 1];
    if (next?.tagName === "TD") next.focus();
  });
  return h("div", {}, h("div", { class: "scroll confusion-box", tabindex: 0 }, table), says);
}

function mistakes(run, found) {
  if (!found.mistakes?.length) return null;
  const shown = found.mistakes.map((one) => (run.has_pictures
    ? h("canvas", { role: "img", "aria-label": `Row ${one.row}: ${one.actual}` }) : h("div", { class: "no-picture mono" }, `row ${one.row}`)));
  if (run.has_pictures) cut(`/api/v1/runs/${part(run.name)}/mistakes`, shown);
  return h("section", { class: "part" }, h("header", {}, h("h2", {}, "Hardest mistakes"),
    h("span", { class: "soft small" }, "wrong predictions that the model was surest of")),
  h("div", { class: "mistakes" }, found.mistakes.map((one, at) => h("figure", { class: "card" }, shown[at],
    h("figcaption", {}, h("b", {}, one.predicted), ` ${Math.round(one.probability * 100)} %`,
      h("span", { class: "soft" }, `is ${one.actual}`),
      one.path && h("span", { class: "faint mono cut", title: one.path }, one.path.split("/").pop()))))));
}

/** Cuts a file of pictures that lie one below the other, and draws each on its canvas. */
function cut(address, canvases) {
  const all = new Image();
  all.addEventListener("load", () => canvases.forEach((canvas, at) => {
    const height = all.naturalHeight / canvases.length;
    Object.assign(canvas, { width: all.naturalWidth, height });
    canvas.getContext("2d").drawImage(all, 0, at * height, all.naturalWidth, height, 0, 0, all.naturalWidth, height);
  }));
  all.src = address;
}

function classes(rows) {
  return h("section", { class: "part" }, h("header", {}, h("h2", {}, "By class")), h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, h("th", {}, "Class"), ["Samples", "Precision", "Recall", "F1"].map((name) => h("th", { class: "right" }, name)))),
    h("tbody", {}, rows.map((one) => h("tr", {}, h("th", { scope: "row", class: "first" }, one.class), h("td", { class: "right", data: { name: "samples" } }, count(one.support)),
      ["precision", "recall", "f1"].map((name) => h("td", { class: "right", data: { name } }, named(name, one[name])))))))));
}

function misses(rows) {
  return h("section", { class: "part" }, h("header", {}, h("h2", {}, "Farthest off")), h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, h("th", {}, "Row"), h("th", {}, "Column"), h("th", { class: "right" }, "Is"), h("th", { class: "right" }, "Predicted"))),
    h("tbody", {}, rows.map((one) => h("tr", {}, h("td", { class: "mono first", data: { name: "row" } }, middle(String(one.path ?? one.row), 20)), h("td", {}, one.column),
      h("td", { class: "right", data: { name: "is" } }, metric(one.actual)), h("td", { class: "right", data: { name: "predicted" } }, metric(one.predicted))))))));
}

/** The evaluation of a run. */
export function evaluation(run, signal) {
  const element = h("div", {}, waiting());
  const ready = get(`runs/${part(run.name)}/evaluation`, {}, signal).then((found) => {
    const rows = found.classes ?? found.labels;
    const names = found.classes?.map((one) => one.class) ?? [];
    put(element, figures(found),
      found.confusion && names.length <= MOST_CLASSES && h("section", { class: "part" }, h("header", {}, h("h2", {}, "Confusion"),
        h("span", { class: "soft small" }, "rows are classes, columns what they were taken for")), confusion(found.confusion, names)),
      mistakes(run, found), found.misses?.length ? misses(found.misses) : null, rows?.length ? classes(rows) : null);
  });
  return { element, ready };
}
