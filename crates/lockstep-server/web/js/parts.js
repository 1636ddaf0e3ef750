// Parts that several pages are made of.

import { part } from "./api.js";
import { h } from "./dom.js";
import { ago, date, span } from "./format.js";
import { icon, shape } from "./icons.js";

/** The beginning of a page. */
export function head(title, lead, tools = [], back = null) {
  return h("div", { class: "head" },
    h("div", {},
      back && h("a", { class: "back", href: back[0] }, icon("left", 15), back[1]),
      h("h1", {}, title), lead && h("p", { class: "lead" }, lead)),
    h("div", { class: "tools" }, tools));
}

/** A part of a page with its own title. */
export function section(title, link, ...content) {
  return h("section", { class: "part" },
    h("header", {}, h("h2", {}, title), link && h("a", { href: link[0] }, link[1])), content);
}

/** How a run or a job is. */
export function state(word) {
  const name = String(word).toLowerCase();
  return h("span", { class: `state ${name}` }, shape(name), name);
}

/** A time, told as how long ago it was, and kept right. */
export function when(time) {
  if (!time) return h("span", { class: "faint" }, "–");
  return h("time", { datetime: new Date(time * 1000).toISOString(), title: date(time), data: { ago: time } }, ago(time));
}

/** How long something took, or has taken since then. */
export function took(seconds, since = null) {
  return h("span", { class: "num", data: since ? { since } : {} }, span(seconds));
}

/** Keeps all times on the page right. */
export function tick() {
  const now = Date.now() / 1000;
  const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  for (const element of document.querySelectorAll("[data-ago]")) say(element, ago(Number(element.dataset.ago), now));
  for (const element of document.querySelectorAll("[data-since]")) say(element, span(now - Number(element.dataset.since)));
}

/** How far something is. */
export function meter(share, label, kind = "") {
  const percent = Math.max(0, Math.min(100, (share || 0) * 100));
  return h("div", { class: `meter ${kind}`, role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": Math.round(percent) }, h("i", { css: { width: `${percent}%` } }));
}

/** What is shown where there is nothing. */
export function empty(title, words, command = null) {
  return h("div", { class: "empty card" }, h("h2", {}, title), h("p", {}, words), command && h("pre", { tabindex: 0 }, command));
}

/** What is shown while something is fetched. */
export function waiting() {
  return h("div", { class: "card pad", "aria-busy": "true", "aria-label": "Loading" },
    h("div", { class: "wait" }), h("div", { class: "wait" }), h("div", { class: "wait" }));
}

/** What is shown where nothing is: why, and a way on. */
export function missing(title, words) {
  return h("div", { class: "empty card" }, h("h1", {}, title), h("p", {}, words), h("p", {}, h("a", { href: "/" }, "Overview")));
}

/** What is shown where something went wrong. */
export function failed(error) {
  return h("div", { class: "error", role: "alert" }, h("strong", {}, "This could not be shown"), h("pre", {}, error.message));
}

/** Words by their names. */
export function facts(pairs, plain = false) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: plain ? "facts plain" : "facts" },
    known.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Tags of a run: all, or the first few and how many more. */
export function tags(given, most = Infinity) {
  const words = Object.entries(given).map(([key, value]) => (value ? `${key}=${value}` : key));
  const rest = words.slice(most);
  return h("span", { class: "tags" }, words.slice(0, most).map((word) => h("span", { class: "tag", title: word }, word)),
    rest.length ? h("span", { class: "tag", title: rest.join(", ") }, `+${rest.length}`) : null);
}

/** A text that loses its middle where there is no room for all of it: names are told apart by their ends. */
export function middle(text, end = 12) {
  const at = Math.max(0, text.length - end);
  return at < 6 ? text : h("span", { class: "middle", title: text }, h("span", {}, text.slice(0, at)), h("span", {}, text.slice(at)));
}

/** Whether a run has a name that a client of MLflow's gave it. */
export function calledByMlflow(run) {
  return run.run_name && run.run_name !== run.name;
}

/** A run in a list: what it is called, and what tells it from others that are called the same. */
export function runName(run, ...after) {
  const own = run.name.startsWith(`${run.job}-`) ? run.name.slice(run.job.length + 1) : run.name;
  return h("div", { class: "name" },
    h("a", { href: `/runs/${part(run.name)}`, title: run.name, data: { key: run.name } }, middle(run.job)),
    calledByMlflow(run) ? h("span", { class: "small" }, middle(run.run_name, 5)) : h("span", { class: "mono faint small" }, middle(own, 5)), after);
}

/** A short word to the reader that goes by itself. */
export function notice(words, bad = false) {
  const element = h("div", { class: bad ? "notice bad" : "notice" }, words);
  document.getElementById("notices").append(element);
  setTimeout(() => element.remove(), bad ? 9000 : 4000);
}

/** Asks for something: a form in a dialog. It stays open while `act` refuses, and says why. */
export function ask(title, verb, content, act) {
  const dialog = h("dialog", { "aria-labelledby": "form-title" });
  const form = h("form", { class: "words", on: { submit: async (event) => {
    event.preventDefault();
    try {
      await act();
      dialog.close();
    } catch (error) { notice(error.message, true); }
  } } }, content, h("div", { class: "bar" },
    h("button", { type: "button", on: { click: () => dialog.close() } }, "Leave it"), h("button", { class: "first" }, verb)));
  dialog.append(h("h2", { id: "form-title" }, title), form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Asks before something that cannot be undone. */
export function confirm(title, words, verb) {
  return new Promise((done) => {
    const dialog = h("dialog", { "aria-labelledby": "ask-title" },
      h("h2", { id: "ask-title" }, title), h("p", {}, words),
      h("form", { method: "dialog", class: "bar" },
        h("button", { value: "" }, "Leave it"), h("button", { class: "danger", value: "yes", data: { key: "confirm" } }, verb)));
    dialog.addEventListener("close", () => { dialog.remove(); done(dialog.returnValue === "yes"); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Tabs; `chosen` is told which. */
export function tabs(names, current, chosen) {
  const buttons = names.map(([key, words]) => h("button", {
    type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "tab", data: { key: `tab-${key}` },
    on: { click: () => pick(key) },
  }, words));
  const list = h("div", { class: "tabs", role: "tablist" }, buttons);
  const pick = (key) => {
    names.forEach(([name], at) => {
      buttons[at].setAttribute("aria-selected", String(name === key));
      buttons[at].tabIndex = name === key ? 0 : -1;
    });
    chosen(key);
  };
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = buttons.indexOf(document.activeElement);
    const next = buttons[(at + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  });
  pick(names.some(([key]) => key === current) ? current : names[0][0]);
  return list;
}
