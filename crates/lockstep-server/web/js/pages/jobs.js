// All jobs: what waits, what runs, what came of the rest.

import { get, part } from "../api.js";
import { calm, h, put, spaced } from "../dom.js";
import { count, plural } from "../format.js";
import { act, ended, seconds } from "../jobs.js";
import * as live from "../live.js";
import { mayChange, me } from "../me.js";
import { empty, head, middle, state, took, when } from "../parts.js";
import { keep } from "../router.js";
import { Chosen } from "../table.js";

const PAGE = 100;
const STATES = [["", "All"], ["RUNNING", "Running"], ["PENDING", "Waiting"], ["SUCCEEDED", "Succeeded"], ["FAILED", "Failed"], ["STOPPED", "Stopped"]];

function needs(job) {
  const words = [plural(job.needs.cpus ?? 1, "CPU")];
  if (job.needs.gpus) words.push(plural(job.needs.gpus, "GPU"));
  return words.join(", ");
}

function length(job) {
  if (!job.started_ms) return h("span", { class: "soft" }, job.position === null ? "–" : job.position ? `${count(job.position)} before it` : "next");
  const began = seconds(job.started_ms);
  return job.ended_ms ? took(seconds(job.ended_ms) - began) : took(Date.now() / 1000 - began, began);
}

export async function open({ main, signal, values }) {
  document.title = "Jobs – Lockstep";
  let status = values.get("status") ?? "";
  let text = values.get("text") ?? "";
  let found = { jobs: [], chosen: 0, counts: {} };
  const who = await me();
  const input = h("input", { type: "search", class: "grow", value: text, placeholder: "Find by command, id or user", "aria-label": "Find jobs", data: { search: "" } });
  const lead = h("span", {});
  const [table, more, states] = [h("div", {}), h("div", { class: "more" }), h("div", { class: "group", role: "group", "aria-label": "States" })];
  const bulk = h("div", { class: "bar bulk", hidden: true });
  const chosen = new Chosen(() => {
    const all = found.jobs.filter((job) => chosen.keys.has(job.id));
    const jobs = all.filter((job) => mayChange(who, job.user));
    bulk.hidden = !all.length;
    const going = jobs.filter((job) => !ended(job)).map((job) => job.id);
    const over = jobs.filter(ended).map((job) => job.id);
    const button = (action, words, ids, kind) => h("button", { type: "button", class: kind, disabled: !ids.length, on: { click: async () => {
      await act(action, ids);
      chosen.keys.clear();
      load().catch(() => {});
    } } }, words);
    put(bulk, h("span", { class: "soft" }, `${plural(all.length, "job")} chosen${jobs.length < all.length ? `, ${count(jobs.length)} of your own` : ""}`),
      button("stop", "Stop", going, "danger"), button("resubmit", "Submit again", jobs.map((job) => job.id), null),
      button("delete", "Forget", over, "danger"));
  });

  async function load(limit = Math.max(PAGE, found.jobs.length)) {
    found = await get("jobs", { status, text, limit }, signal);
    chosen.only(found.jobs.map((job) => job.id));
    draw();
  }

  function row(job) {
    return h("tr", { data: { row: job.id }, "aria-selected": String(chosen.keys.has(job.id)) },
      h("td", { class: "tick" }, chosen.box(job.id, `job ${job.id}`)),
      h("td", { class: "first" }, h("a", { href: `/jobs/${part(job.id)}`, class: "mono", title: job.entrypoint, data: { key: job.id } }, middle(job.entrypoint, 20))),
      h("td", {}, state(job.status), job.stopping && h("span", { class: "faint small" }, " stopping"),
        job.status === "FAILED" && job.exit_code !== null && h("span", { class: "faint small" }, ` exit code ${job.exit_code}`)),
      h("td", { class: "wide soft cut" }, job.user),
      h("td", { class: "wide soft" }, needs(job)),
      h("td", { class: "mono faint wide" }, job.id),
      h("td", { class: "right" }, length(job)),
      h("td", { class: "right" }, when(seconds(job.submitted_ms))));
  }

  function draw() {
    const { counts } = found;
    const all = counts.pending + counts.running + counts.stopped + counts.succeeded + counts.failed;
    lead.textContent = all ? `${count(counts.running)} running, ${count(counts.pending)} waiting, ${plural(all, "job")} in all` : "Nothing was submitted yet";
    put(states, STATES.map(([key, words]) => {
      const number = key ? counts[key.toLowerCase()] : all;
      return h("button", { type: "button", "aria-pressed": String(key === status), data: { key: `state-${key}` }, on: { click: () => {
        status = key;
        keep({ status });
        load(PAGE).catch(() => {});
      } } }, words, h("span", { class: "faint num wide" }, number));
    }));
    put(more, found.chosen > found.jobs.length && h("button", { type: "button", on: { click: () => load(found.jobs.length + PAGE * 2).catch(() => {}) } },
      `Show more (${count(found.chosen - found.jobs.length)} left)`));
    if (!found.jobs.length) {
      put(table, text || status ? empty("No job is like that", "Look for another word, or for all states.")
        : empty("No jobs yet", "A job is a command that this server runs, one after the other as there is room. Ray's own client works too.",
          `lockstep submit --to ${location.origin} -- lockstep run job.toml\nRAY_ADDRESS=${location.origin} ray job submit -- python train.py`));
      return;
    }
    put(table, h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
      h("thead", {}, h("tr", {}, h("th", { class: "tick" }, chosen.all(found.jobs.map((job) => job.id), draw)), h("th", { class: "first" }, "Command"), h("th", {}, "State"),
        h("th", { class: "wide" }, "User"), h("th", { class: "wide" }, "Needs"), h("th", { class: "wide" }, "Id"), h("th", { class: "right" }, "Ran"), h("th", { class: "right" }, "Submitted"))),
      h("tbody", {}, found.jobs.map(row)))));
  }

  input.addEventListener("input", calm(200, () => {
    text = input.value.trim();
    keep({ text });
    load(PAGE).catch(() => {});
  }));
  await load(PAGE);
  put(main, head("Jobs", lead), h("div", { class: "bar" }, input, states), bulk, table, more);
  live.want();
  const again = spaced(500, () => load().catch(() => {}));
  for (const kind of ["jobs", "again"]) live.on(kind, again, signal);
}
