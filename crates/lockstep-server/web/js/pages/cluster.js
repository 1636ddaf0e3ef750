// The machines that jobs run on: cores, memory, GPUs, and what each job uses of them.

import { get, part } from "../api.js";
import { h, put } from "../dom.js";
import { bytes, metric, plural } from "../format.js";
import * as live from "../live.js";
import { gauges } from "../machine.js";
import { empty, failed, head, meter, middle, section, state } from "../parts.js";

function here(sample) {
  const load = sample.load.map((one) => one.toFixed(2)).join(", ");
  return h("article", { class: "card pad node" }, h("h2", {}, sample.host), h("p", { class: "soft small" }, [sample.cpu, `load ${load}`].filter(Boolean).join(" · ")),
    h("div", { class: "gauges" }, gauges(sample)));
}

function shared(sample) {
  const rows = [["CPUs", sample.taken.cpus, sample.shared.cpus, metric], ["Memory", sample.taken.memory, sample.shared.memory, bytes],
    sample.shared.gpus ? ["GPUs", sample.taken.gpus, sample.shared.gpus, metric] : null,
    ...Object.entries(sample.shared.resources ?? {}).map(([name, all]) => [name, sample.taken.resources?.[name] ?? 0, all, metric])].filter(Boolean);
  return h("article", { class: "card pad node" }, h("h2", {}, "For jobs"), h("p", { class: "soft small" }, "what running jobs have asked for, of what jobs may use together"),
    h("div", { class: "gauges" }, rows.map(([name, taken, all, words]) => h("div", { class: "gauge" }, h("div", { class: "gauge-head" }, h("span", {}, name),
      h("b", { class: "num" }, `${words(taken)} of ${words(all)}`)), meter(all ? taken / all : 0, `${name} taken`)))));
}

function jobs(list) {
  if (!list.length) return empty("No job runs", "What each job uses of this machine is shown here.");
  return h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" }, h("thead", {}, h("tr", {}, h("th", { class: "first" }, "Job"), h("th", { class: "wide" }, "User"), h("th", { class: "right" }, "CPU"),
    h("th", { class: "right" }, "Memory"), h("th", { class: "right" }, "Workers"), h("th", { class: "right wide" }, "Processes"), h("th", { class: "wide" }, "GPUs"))),
  h("tbody", {}, list.map((job) => h("tr", { data: { row: job.id } },
    h("td", { class: "first" }, h("a", { href: `/jobs/${part(job.id)}`, class: "mono", data: { key: job.id } }, middle(job.entrypoint, 20))), h("td", { class: "wide soft" }, job.user),
    h("td", { class: "right", data: { name: "CPU" } }, `${Math.round(job.cpu_percent)} %`), h("td", { class: "right", data: { name: "memory" } }, bytes(job.memory_bytes)),
    h("td", { class: "right", data: { name: "workers" } }, job.workers || "–"),
    h("td", { class: "right wide" }, job.processes), h("td", { class: "wide" }, job.gpus.join(", ") || "–"))))));
}

function remote(found) {
  if (found.error) return section(found.name, null, failed({ message: found.error }));
  return section(found.name, null, h("p", { class: "soft" }, found.lead), h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "list" },
    h("thead", {}, h("tr", {}, h("th", {}, "Node"), h("th", {}, "State"), h("th", { class: "right" }, "CPUs"), h("th", { class: "right" }, "Memory"), h("th", { class: "right" }, "GPUs"), h("th", { class: "wide" }, "What"))),
    h("tbody", {}, found.nodes.map((node) => h("tr", {}, h("th", { scope: "row", class: "mono first" }, middle(node.name)), h("td", {}, state(node.state)),
      h("td", { class: "right", data: { name: "CPUs" } }, amount(node.cpus, metric)), h("td", { class: "right", data: { name: "memory" } }, amount(node.memory, bytes)),
      h("td", { class: "right", data: { name: "GPUs" } }, amount(node.gpus, metric)),
      h("td", { class: "wide soft cut", title: node.what }, node.what)))))));
}

function amount(given, words) {
  if (!given || !given.total) return "–";
  return `${given.used === null || given.used === undefined ? "" : `${words(given.used)} of `}${words(given.total)}`;
}

export async function open({ main, signal }) {
  document.title = "Cluster – Lockstep";
  const [machine, running, others] = [h("div", { class: "nodes" }), h("div", {}), h("div", {})];
  const lead = h("span", {});
  const show = (sample) => {
    lead.textContent = `${sample.host}: ${plural(sample.cores.length, "core")}, ${bytes(sample.memory_total)}, ${sample.gpus.length ? plural(sample.gpus.length, "GPU") : "no GPU"}`;
    put(machine, here(sample), shared(sample));
    put(running, section("Workers by job", ["/jobs?status=RUNNING", "Running jobs"], jobs(sample.jobs)));
  };
  // Clusters elsewhere may be slow to answer: this machine is shown before.
  const loadOthers = async () => put(others, (await get("cluster/elsewhere", {}, signal)).map(remote));
  const load = async () => {
    show(await get("cluster", {}, signal));
    loadOthers().catch(() => {});
  };
  await load();
  put(main, head("Cluster", lead), machine, running, others);
  live.want({ machine: true });
  live.on("machine", show, signal);
  live.on("again", () => load().catch(() => {}), signal);
  const timer = setInterval(() => { if (!document.hidden && others.childElementCount) loadOthers().catch(() => {}); }, 15000);
  signal.addEventListener("abort", () => clearInterval(timer));
}
