// One job: how it is, what it asked for, and its log as it is written.

import { get, part } from "../api.js";
import { h, put, spaced } from "../dom.js";
import { bytes, count, date, plural } from "../format.js";
import { icon } from "../icons.js";
import { act, ended, seconds } from "../jobs.js";
import * as live from "../live.js";
import { mayChange, me } from "../me.js";
import { LogView } from "../log.js";
import { facts, head, state, took, when } from "../parts.js";
import { go } from "../router.js";

/** A command that is longer does not fit into the title. */
const LONG = 120;

/** What went wrong with a job, without the end of its log, which stands below. */
const reason = (job) => job.message.trim().replace(/, last available logs \(truncated[\s\S]*/, "");

function about(job) {
  const began = seconds(job.started_ms);
  const { needs } = job;
  const extra = Object.entries(needs.resources ?? {}).map(([name, number]) => `${number} ${name}`);
  const wants = [plural(needs.cpus ?? 1, "CPU"), needs.gpus ? plural(needs.gpus, "GPU") : null, needs.memory ? bytes(needs.memory) : null, ...extra].filter(Boolean);
  return [facts([
    ["Id", h("span", { class: "mono" }, job.id)], ["User", job.user], ["Submitted", when(seconds(job.submitted_ms))],
    ["Started", began ? date(began) : null],
    ["Ran", began ? (job.ended_ms ? took(seconds(job.ended_ms) - began) : took(Date.now() / 1000 - began, began)) : null],
    ["Exit code", job.exit_code], ["Needs", wants.join(", ")], ["GPUs", job.gpus.length ? job.gpus.join(", ") : null],
    ["Attempt", job.attempts > 1 ? `${job.attempt} of ${job.attempts}` : null], ["Priority", job.priority || null],
    ["Process", job.pid], ["Before it", job.position],
    ["After", job.after.length ? job.after.map((id, at) => [at ? ", " : "", h("a", { href: `/jobs/${part(id)}`, class: "mono" }, id)]) : null],
    ["Run", job.runs.length ? job.runs.map((name, at) => [at ? ", " : "", h("a", { href: `/runs/${part(name)}`, class: "mono" }, name)]) : null],
    ...Object.entries(job.metadata).filter(([key]) => key !== "job_submission_id").map(([key, value]) => [key, h("span", { class: "mono" }, value)]),
    ["Variables", Object.keys(job.runtime_env.env_vars ?? {}).join(", ")], ["Folder", job.runtime_env.working_dir],
  ], true), job.entrypoint.length > LONG ? h("pre", { class: "command", tabindex: 0 }, job.entrypoint) : null];
}

export async function open({ main, signal, given }) {
  const [id] = given;
  let [job, who] = await Promise.all([get(`jobs/${part(id)}`, {}, signal), me()]);
  document.title = `${job.id} – Lockstep`;
  const [badge, top, tools] = [h("span", {}), h("div", { class: "card pad job-top" }), h("div", { class: "tools" })];
  const view = new LogView({ read: (asked) => get(`jobs/${part(id)}/log`, asked, signal), name: `Log of ${job.id}`, signal });

  const load = async () => { job = await get(`jobs/${part(id)}`, {}, signal); describe(); };
  const again = spaced(400, () => load().catch(() => {}));

  function describe() {
    put(badge, state(job.status), job.stopping && h("span", { class: "soft small" }, " stopping"));
    put(top, about(job), job.message && job.status !== "SUCCEEDED" && job.status !== "RUNNING"
      ? h("pre", { class: job.status === "FAILED" ? "message bad" : "message", tabindex: 0 }, reason(job)) : null);
    const button = (action, picture, words, kind) => h("button", { type: "button", class: kind, data: { key: action }, on: { click: async () => {
      const [done] = await act(action, [id]);
      if (done?.new_id) go(`/jobs/${part(done.new_id)}`);
      else if (done && action === "delete") go("/jobs");
      else again();
    } } }, icon(picture, 16), words);
    put(tools, mayChange(who, job.user) && [!ended(job) && !job.stopping ? button("stop", "stop", "Stop", "danger") : null,
      button("resubmit", "again", "Submit again", ""), ended(job) ? button("delete", "remove", "Forget", "danger") : null]);
  }

  describe();
  put(main, head(h("span", {}, h("span", { class: "mono title-command", title: job.entrypoint }, job.entrypoint), badge), null, tools, ["/jobs", "Jobs"]), top,
    h("section", { class: "part" }, h("header", {}, h("h2", {}, "Log"), h("span", { class: "soft small num" }, job.log[0] ? `the first ${count(job.log[0])} bytes were dropped` : "")), view.element));
  live.want({ job: id });
  live.on("log", (part) => { if (part.id === id) view.gain(part.from, part.to, part.text); }, signal);
  live.on("jobs", () => { again(); view.catchUp(); }, signal);
  live.on("again", () => { again(); view.catchUp(); }, signal);
  await view.restart();
}
