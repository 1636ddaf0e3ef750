// What the keyboard does. Letters do nothing while somebody types.

import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import { go } from "./router.js";

const PLACES = { o: "/", j: "/jobs", r: "/runs", m: "/models", c: "/cluster", b: "/benchmarks" };
const HELP = [
  [["g", "o"], "Overview"], [["g", "j"], "Jobs"], [["g", "r"], "Runs"], [["g", "m"], "Models"],
  [["g", "c"], "Cluster"], [["g", "b"], "Benchmarks"], [["/"], "Search or filter"], [["j", "k"], "Next, previous row"],
  [["x"], "Choose the row"], [["Enter"], "Open it"], [["←", "→"], "Read a curve, point by point"], [["?"], "This list"],
];
let waiting = 0;

function typing(target) {
  return target.closest("input:not([type=checkbox]):not([type=range]), textarea, select, [contenteditable]");
}

function move(step) {
  const rows = [...document.querySelectorAll("main tbody tr[data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.querySelector("main tr.here"));
  const next = Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step));
  rows.forEach((row) => row.classList.remove("here"));
  rows[next].classList.add("here");
  rows[next].querySelector("a")?.focus({ preventScroll: true });
  rows[next].scrollIntoView({ block: "nearest" });
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const here = () => document.querySelector("main tr.here");
  if (waiting && PLACES[event.key]) {
    event.preventDefault();
    go(PLACES[event.key]);
  } else if (event.key === "/") {
    const search = document.querySelector("main [data-search]");
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  } else if (event.key === "?") {
    help();
  } else if (event.key === "j" || event.key === "k") {
    move(event.key === "j" ? 1 : -1);
  } else if (event.key === "x") {
    here()?.querySelector("input[type=checkbox]")?.click();
  }
  clearTimeout(waiting);
  waiting = event.key === "g" ? setTimeout(() => { waiting = 0; }, 900) : 0;
}

function help() {
  document.getElementById("keys").showModal();
}

/** Begins to hear keys. */
export function start() {
  const button = document.getElementById("help");
  put(button, icon("help"), h("span", {}, "Keyboard"));
  button.setAttribute("aria-label", "What the keyboard does");
  button.addEventListener("click", help);
  const dialog = document.getElementById("keys");
  put(dialog,
    h("h2", { id: "keys-title" }, "Keyboard"),
    h("div", { class: "keys" }, HELP.map(([keys, words]) => [
      h("span", {}, keys.flatMap((key, at) => [at ? " " : null, h("kbd", {}, key)])), h("span", {}, words),
    ])),
    h("form", { method: "dialog", class: "bar" }, h("button", { class: "first" }, "Close")));
  document.addEventListener("keydown", press);
}
