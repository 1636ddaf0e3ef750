// Rows that can be chosen, one by one or all.

import { h } from "./dom.js";

/** What is chosen of a table, by key. */
export class Chosen {
  constructor(changed) {
    this.keys = new Set();
    this.changed = changed;
  }

  /** A box that chooses a row. */
  box(key, label) {
    return h("input", { type: "checkbox", "aria-label": `Choose ${label}`, checked: this.keys.has(key), data: { key: `box-${key}` },
      on: { change: (event) => {
        if (event.target.checked) this.keys.add(key); else this.keys.delete(key);
        event.target.closest("tr")?.setAttribute("aria-selected", String(event.target.checked));
        this.changed();
      } } });
  }

  /** A box that chooses all rows. */
  all(keys, redraw) {
    const known = keys.filter((key) => this.keys.has(key)).length;
    return h("input", { type: "checkbox", "aria-label": "Choose all rows", checked: known > 0 && known === keys.length,
      indeterminate: known > 0 && known < keys.length, on: { change: (event) => {
        keys.forEach((key) => (event.target.checked ? this.keys.add(key) : this.keys.delete(key)));
        this.changed();
        redraw();
      } } });
  }

  /** Forgets what is not there any more. */
  only(keys) {
    this.keys = new Set(keys.filter((key) => this.keys.has(key)));
    this.changed();
  }
}

/** The head of a column that rows can be sorted by. */
export function sortable(name, words, sort, ascending, act, right = true) {
  const here = sort === name;
  return h("th", { class: right ? "right" : null, "aria-sort": here ? (ascending ? "ascending" : "descending") : null },
    h("button", { type: "button", data: { key: `sort-${name}` }, on: { click: () => act(name, here ? !ascending : false) } },
      words, here ? (ascending ? " ↑" : " ↓") : ""));
}
