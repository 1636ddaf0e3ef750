// All runs: chosen by a filter, sorted by anything, with the columns that somebody wants.

import { get, part } from "../api.js";
import { calm, h, put, spaced } from "../dom.js";
import { count, named, plural, value } from "../format.js";
import { icon } from "../icons.js";
import * as live from "../live.js";
import { maySubmit, me } from "../me.js";
import { empty, head, runName, state, tags, took, when } from "../parts.js";
import { keep } from "../router.js";
import { remove } from "../runs.js";
import { Chosen, sortable } from "../table.js";

const PAGE = 100;
const FIELDS = ["workers", "steps", "restarts", "parameters", "samples_per_s", "bytes", "user", "host", "commit", "note", "error"];
const EXAMPLES = ["status = running", "accuracy > 0.9", "age < 7d", "status = failed", "tag.keep"];

/** Metrics that most of these runs are measured by. */
function usual(runs) {
  const found = new Map();
  for (const run of runs) {
    const measured = run.measured.length ? run.measured : Object.keys(run.metrics).slice(0, 3);
    for (const name of measured) {
      const has = ["", "test.", "val.", "train."].some((set) => `${set}${name}` in run.metrics);
      if (has) found.set(name, (found.get(name) ?? 0) + 1);
    }
  }
  return [...found].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([name]) => name);
}

function metricOf(run, name) {
  const whole = ["", "test.", "val.", "train."].map((set) => set + name).find((one) => one in run.metrics);
  return whole === undefined ? null : run.metrics[whole];
}

export async function open({ main, signal, values }) {
  document.title = "Runs – Lockstep";
  let filter = values.get("filter") ?? "";
  let sort = values.get("sort") ?? "";
  let ascending = values.get("up") === "1";
  let columns = (values.get("columns") ?? "").split(",").filter(Boolean);
  let found = { runs: [], chosen: 0, total: 0 };
  let metrics = [];

  const input = h("input", { type: "search", class: "grow mono", value: filter, placeholder: "accuracy > 0.9 and optimizer.lr < 0.01",
    "aria-label": "Filter runs", data: { search: "" }, spellcheck: "false", autocapitalize: "off", list: "examples" });
  const wrong = h("div", { class: "error", role: "alert", hidden: true });
  const table = h("div", {});
  const more = h("div", { class: "more" });
  const lead = h("span", {});
  const bulk = h("div", { class: "bar bulk", hidden: true });
  const who = await me();
  const picker = h("details", { class: "menu" });
  const chosen = new Chosen(() => {
    const names = [...chosen.keys];
    bulk.hidden = !names.length;
    put(bulk, h("span", { class: "soft" }, `${plural(names.length, "run")} chosen`),
      h("a", { class: "button first", href: `/compare?runs=${names.map(part).join(",")}` }, names.length > 1 ? `Compare ${names.length}` : "Compare with …"),
      maySubmit(who) && h("button", { type: "button", class: "danger", on: { click: async () => {
        if (await remove(names)) load().catch(report);
      } } }, "Remove"));
  });

  async function load(limit = Math.max(PAGE, found.runs.length)) {
    try {
      found = await get("runs", { filter, sort, ascending, columns: columns.join(","), limit }, signal);
      wrong.hidden = true;
      input.removeAttribute("aria-invalid");
    } catch (error) {
      if (error.status !== 400) throw error;
      input.setAttribute("aria-invalid", "true");
      put(wrong, h("strong", {}, "This filter cannot be understood"), h("pre", {}, error.message));
      wrong.hidden = false;
      return;
    }
    metrics = usual(found.runs);
    chosen.only(found.runs.map((run) => run.name));
    draw();
  }

  function row(run) {
    const epochs = run.epochs ? (run.state === "running" || run.epochs_done < run.epochs ? `${run.epochs_done}/${run.epochs}` : run.epochs_done) : count(run.step);
    return h("tr", { data: { row: run.name }, "aria-selected": String(chosen.keys.has(run.name)) },
      h("td", { class: "tick" }, chosen.box(run.name, run.name)),
      h("td", { class: "first" }, runName(run, tags(run.tags, 2))),
      h("td", {}, state(run.state)),
      metrics.map((name) => h("td", { class: "right", data: { name } }, named(name, metricOf(run, name)))),
      columns.map((name) => {
        const cell = run.values?.[name];
        return h("td", { class: `cut ${typeof cell === "number" ? "right" : ""}`, title: value(cell), data: { name } }, value(cell));
      }),
      h("td", { class: "right wide" }, epochs),
      h("td", { class: "right wide" }, took(run.duration_s)),
      h("td", { class: "right" }, when(run.started)));
  }

  function draw() {
    lead.textContent = found.chosen === found.total ? plural(found.total, "run") : `${count(found.chosen)} of ${plural(found.total, "run")}`;
    if (!found.runs.length) {
      put(more);
      put(table, filter ? empty("No run is like that", "Change the filter, or take it away.")
        : empty("No runs yet", "Every run that is started in this store appears here.", "lockstep run job.toml"));
      return;
    }
    const by = (name, up) => { [sort, ascending] = [name, up]; keep({ sort, up }); load().catch(report); };
    put(table, h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
      h("thead", {}, h("tr", {},
        h("th", { class: "tick" }, chosen.all(found.runs.map((run) => run.name), draw)),
        marked("first", sortable("name", "Run", sort, ascending, by, false)), sortable("status", "State", sort, ascending, by, false),
        metrics.map((name) => sortable(name, name, sort, ascending, by)),
        columns.map((name) => sortable(name, name, sort, ascending, by, found.runs.some((run) => typeof run.values?.[name] === "number"))),
        h("th", { class: "right wide" }, "Epochs"), marked("wide", sortable("duration", "Took", sort, ascending, by)),
        sortable("started", "Started", sort, ascending, by))),
      h("tbody", {}, found.runs.map(row)))));
    const left = found.chosen - found.runs.length;
    put(more, left > 0 && h("button", { type: "button", on: { click: () => load(found.runs.length + PAGE * 2).catch(report) } },
      `Show more (${count(left)} left)`));
  }

  function marked(kind, element) {
    element.classList.add(kind);
    return element;
  }

  function report(error) {
    if (error.name === "AbortError") return;
    put(wrong, error.message);
    wrong.hidden = false;
  }

  async function pick() {
    const names = await get("runs/names", {}, signal);
    const search = h("input", { type: "search", placeholder: "Find a column", "aria-label": "Find a column" });
    const list = h("div", {});
    const groups = [["Facts", FIELDS], ["Metrics", names.metrics], ["Parameters", names.params], ["Tags", names.tags.map((tag) => `tag.${tag}`)]];
    const fill = () => put(list, groups.map(([title, all]) => {
      const near = all.filter((name) => name.includes(search.value));
      return near.length ? [h("h3", {}, title), near.slice(0, 200).map((name) => h("label", {},
        h("input", { type: "checkbox", checked: columns.includes(name), on: { change: (event) => {
          columns = event.target.checked ? [...columns, name] : columns.filter((one) => one !== name);
          keep({ columns: columns.join(",") });
          load().catch(report);
        } } }), name))] : null;
    }));
    search.addEventListener("input", fill);
    put(picker.querySelector("div"), search, list);
    fill();
  }
  put(picker, h("summary", { class: "button" }, icon("columns", 16), "Columns"), h("div", {}));
  picker.addEventListener("toggle", () => { if (picker.open) pick().catch(report); });

  const refilter = calm(250, () => {
    filter = input.value.trim();
    keep({ filter });
    load(PAGE).catch(report);
  });
  input.addEventListener("input", refilter);
  await load(PAGE);
  put(main, head("Runs", lead),
    h("div", { class: "bar" }, input, picker), bulk,
    h("datalist", { id: "examples" }, EXAMPLES.map((one) => h("option", { value: one }))), wrong, table, more);
  live.want();
  const again = spaced(1000, () => load().catch(() => {}));
  for (const kind of ["runs", "again"]) live.on(kind, again, signal);
  live.on("run", (next) => {
    const at = found.runs.findIndex((run) => run.name === next.name);
    if (at < 0) return;
    found.runs[at] = { ...found.runs[at], ...next, values: found.runs[at].values };
    const old = table.querySelector(`tr[data-row="${CSS.escape(next.name)}"]`);
    if (old && !old.contains(document.activeElement)) old.replaceWith(row(found.runs[at]));
  }, signal);
}
