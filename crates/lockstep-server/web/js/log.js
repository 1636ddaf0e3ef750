// A log: followed, searched, and seen by level and by rank. Only the lines that are on the screen are in the document, so
// that a log of a million lines scrolls like one of ten.
//
// Where lines are events of a run, what they say is shown, and the lines themselves are a click away.

import { calm, h, put } from "./dom.js";
import { eventOf, Teller } from "./events.js";
import { bytes, count, plural } from "./format.js";
import { icon } from "./icons.js";

const HEIGHT = 19;
const LEVELS = ["error", "warning", "info", "debug"];
// Escape sequences that colour a terminal.
const ESCAPES = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f]/g;
const RANKS = [/^\s*\[(?:rank|worker)[ :]?(\d+)\]/i, /^\s*(?:rank|worker)[ -]?(\d+)\s*[|:>]/i, /^\s*\((?:\w+ )?rank[= ](\d+)/i];
const PATTERNS = [
  ["error", /\b(?:ERROR|FATAL|CRITICAL|PANIC)\b|^\s*(?:error|fatal|Traceback \(most recent|[A-Za-z.]*(?:Error|Exception):)|panicked at/],
  ["warning", /\bWARN(?:ING)?\b|^\s*warning\b|[A-Za-z]*Warning:/],
  ["debug", /\b(?:DEBUG|TRACE)\b/],
];

/** What a line says about itself. */
export function understand(text) {
  const plain = text.replace(ESCAPES, "");
  const level = PATTERNS.find(([, shape]) => shape.test(plain))?.[0] ?? "info";
  const rank = RANKS.map((shape) => plain.match(shape)?.[1]).find((found) => found !== undefined);
  return { text: plain, level, rank: rank === undefined ? null : Number(rank) };
}

/** A view of a log. `read({ from, to, most })` gives a part of it; without `from`, its end. */
export class LogView {
  constructor({ read, name, signal }) {
    Object.assign(this, { read, shown: [], from: 0, to: 0, begin: 0, cut: "", follow: true, run: 0, raw: false });
    this.forget();
    this.levels = new Set(LEVELS);
    this.rank = "";
    this.word = "";
    this.at = -1;
    this.inner = h("ol", { class: "log-lines" });
    this.pane = h("div", { class: "log", tabindex: 0, role: "log", "aria-label": name, "aria-live": "off" }, this.inner);
    this.says = h("span", { class: "small faint num" });
    this.search = h("input", { type: "search", placeholder: "Search the log", "aria-label": "Search the log", data: { search: "" } });
    this.ranks = h("select", { "aria-label": "Rank", hidden: true, on: { change: () => { this.rank = this.ranks.value; this.choose(); } } });
    this.followButton = h("button", { type: "button", class: "small", on: { click: () => this.setFollow(!this.follow) } }, icon("down", 15), "Follow");
    this.rawButton = h("button", { type: "button", class: "small", hidden: true, "aria-pressed": "false", on: { click: () => {
      this.raw = !this.raw;
      this.rawButton.setAttribute("aria-pressed", String(this.raw));
      this.choose();
    } } }, "Raw lines");
    this.earlier = h("button", { type: "button", class: "small", hidden: true, on: { click: () => this.loadEarlier() } }, "Load earlier lines");
    const levels = h("div", { class: "group levels", role: "group", "aria-label": "Levels" }, LEVELS.map((level) => h("button", {
      type: "button", class: "small", "aria-pressed": "true", on: { click: (event) => {
        const on = !this.levels.has(level);
        if (on) this.levels.add(level); else this.levels.delete(level);
        event.currentTarget.setAttribute("aria-pressed", String(on));
        this.choose();
      } },
    }, level)));
    this.tools = h("div", { class: "bar" }, this.search, levels, this.ranks, this.says, h("span", { class: "end" }), this.earlier, this.rawButton, this.followButton);
    this.element = h("div", { class: "log-view" }, this.tools, this.pane);
    this.search.addEventListener("input", calm(120, () => { this.word = this.search.value.toLowerCase(); this.at = -1; this.choose(); }));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); this.next(event.shiftKey ? -1 : 1); }
    });
    this.pane.addEventListener("scroll", () => {
      const end = this.pane.scrollHeight - this.pane.scrollTop - this.pane.clientHeight < HEIGHT * 2;
      if (this.pane.scrollTop < (this.seenTop ?? 0) - 2 && !end) this.setFollow(false);
      if (end && !this.follow && this.pane.scrollTop > (this.seenTop ?? 0)) this.setFollow(true);
      this.seenTop = this.pane.scrollTop;
      this.draw();
    });
    const watch = new ResizeObserver(() => { if (this.follow) this.toEnd(); else this.draw(); });
    watch.observe(this.pane);
    signal?.addEventListener("abort", () => watch.disconnect());
    this.setFollow(true);
  }

  setFollow(on) {
    this.follow = on;
    this.followButton.setAttribute("aria-pressed", String(on));
    if (on) this.toEnd();
  }

  toEnd() {
    this.pane.scrollTop = this.pane.scrollHeight;
    this.seenTop = this.pane.scrollTop;
    this.draw();
  }

  /** Forgets all lines, and what they said. */
  forget() {
    Object.assign(this, { lines: [], told: [], teller: new Teller(), hasEvents: false });
  }

  /** Takes one more line, and what it says if it is an event. */
  take(text) {
    const line = understand(text);
    this.lines.push(line);
    const told = this.teller.tell(eventOf(line.text));
    if (!told) {
      this.told.push(line);
      return;
    }
    this.hasEvents = true;
    for (const one of told) this.told.push(one.understand ? { ...understand(one.text), rank: one.rank } : { rank: null, ...one });
  }

  /** All lines, as they are to be seen: what they say, or as they were written. */
  all() {
    const now = this.raw || !this.hasEvents ? null : this.teller.passing && { rank: null, ...this.teller.passing };
    const all = this.raw ? this.lines : this.told;
    const cut = this.cut && (this.raw || !this.cut.startsWith('{"')) ? understand(this.cut) : null;
    return now || cut ? [...all, ...[cut, now].filter(Boolean)] : all;
  }

  /** Begins with the end of the log. */
  async restart() {
    const run = ++this.run;
    const sent = await this.read({}).catch(() => null);
    if (!sent || run !== this.run) return;
    this.forget();
    Object.assign(this, { cut: "", from: sent.from, to: sent.from, begin: sent.begin });
    this.gain(sent.from, sent.to, sent.text);
    this.earlier.hidden = this.from <= this.begin;
    if (!this.lines.length && !this.cut) put(this.inner, h("li", { class: "faint none" }, "Nothing was written yet."));
  }

  /** Adds a part as it was pushed. What lies between is fetched; what is known already is passed over. */
  async gain(from, to, text) {
    if (to <= this.to) return;
    if (from !== this.to) return this.catchUp();
    this.to = to;
    const parts = (this.cut + text).split("\n");
    this.cut = parts.pop();
    for (const part of parts) this.take(part.slice(part.lastIndexOf("\r", part.length - 2) + 1));
    this.choose();
  }

  /** Fetches what the log has gained. */
  async catchUp() {
    if (this.catching) return;
    this.catching = true;
    const run = this.run;
    try {
      for (;;) {
        const sent = await this.read({ from: this.to });
        if (run !== this.run || !sent.text) return;
        if (sent.from > this.to) this.to = sent.from;
        await this.gain(sent.from, sent.to, sent.text);
      }
    } catch { /* It is tried again with the next news. */ } finally {
      this.catching = false;
    }
  }

  async loadEarlier() {
    const sent = await this.read({ to: this.from, most: 1 << 20 });
    const before = sent.text.split("\n");
    if (before[before.length - 1] === "") before.pop();
    const after = this.lines;
    this.forget();
    for (const text of [...before, ...after.map((line) => line.text)]) this.take(text);
    this.from = sent.from;
    this.earlier.hidden = this.from <= this.begin || !sent.text;
    const seen = this.pane.scrollHeight - this.pane.scrollTop;
    this.follow = false;
    this.choose();
    this.pane.scrollTop = this.pane.scrollHeight - seen;
    this.draw();
  }

  /** Finds the lines that are to be seen. */
  choose() {
    const { levels, word } = this;
    const rank = this.rank === "" ? null : Number(this.rank);
    const all = this.all();
    this.rawButton.hidden = !this.hasEvents;
    this.shown = all.filter((line) => levels.has(line.level) && (rank === null || line.rank === rank));
    this.hits = word ? this.shown.flatMap((line, at) => (line.text.toLowerCase().includes(word) ? [at] : [])) : [];
    const ranks = [...new Set(all.map((line) => line.rank).filter((one) => one !== null))].sort((a, b) => a - b);
    if (ranks.join() !== this.known) {
      this.known = ranks.join();
      this.ranks.hidden = ranks.length < 1;
      put(this.ranks, h("option", { value: "" }, "All ranks"), ranks.map((one) => h("option", { value: String(one), selected: String(one) === this.rank }, `Rank ${one}`)));
    }
    const lines = this.shown.length === all.length ? plural(all.length, "line") : `${count(this.shown.length)} of ${plural(all.length, "line")}`;
    this.says.textContent = `${lines}${this.from > this.begin ? `, the last ${bytes(this.to - this.from)}` : ""}${word ? `, ${count(this.hits.length)} found` : ""}`;
    this.inner.style.height = `${this.shown.length * HEIGHT + 12}px`;
    if (word && this.at < 0 && this.hits.length && !this.follow) this.next(1);
    this.drawn = null;
    if (this.follow) this.toEnd(); else this.draw();
  }

  /** Goes to the next line that has the word. */
  next(step) {
    if (!this.hits?.length) return;
    this.at = (this.at + step + this.hits.length) % this.hits.length;
    this.setFollow(false);
    this.pane.scrollTop = Math.max(0, this.hits[this.at] * HEIGHT - this.pane.clientHeight / 2);
    this.drawn = null;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.pane.scrollTop / HEIGHT) - 20);
    const last = Math.min(this.shown.length, first + Math.ceil((this.pane.clientHeight || 400) / HEIGHT) + 40);
    const key = `${first}-${last}-${this.shown.length}`;
    if (key === this.drawn && !this.cut && !this.teller.passing) return;
    this.drawn = key;
    if (!this.shown.length) {
      put(this.inner, h("li", { class: "faint none" }, this.lines.length ? "No line is like that." : "Nothing was written yet."));
      return;
    }
    put(this.inner, this.shown.slice(first, last).map((line, at) => h("li", {
      class: [line.strong && "strong", this.hits?.[this.at] === first + at && "found"].filter(Boolean).join(" ") || null, data: { level: line.level }, css: { top: `${(first + at) * HEIGHT + 6}px` },
    }, this.marked(line.text))));
  }

  marked(text) {
    if (!this.word) return text || " ";
    const parts = [];
    const small = text.toLowerCase();
    let at = 0;
    for (let hit = small.indexOf(this.word); hit >= 0; hit = small.indexOf(this.word, at)) {
      parts.push(text.slice(at, hit), h("mark", {}, text.slice(hit, hit + this.word.length)));
      at = hit + this.word.length;
    }
    parts.push(text.slice(at));
    return parts;
  }
}
