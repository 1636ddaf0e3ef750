// The events of a run in words, as `lockstep run` shows them in a terminal: what is trained, a row an epoch, warnings, the
// result. They stand in the log of a job whose command writes them (`lockstep run --json`, or a job file that was
// submitted), one JSON object a line. A line that is no event stays as it is.

import { count, duration, plural } from "./format.js";

/** How wide the lines of a run's settings may be. */
const WIDTH = 110;
const BAR = 24;

/** Four decimals, or the exponent where these would say nothing. */
function loss(number) {
  if (!Number.isFinite(number)) return String(number);
  const size = Math.abs(number);
  return size === 0 || size >= 1e-3 && size < 1e4 ? number.toFixed(4) : number.toExponential(3);
}

/** Measured values with their names. What training minimises comes first among them, and is said last. */
function measured(metrics) {
  const words = Object.entries(metrics).map(([name, value]) => `${name} ${typeof value === "number" ? loss(value) : value}`);
  return [...words.slice(1), ...words.slice(0, 1)].join(", ");
}

/** What a script reported, with the names that it gave. */
function reported(metrics) {
  return Object.entries(metrics).map(([name, value]) => `${name} ${typeof value === "number" && !Number.isInteger(value) ? loss(value) : value}`).join(", ");
}

/** A key that tells an event from what another program calls the same. */
const NEEDED = { started: "run", epoch: "total_s", progress: "steps", result: "timing", preparing: "message", note: "message", warning: "message", first_step: "seconds" };

/** The event that a line is; nothing if it is none. */
export function eventOf(line) {
  if (!line.startsWith('{"')) return null;
  try {
    const found = JSON.parse(line);
    const needed = NEEDED[found.event] ?? "event";
    return typeof found.event === "string" && Object.hasOwn(TOLD, found.event) && found[needed] !== undefined ? found : null;
  } catch {
    return null;
  }
}

/** The columns of the table of epochs: the first metric of every set, the others of what the model is measured on. */
function columns(epoch, names) {
  const of = (set) => (epoch) => (set === "train" ? trained(epoch) : epoch[set]) ?? {};
  const metric = (set, name) => ({ title: `${set} ${name === "accuracy" ? "acc" : name}`, width: 10, show: (epoch) => {
    const value = of(set)(epoch)[name];
    return typeof value === "number" ? loss(value) : "";
  } });
  const [first, ...others] = names ?? Object.keys(trained(epoch));
  const sets = ["val", "test"].filter((set) => epoch[set]);
  return [
    { title: "epoch", width: 5, show: (epoch) => String(epoch.epoch) },
    first && metric("train", first),
    ...sets.flatMap((set) => [first, ...others].map((name) => metric(set, name))),
    ...(sets.length ? [] : others.slice(0, 1).map((name) => metric("train", name))),
    { title: "samples/s", width: 10, show: (epoch) => count(epoch.samples_per_s) },
    { title: "time", width: 9, show: (epoch) => duration(epoch.seconds) },
    { title: "total", width: 10, show: (epoch) => duration(epoch.total_s) },
    epoch.val && { title: "best", width: 4, show: (epoch) => (epoch.best === false ? "" : "★") },
  ].filter(Boolean);
}

/** What was measured while training: in the first version of the format, each name stood behind `train_`. */
function trained(epoch) {
  const flat = Object.entries(epoch).filter(([key]) => key.startsWith("train_")).map(([key, value]) => [key.slice(6), value]);
  return epoch.train ?? Object.fromEntries(flat);
}

const row = (columns, cell) => columns.map((one) => cell(one).padStart(Math.max(one.width, one.title.length))).join("  ");

/** Settings, a section each, as many on a line as there is room for. */
function settings(pairs) {
  const sections = new Map();
  for (const [key, value] of pairs) {
    const [section, ...rest] = key.split(".");
    sections.set(section, [...(sections.get(section) ?? []), rest.length ? `${rest.join(".")} ${value}` : value]);
  }
  return [...sections].flatMap(([section, items]) => {
    const lines = [""];
    for (const item of items) {
      if (lines.at(-1) && lines.at(-1).length + item.length > WIDTH) lines.push("");
      lines[lines.length - 1] += `${lines.at(-1) && "   "}${item}`;
    }
    return lines.map((line, at) => `  ${(at ? "" : section).padEnd(12)}${line}`);
  });
}

function started(event) {
  const over = { shm: " over shared memory", tcp: " over TCP" }[event.transport] ?? "";
  const scale = event.command?.length ? plural(event.workers, "worker")
    : `${count(event.parameters)} parameters, ${count(event.train_samples)} samples, ${count(event.steps_per_epoch)} steps an epoch, ${plural(event.lanes, "lane")} on ${plural(event.workers, "worker")}${over}`;
  return [strong(`run ${event.run}`), ...settings(event.config ?? []).map((text) => ({ text, level: "info" })), plain(scale)];
}

function outcome(result) {
  const [epochs, took] = [plural(result.epochs, "epoch"), duration(result.timing?.total_s)];
  const after = result.epochs ? `after ${epochs} and ${took}` : `after ${took}`;
  const ending = {
    succeeded: result.stopped_early ? `stopped early ${after}` : result.epochs ? `${epochs} in ${took}` : `done in ${took}`,
    interrupted: `interrupted ${after}`,
  }[result.status] ?? `failed after ${took}`;
  const said = result.status === "failed" ? null : result.reported;
  const worth = said ? reported(said) : result.metrics ? measured(result.metrics) : result.val ? `${measured(result.val)} on validation data` : "";
  const best = result.status === "succeeded" && result.best_epoch && result.best_epoch !== result.epochs ? ` (best epoch ${result.best_epoch})` : "";
  return `${ending}${worth ? `: ${worth}${best}` : ""}`;
}

function ended(result) {
  const timing = result.timing ?? {};
  const scores = result.evaluation?.macro;
  const details = [
    timing.start_to_first_step_s > 0 && ["first step", `${duration(timing.start_to_first_step_s)} after the start`],
    timing.train_s > 0 && ["training", `${duration(timing.train_s)}${timing.samples_per_s > 0 ? `, ${count(timing.samples_per_s)} samples/s` : ""}`],
    result.restarts > 0 && ["recovered", `${plural(result.restarts, "restart")}, ${plural(result.steps_repeated, "step")} repeated, ${duration(result.seconds_lost)} lost`],
    result.val && result.metrics && ["validation", measured(result.val)],
    scores && ["test set", `precision ${loss(scores.precision)}, recall ${loss(scores.recall)}, F1 ${loss(scores.f1)} (macro)`],
    result.weights_sha256 && ["sha256", result.weights_sha256],
    result.run_dir && ["run", result.run_dir],
  ].filter(Boolean);
  const level = result.status === "failed" ? "error" : "info";
  const wrong = result.error ? result.error.split("\n").map((text) => ({ text, level: result.status === "interrupted" ? "warning" : "error" })) : [];
  return [...wrong, { text: outcome(result), level, strong: true }, ...details.map(([name, words]) => plain(`  ${name.padEnd(12)}${words}`))];
}

/** How far something is, as a bar. */
function bar(share) {
  const full = Math.round(Math.max(0, Math.min(1, share || 0)) * BAR);
  return "█".repeat(full) + "░".repeat(BAR - full);
}

function progress({ event, v, time, epoch, step, steps, samples_per_s: rate, rank, ...metrics }) {
  return `epoch ${epoch}  ${bar(step / steps)}  step ${count(step)} of ${count(steps)}, ${measured(metrics)}, ${count(rate)} samples/s`;
}

function embedded({ set, pictures, skipped, store, parts, parts_made: made }) {
  const how = made === 0 ? ", all there already" : made === parts ? ` (${plural(parts, "part")})` : ` (${made} of ${parts} parts anew)`;
  return `${set}: ${plural(pictures - skipped, "picture")} embedded in ${store}${how}${skipped ? `; ${plural(skipped, "picture")} could not be read, see skipped.jsonl there` : ""}`;
}

const plain = (text) => ({ text, level: "info" });
const strong = (text) => ({ text, level: "info", strong: true });
const warning = (text) => ({ text, level: "warning" });

// What is said of each kind of event: lines, or nothing.
const TOLD = {
  preparing: ({ message }) => [plain(message)],
  embedding: () => [],
  embedded: (event) => [plain(embedded(event))],
  started,
  worker: () => [],
  first_step: ({ seconds }) => [plain(`first step after ${duration(seconds)}`)],
  progress: () => [],
  usage: () => [],
  epoch: () => [],
  reported: ({ report, metrics, checkpoint }) => [plain(`report ${report}: ${reported(metrics)}${checkpoint ? " (checkpoint)" : ""}`)],
  log: ({ line, rank, count: times }) => [{ text: `[rank ${rank}${times > 1 ? ` and ${times - 1} more` : ""}] ${line}`, rank, understand: true }],
  note: ({ message }) => [plain(message)],
  warning: ({ message }) => [warning(`warning: ${message}`)],
  restart: ({ restart, reason, from, workers }) => [warning(`restart ${restart}: ${reason}; going on from ${from ?? "the beginning"} with ${plural(workers, "worker")}`)],
  resized: ({ reason, workers }) => [plain(`${reason}; going on with ${plural(workers, "worker")}`)],
  stopping: () => [warning("stopping: what is begun is finished and kept")],
  result: ended,
};

/** Tells events one after the other. `passing` is what holds for the moment: how far an epoch is. */
export class Teller {
  constructor() {
    Object.assign(this, { names: null, columns: null, passing: null });
  }

  /** The lines that an event adds: `{ text, level, rank, strong }`. Nothing of none, and of one that another program
   *  calls the same but that says something else. */
  tell(event) {
    try {
      return event && this.lines(event);
    } catch {
      return null;
    }
  }

  lines(event) {
    if (event.event === "progress" && !event.rank) this.passing = plain(progress(event));
    if (event.event === "embedding") this.passing = plain(`embedding  ${bar(event.pictures_done / event.pictures)}  ${count(event.pictures_done)} of ${count(event.pictures)} pictures, ${count(event.pictures_per_s)} pictures/s`);
    if (["epoch", "embedded", "restart", "result", "started"].includes(event.event)) this.passing = null;
    if (event.event === "started") Object.assign(this, { names: event.metrics?.length ? event.metrics : null, columns: null });
    return event.event === "epoch" ? this.epoch(event) : TOLD[event.event](event);
  }

  epoch(event) {
    const first = !this.columns;
    this.columns ??= columns(event, this.names);
    const told = plain(row(this.columns, (one) => one.show(event)));
    return first ? [strong(row(this.columns, (one) => one.title)), told] : [told];
  }
}
