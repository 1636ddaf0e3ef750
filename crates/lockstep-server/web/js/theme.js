// Light, dark, or as the system has it. Whoever draws on a canvas asks here for colours.

import { h, put } from "./dom.js";
import { icon } from "./icons.js";

const KEY = "lockstep.theme";
const WORDS = { system: ["half", "System colours"], light: ["sun", "Light"], dark: ["moon", "Dark"] };
const system = matchMedia("(prefers-color-scheme: dark)");
let colours = new Map();

function chosen() {
  const found = localStorage.getItem(KEY);
  return found === "light" || found === "dark" ? found : "system";
}

function apply() {
  const choice = chosen();
  const dark = choice === "dark" || choice === "system" && system.matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  colours = new Map();
  const [picture, words] = WORDS[choice];
  const button = document.getElementById("theme");
  button.setAttribute("aria-label", `Colours: ${words}. Change`);
  put(button, icon(picture), h("span", {}, words));
  dispatchEvent(new Event("theme"));
}

/** Shows the theme that was chosen, and lets it be changed. */
export function start() {
  apply();
  system.addEventListener("change", apply);
  document.getElementById("theme").addEventListener("click", () => {
    const next = { system: "light", light: "dark", dark: "system" }[chosen()];
    localStorage.setItem(KEY, next);
    apply();
  });
}

/** A colour of the present theme, such as `--ink`. */
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}

/** The colour of the curve with this number; there are eight. */
export const curveColour = (number) => `--curve-${number % 8 + 1}`;
