// Numbers, sizes and times for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** 12,345 */
export function count(number) {
  // There is no 0 below zero.
  return number === null || number === undefined ? "" : (Math.round(number) || 0).toLocaleString("en");
}

/** `one run`, `3 runs`. */
export function plural(number, word, several = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : several}`;
}

/** A measured number with four digits that count. */
export function metric(number) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  if (size === 0) return "0";
  if (size >= 1e6 || size < 1e-4) return number.toExponential(2).replace("e+", "e");
  if (size >= 1000) return count(number);
  return String(Number(number.toPrecision(4)));
}

/** A share as a percentage where a metric is one. */
export function named(name, number) {
  if (!Number.isFinite(number)) return "–";
  const last = name.split(".").pop();
  if (/^(accuracy|top5|precision|recall|f1|exact|acc)$/.test(last) && number >= 0 && number <= 1) {
    return `${(number * 100 || 0).toFixed(2)} %`;
  }
  if (last === "waiting") return `${metric(number * 100)} %`;
  if (last === "memory_bytes") return bytes(number);
  if (last === "cpu_percent") return `${metric(number)} %`;
  // Below each other, numbers with the same digits are read more easily.
  const size = Math.abs(number);
  return Number.isInteger(number) || size >= 1000 || size < 1e-4 ? metric(number) : number.toPrecision(4);
}

/** A value at an axis: without zeros at its end. */
export function tick(name, number) {
  return named(name, number).replace(/(\.\d*?)0+(?= |$)/, "$1").replace(/\.(?= |$)/, "");
}

/** 1.5 GiB */
export function bytes(number) {
  if (number === null || number === undefined) return "–";
  let unit = 0;
  while (number >= 1024 && unit < UNITS.length - 1) { number /= 1024; unit += 1; }
  return `${number >= 100 || unit === 0 ? Math.round(number) : number.toFixed(1)} ${UNITS[unit]}`;
}

/** A span of seconds: 850 ms, 12 s, 3 min 5 s, 2 h 10 min, 3 d 4 h. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const [minute, hour, day] = [60, 3600, 86400];
  const two = (big, small, of, names) => {
    const rest = Math.floor((seconds % of) / small);
    return `${Math.floor(seconds / big)} ${names[0]}${rest ? ` ${rest} ${names[1]}` : ""}`;
  };
  if (seconds < hour) return two(minute, 1, minute, ["min", "s"]);
  if (seconds < day) return two(hour, minute, hour, ["h", "min"]);
  return two(day, hour, day, ["d", "h"]);
}

/** How long something took, as the terminal says it: 132 ms, 12.3 s, 4 min 05 s, 2 h 01 min. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < .9995) return `${Math.round(Math.max(0, seconds) * 1000)} ms`;
  if (seconds < 99.95) return `${seconds.toFixed(1)} s`;
  const [whole, two] = [Math.floor(seconds), (number) => String(Math.floor(number)).padStart(2, "0")];
  return whole < 3600 ? `${Math.floor(whole / 60)} min ${two(whole % 60)} s` : `${Math.floor(whole / 3600)} h ${two(whole / 60 % 60)} min`;
}

/** How long ago: `just now`, `5 min ago`. */
export function ago(time, now = Date.now() / 1000) {
  if (!time) return "–";
  const past = now - time;
  if (past < 5) return "just now";
  if (past < 60) return `${Math.floor(past)} s ago`;
  if (past < 7200) return `${Math.floor(past / 60)} min ago`;
  if (past < 172800) return `${Math.round(past / 3600)} h ago`;
  if (past < 60 * 86400) return `${Math.round(past / 86400)} days ago`;
  return date(time).slice(0, 10);
}

/** 2026-11-16 18:03:12, in the reader's own time zone. */
export function date(time) {
  if (!time) return "–";
  const at = new Date(time * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `
    + `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A text of at most so many letters. It loses its middle: names are told apart by their ends. */
export function shortened(text, most = 30) {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) / 2);
  return `${text.slice(0, most - 1 - end)}…${text.slice(-end)}`;
}

/** Any value of a parameter or a column. */
export function value(given) {
  if (given === null || given === undefined) return "–";
  if (typeof given === "number") return Number.isInteger(given) ? String(given) : String(Number(given.toPrecision(6)));
  return typeof given === "string" ? given : JSON.stringify(given);
}
