// What a machine does, at a glance: its cores as a row of bars, memory, disk and GPUs as meters.

import { h, put } from "./dom.js";
import { bytes, plural } from "./format.js";
import { meter } from "./parts.js";

/** A bar a core. */
export function cores(percents) {
  const mean = percents.reduce((sum, one) => sum + one, 0) / Math.max(1, percents.length);
  // Few cores are segments of one meter, many are bars.
  const few = percents.length <= 16;
  return h("div", { class: few ? "cores few" : "cores", role: "img", "aria-label": `${plural(percents.length, "core")}, ${Math.round(mean)} % busy` },
    percents.map((one) => h("i", { title: `${Math.round(one)} %` }, h("b", { css: { [few ? "width" : "height"]: `${Math.max(2, one)}%` } }))));
}

function gauge(name, words, content) {
  return h("div", { class: "gauge" }, h("div", { class: "gauge-head" }, h("span", {}, name), h("b", { class: "num" }, words)), content);
}

/** The gauges of a machine. */
export function gauges(sample) {
  const mean = sample.cores.reduce((sum, one) => sum + one, 0) / Math.max(1, sample.cores.length);
  const share = (used, all) => (all ? used / all : 0);
  const kind = (one) => (one > .92 ? "full" : "");
  const memory = share(sample.memory_used, sample.memory_total);
  const disk = share(sample.disk_total - sample.disk_free, sample.disk_total);
  return [
    gauge(plural(sample.cores.length, "core"), `${Math.round(mean)} %`, cores(sample.cores)),
    gauge("Memory", `${bytes(sample.memory_used)} of ${bytes(sample.memory_total)}`, meter(memory, "Memory", kind(memory))),
    sample.disk_total ? gauge("Disk", `${bytes(sample.disk_free)} free`, meter(disk, "Disk", kind(disk))) : null,
    sample.gpus.map((gpu) => gauge(`GPU ${gpu.number}`, `${gpu.percent ?? "–"} %, ${bytes(gpu.memory_used)}`,
      meter((gpu.percent ?? 0) / 100, `GPU ${gpu.number}, ${gpu.name}`))),
  ];
}

/** The strip of the overview. */
export function machineStrip() {
  const element = h("section", { class: "card strip", "aria-label": "This machine" });
  return {
    element,
    show(sample) {
      put(element, h("a", { class: "strip-name cut", href: "/cluster" }, sample.host), gauges(sample));
    },
  };
}
