// One run: curves, parameters, what it is worth, what its workers did, their logs, its files.

import { get, part, post } from "../api.js";
import { panel } from "../curve/panel.js";
import { h, put, spaced } from "../dom.js";
import { bytes, count, date, named, plural, span, value } from "../format.js";
import { icon } from "../icons.js";
import * as live from "../live.js";
import { LogView } from "../log.js";
import { register } from "../models.js";
import { ask, calledByMlflow, empty, facts, failed, head, meter, middle, notice, state, tabs, tags, took, when } from "../parts.js";
import { go, keep } from "../router.js";
import { remove } from "../runs.js";
import { evaluation } from "../evaluation.js";
import { progress } from "./overview.js";

function results(run) {
  const rank = (name) => ["test", "val", "train"].indexOf(name.split(".")[0]) + (name.includes("macro") || name.includes("weighted") ? 10 : 0);
  const known = Object.entries(run.metrics).sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b));
  return known.slice(0, 6).map(([name, number]) => [name, named(name, number)]);
}

function header(run) {
  const { share, rest } = progress(run);
  const going = run.state === "running";
  return [
    facts([...results(run),
      ["workers", count(run.workers)],
      ["epochs", run.epochs ? `${run.epochs_done} of ${run.epochs}` : null],
      [going ? "running for" : "took", took(run.duration_s)],
      ["samples/s", run.samples_per_s ? count(run.samples_per_s) : null],
      ["restarts", run.restarts || null]]),
    going && run.epochs ? h("div", { class: "run-progress" }, meter(share, "How far the run is", "on"),
      h("span", { class: "small soft num" }, rest ? `${Math.round(share * 100)} %, about ${span(rest)} left` : `${Math.round(share * 100)} %`)) : null,
    run.error && h("div", { class: "error" }, h("strong", {}, "What went wrong"), h("pre", {}, run.error)),
  ];
}

function parameters(run) {
  const rows = Object.entries(run.params);
  if (!rows.length) return empty("No parameters", "The job file of this run could not be read.");
  const list = h("tbody", {});
  const search = h("input", { type: "search", placeholder: "Find a parameter", "aria-label": "Find a parameter", data: { search: "" } });
  const fill = () => put(list, rows.filter(([key, one]) => `${key} ${value(one)}`.toLowerCase().includes(search.value.toLowerCase()))
    .map(([key, one]) => h("tr", {}, h("th", { scope: "row", class: "mono" }, key), h("td", { class: "mono wrap" }, value(one)))));
  search.addEventListener("input", fill);
  fill();
  return [h("div", { class: "bar" }, search), h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "params" },
    h("thead", {}, h("tr", {}, h("th", {}, "Parameter"), h("th", {}, "Value"))), list))];
}

function about(run) {
  const origin = run.origin ?? {};
  const git = origin.git;
  return [facts([
    ["Run", h("span", { class: "mono" }, run.name)], ["Started", date(run.started)], ["Ended", run.ended ? date(run.ended) : null],
    ["By", run.user], ["On", run.host], ["Lanes", run.lanes || null], ["Learned numbers", run.parameters ? count(run.parameters) : null],
    ["Best epoch", run.best_epoch], ["Resumed", run.resumes ? plural(run.resumes, "time") : null],
    ["Commit", git?.commit ? h("span", { class: "mono" }, `${git.commit.slice(0, 10)}${git.uncommitted ? " and changes" : ""}`) : null],
    ["Job", run.submitted ? h("a", { href: `/jobs/${part(run.submitted)}`, class: "mono" }, run.submitted) : null],
    ["Models", run.models.length ? run.models.map((one, at) => [at ? ", " : "", h("a", { href: `/models/${part(one.split("@")[0])}` }, one)]) : null],
    ["Size", bytes(run.bytes)],
    ["Weights", run.weights_sha256 ? h("span", { class: "mono", title: run.weights_sha256 }, run.weights_sha256.slice(0, 16)) : null],
  ], true),
  origin.command?.length ? h("pre", { class: "command", tabindex: 0 }, origin.command.join(" ")) : null,
  run.data.length ? h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" }, h("thead", {}, h("tr", {}, h("th", {}, "Set"), h("th", {}, "Source"),
    h("th", { class: "right" }, "Samples"), h("th", { class: "wide" }, "SHA-256"))),
  h("tbody", {}, run.data.map((set) => h("tr", {}, h("th", { scope: "row" }, set.set), h("td", { class: "first mono", title: set.source }, middle(set.name || set.source)),
    h("td", { class: "right", data: { name: "samples" } }, count(set.samples)), h("td", { class: "mono wide" }, set.sha256.slice(0, 16))))))) : null];
}

function words(run, changed) {
  const text = h("input", { type: "text", id: "words-tags", value: Object.entries(run.tags).map(([key, one]) => (one ? `${key}=${one}` : key)).join(" ") });
  const note = h("textarea", { id: "words-note", rows: 4, value: run.note });
  ask("Tags and note", "Save", [
    h("label", { for: "words-tags" }, "Tags, with spaces between: ", h("code", {}, "good paper=figure-3")), text,
    h("label", { for: "words-note" }, "Note"), note,
  ], async () => {
    const pairs = text.value.split(/\s+/).filter(Boolean).map((word) => {
      const at = word.indexOf("=");
      return at < 0 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
    });
    changed(await post(`runs/${part(run.name)}/tags`, { tags: Object.fromEntries(pairs), note: note.value.trim() }));
  });
}

function files(run) {
  if (!run.artifacts.length) return empty("No files", "The folder of this run is empty.");
  return h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" }, h("thead", {}, h("tr", {}, h("th", {}, "File"), h("th", { class: "right" }, "Size"))),
    h("tbody", {}, run.artifacts.map((file) => h("tr", {}, h("td", { class: "mono first" }, fileLink(run, file.path)), h("td", { class: "right" }, bytes(file.size)))))));
}

// A run that MLflow's client made gives out what was logged, not what describes it.
function fileLink(run, path) {
  const logged = run.artifacts.some((file) => file.path === "mlflow-run.json");
  const given = logged ? path.match(/^artifacts\/(.*)/)?.[1] : path.startsWith(".") ? undefined : path;
  if (!given) return middle(path, 20);
  const href = `/get-artifact?${new URLSearchParams({ run_uuid: run.name, path: given })}`;
  return h("a", { href, download: path.split("/").at(-1) }, middle(path, 20));
}

function logs(run, signal) {
  if (!run.logs.length) return empty("No logs", "Workers of this run have written nothing yet.");
  const view = new LogView({
    read: (asked) => get(`runs/${part(run.name)}/log`, { ...asked, rank }, signal), name: `log of ${run.name}`, signal,
  });
  let rank = run.logs[0];
  const choose = h("select", { "aria-label": "Worker", on: { change: () => { rank = Number(choose.value); view.restart(); } } },
    run.logs.map((one) => h("option", { value: String(one) }, `Worker ${one}`)));
  view.tools.prepend(choose);
  live.on("run", (news) => { if (news.name === run.name) view.catchUp(); }, signal);
  view.restart();
  return view.element;
}

export async function open({ main, signal, given, values }) {
  const [name] = given;
  let run = await get(`runs/${part(name)}`, {}, signal);
  document.title = `${run.name} – Lockstep`;
  const [top, said, body] = [h("div", { class: "run-top" }), h("div", {}), h("div", { id: "tab", role: "tabpanel", tabindex: 0 })];
  const badge = h("span", {});
  let inner = new AbortController();

  const tools = h("div", { class: "tools" });
  const copy = h("button", { type: "button", on: { click: () => navigator.clipboard?.writeText(location.href).then(() => notice("The address is copied")) } }, icon("link", 16), "Copy link");
  // What whoever looks may do with this run as it is now.
  const actions = () => run.may_change && [
    run.state !== "running" && run.weights_sha256 && h("button", { type: "button", data: { key: "register" }, on: { click: () => register(run) } }, "Register model"),
    h("button", { type: "button", data: { key: "tag" }, on: { click: () => words(run, (next) => { run = { ...run, ...next }; describe(); }) } }, "Tag"),
    run.state !== "running" && h("button", { type: "button", class: "danger", data: { key: "remove" }, on: { click: async () => {
      if (await remove([run.name])) go("/runs");
    } } }, icon("remove", 16), "Remove"),
  ];
  const describe = () => {
    put(badge, state(run.state));
    put(top, header(run));
    put(tools, h("a", { class: "button", href: `/compare?runs=${part(run.name)}` }, "Compare with …"), actions(), copy);
    put(said, Object.keys(run.tags).length ? tags(run.tags) : null, run.note && h("p", { class: "note" }, run.note));
  };
  const series = () => [{ name: run.name, label: run.job, started: run.started, marks: run.marks }];
  const draw = {
    curves: (inside) => panel({ runs: series(), values, signal: inside }),
    parameters: () => ({ element: h("div", {}, parameters(run)) }),
    evaluation: (inside) => evaluation(run, inside),
    system: (inside) => panel({ runs: series(), system: true, values, signal: inside }),
    logs: (inside) => ({ element: h("div", {}, logs(run, inside)) }),
    about: () => ({ element: h("div", { class: "about" }, about(run)) }),
    files: () => ({ element: h("div", {}, files(run)) }),
  };
  function tab(key) {
    inner.abort();
    inner = new AbortController();
    keep({ tab: key === "curves" ? "" : key });
    body.setAttribute("aria-labelledby", `tab-${key}`);
    const { element, ready } = draw[key](inner.signal);
    put(body, element);
    ready?.catch((error) => { if (error.name !== "AbortError") put(body, failed(error)); });
    return ready;
  }
  signal.addEventListener("abort", () => inner.abort());

  const names = [["curves", "Curves"], ["parameters", "Parameters"], run.has_evaluation && ["evaluation", "Evaluation"],
    ["system", "System"], ["logs", "Logs"], ["about", "About"], ["files", `Files`]].filter(Boolean);
  describe();
  const title = h("span", {}, run.job, " ", badge);
  put(main, head(title, [...(calledByMlflow(run) ? [run.run_name, " · "] : []), h("span", { class: "mono" }, run.name), " · started ", when(run.started)], tools, ["/runs", "Runs"]), said, top, tabs(names, values.get("tab"), tab), body);
  live.want({ runs: [run.name] });
  const again = spaced(1500, async () => {
    try {
      run = await get(`runs/${part(name)}`, {}, signal);
      describe();
    } catch { /* It is asked for again when something happens. */ }
  });
  live.on("run", (next) => {
    if (next.name !== name) return;
    const changed = next.restarts !== run.restarts || next.state !== run.state;
    Object.assign(run, next);
    describe();
    if (changed) again();
  }, signal);
  for (const kind of ["runs", "again"]) live.on(kind, again, signal);
}
