// Curves on a canvas: drawn here, with nothing from elsewhere.
//
// Where many points were put together, the mean is a line and the span from the smallest to the largest a band behind it.
// Dragging over a part zooms into it; a double click, or 0, shows everything again.

import { h, put } from "../dom.js";
import { count, named, span, tick } from "../format.js";
import { colour } from "../theme.js";
import { logTicks, scale, ticks } from "./scale.js";
import { nearest, smooth } from "./series.js";

const MARGIN = { left: 60, right: 12, top: 10, bottom: 24 };
/** Curves of so few points have dots, and are not smoothed. */
const FEW = 30;
const FONT = "11px Inter, ui-sans-serif, system-ui, sans-serif";

/** A chart of several curves. `options` are shared by the charts of a panel: `{ log, smooth, by, zoom, hover }`. */
export class Chart {
  constructor({ name, options, height = 220, small = false, changed = () => {}, zoomed = () => {} }) {
    Object.assign(this, { name, options, small, changed, zoomed, lines: [], marks: [] });
    this.canvas = h("canvas", { role: "img", tabindex: small ? null : 0 });
    this.readout = h("div", { class: "readout", hidden: true });
    this.element = h("div", { class: "plot", css: { height: `${height}px` } }, this.canvas, this.readout);
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.element);
    this.theme = () => this.draw();
    addEventListener("theme", this.theme);
    if (!small) this.listen();
  }

  /** Lets go of what it listens to. */
  close() {
    this.watch.disconnect();
    removeEventListener("theme", this.theme);
  }

  /** Shows these lines: `{ label, colour, curve, dash }`; and marks: `{ x, words }`. */
  show(lines, marks = this.marks) {
    this.lines = lines;
    this.marks = marks;
    this.draw();
  }

  domain() {
    if (this.options.zoom) return this.options.zoom;
    let [low, high] = [Infinity, -Infinity];
    for (const { curve } of this.lines) {
      if (!curve.x.length) continue;
      low = Math.min(low, curve.x[0]);
      high = Math.max(high, curve.x[curve.x.length - 1]);
    }
    if (!(high >= low)) return [0, 1];
    // A curve that begins near the beginning is drawn from there.
    if (low > 0 && low < high * .1) low = 0;
    return high > low ? [low, high] : [low - .5, high + .5];
  }

  /** Whether a curve is smoothed: a point an epoch is not. */
  smoothed(curve) {
    return this.options.smooth > 0 && curve.x.length > FEW;
  }

  range(drawn, [from, to]) {
    let [low, high] = [Infinity, -Infinity];
    const log = this.options.log;
    for (const { curve, values } of drawn) {
      for (let at = 0; at < curve.x.length; at += 1) {
        if (curve.x[at] < from || curve.x[at] > to) continue;
        // With smoothing the line counts; single values may leave the picture.
        const [least, most] = this.smoothed(curve) ? [values[at], values[at]]
          : [curve.low?.[at] ?? values[at], curve.high?.[at] ?? values[at]];
        if (!log || least > 0) low = Math.min(low, least);
        if (!log || most > 0) high = Math.max(high, most);
      }
    }
    if (!(high >= low)) return log ? [.1, 1] : [0, 1];
    if (log) return [low / 1.1, high * 1.1];
    const room = (high - low) * .06 || Math.abs(high) * .1 || 1;
    return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    const dots = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * dots);
    this.canvas.height = Math.round(height * dots);
    const pen = this.canvas.getContext("2d");
    pen.scale(dots, dots);
    pen.clearRect(0, 0, width, height);
    const m = this.small ? { left: 0, right: 4, top: 6, bottom: 2 } : MARGIN;
    const drawn = this.lines.map((line) => ({ ...line, values: this.smoothed(line.curve) ? smooth(line.curve.y, this.options.smooth) : line.curve.y }));
    const domain = this.domain();
    const range = this.range(drawn, domain);
    const x = scale(domain, [m.left, width - m.right], false);
    const y = scale(range, [height - m.bottom, m.top], this.options.log);
    this.at = { x, y, drawn, m, width, height };
    if (!this.small) this.axes(pen, domain, range);
    pen.save();
    pen.beginPath();
    pen.rect(m.left, 0, width - m.left - m.right + 4, height - m.bottom + 1);
    pen.clip();
    this.drawMarks(pen);
    for (const line of drawn) this.drawLine(pen, line);
    this.drawPicked(pen);
    pen.restore();
    this.drawHover(pen);
    this.describe(drawn, domain);
  }

  axes(pen, domain, range) {
    const { x, y, m, width, height } = this.at;
    pen.font = FONT;
    pen.lineWidth = 1;
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--faint");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const one of this.options.log ? logTicks(...range) : ticks(...range, height / 46, this.name === "memory_bytes" ? "bytes" : "number")) {
      const at = Math.round(y(one)) + .5;
      if (at < m.top - 4 || at > height - m.bottom + 1) continue;
      pen.beginPath();
      pen.moveTo(m.left, at);
      pen.lineTo(width - m.right, at);
      pen.stroke();
      pen.fillText(tick(this.name, one), m.left - 8, at);
    }
    pen.textAlign = "center";
    pen.textBaseline = "alphabetic";
    for (const one of ticks(...domain, width / 110, this.options.by === "time" ? "seconds" : "count")) {
      const at = x(one);
      if (at < m.left - 1 || at > width - m.right + 1) continue;
      pen.fillText(this.where(one), Math.min(at, width - m.right - 12), height - 7);
    }
  }

  where(x) {
    return this.options.by === "time" && x > 0 ? span(x).replace(".0 s", " s") : count(x);
  }

  drawLine(pen, { curve, values, colour: name, dash }) {
    const { x, y } = this.at;
    if (!curve.x.length) return;
    const log = this.options.log;
    const path = (list) => {
      pen.beginPath();
      let down = false;
      for (let at = 0; at < list.length; at += 1) {
        if (log && list[at] <= 0) { down = false; continue; }
        if (down) pen.lineTo(x(curve.x[at]), y(list[at]));
        else pen.moveTo(x(curve.x[at]), y(list[at]));
        down = true;
      }
    };
    pen.strokeStyle = pen.fillStyle = colour(name);
    pen.lineJoin = pen.lineCap = "round";
    pen.setLineDash([]);
    const smoothed = this.smoothed(curve);
    if (curve.low && !smoothed) {
      pen.globalAlpha = .16;
      path(curve.high);
      for (let at = curve.x.length - 1; at >= 0; at -= 1) {
        if (!log || curve.low[at] > 0) pen.lineTo(x(curve.x[at]), y(curve.low[at]));
      }
      pen.closePath();
      pen.fill();
    }
    if (smoothed) {
      pen.globalAlpha = .22;
      pen.lineWidth = 1;
      path(curve.y);
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.lineWidth = this.small ? 1.6 : 1.8;
    pen.setLineDash(dash ?? []);
    path(values);
    pen.stroke();
    pen.setLineDash([]);
    const end = curve.x.length - 1;
    const few = curve.x.length <= (this.small ? 1 : FEW);
    for (let at = few ? 0 : end; at <= end; at += 1) {
      if (log && values[at] <= 0) continue;
      pen.beginPath();
      pen.arc(x(curve.x[at]), y(values[at]), few && !this.small ? 2.4 : 2.8, 0, 7);
      pen.fill();
    }
  }

  drawMarks(pen) {
    const { x, m, height } = this.at;
    for (const mark of this.marks) {
      const at = Math.round(x(mark.x)) + .5;
      pen.strokeStyle = pen.fillStyle = colour("--halt");
      pen.lineWidth = 1;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(at, m.top);
      pen.lineTo(at, height - m.bottom);
      pen.stroke();
      pen.setLineDash([]);
      pen.beginPath();
      pen.moveTo(at, m.top);
      pen.lineTo(at + 7, m.top + 4);
      pen.lineTo(at, m.top + 8);
      pen.fill();
    }
  }

  drawPicked(pen) {
    if (!this.drag || this.drag.from === this.drag.to) return;
    const { m, height } = this.at;
    pen.fillStyle = colour("--accent");
    pen.globalAlpha = .14;
    pen.fillRect(this.drag.from, m.top, this.drag.to - this.drag.from, height - m.bottom - m.top);
    pen.globalAlpha = 1;
  }

  drawHover(pen) {
    const { hover } = this.options;
    const { x, y, drawn, m, width, height } = this.at;
    if (hover === null || hover === undefined || this.small) {
      this.readout.hidden = true;
      return;
    }
    const near = drawn.filter(({ curve }) => curve.x.length).map((line) => ({ ...line, at: nearest(line.curve.x, hover) }));
    const place = x(hover);
    if (!near.length || place < m.left - 1 || place > width - m.right + 1) {
      this.readout.hidden = true;
      return;
    }
    pen.strokeStyle = colour("--firm");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(Math.round(place) + .5, m.top);
    pen.lineTo(Math.round(place) + .5, height - m.bottom);
    pen.stroke();
    for (const line of near) {
      pen.fillStyle = colour(line.colour);
      pen.beginPath();
      pen.arc(x(line.curve.x[line.at]), y(line.values[line.at]), 3.4, 0, 7);
      pen.fill();
    }
    const mark = this.marks.find((one) => Math.abs(x(one.x) - place) < 6);
    const where = near.length === 1 ? near[0].curve.x[near[0].at] : hover;
    put(this.readout,
      h("div", { class: "faint" }, this.options.by === "time" ? `after ${span(where)}` : `step ${count(where)}`),
      near.slice(0, 12).map((line) => h("div", { class: "line" },
        h("i", { css: { background: colour(line.colour) } }), h("span", { class: "cut" }, line.label),
        h("b", { class: "num" }, named(this.name, line.values[line.at])))),
      mark && h("div", { class: "marked" }, mark.words));
    this.readout.hidden = false;
    const right = place > width / 2;
    this.readout.style.left = right ? "" : `${place + 12}px`;
    this.readout.style.right = right ? `${width - place + 12}px` : "";
  }

  describe(drawn, [from, to]) {
    const words = drawn.filter(({ curve }) => curve.y.length).slice(0, 8).map(({ label, curve }) =>
      `${label} from ${named(this.name, curve.y[0])} to ${named(this.name, curve.y[curve.y.length - 1])}`);
    this.canvas.setAttribute("aria-label", `${this.name}, ${this.where(from)} to ${this.where(to)}: ${words.join("; ") || "no points yet"}`);
  }

  listen() {
    const { canvas } = this;
    const at = (event) => event.clientX - canvas.getBoundingClientRect().left;
    const hover = (place) => {
      this.options.hover = place;
      this.changed();
    };
    canvas.addEventListener("pointermove", (event) => {
      if (!this.at) return;
      if (this.drag) this.drag.to = at(event);
      hover(this.at.x.back(at(event)));
    });
    canvas.addEventListener("pointerleave", () => hover(null));
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button || event.pointerType === "touch") return;
      canvas.setPointerCapture(event.pointerId);
      this.drag = { from: at(event), to: at(event) };
    });
    canvas.addEventListener("pointerup", () => {
      const drag = this.drag;
      this.drag = null;
      if (!drag || Math.abs(drag.to - drag.from) < 8) return this.changed();
      const ends = [this.at.x.back(drag.from), this.at.x.back(drag.to)].sort((a, b) => a - b);
      this.zoomed(ends);
    });
    canvas.addEventListener("dblclick", () => this.zoomed(null));
    canvas.addEventListener("keydown", (event) => this.press(event, hover));
    canvas.addEventListener("blur", () => hover(null));
  }

  press(event, hover) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const longest = this.lines.map(({ curve }) => curve.x).sort((a, b) => b.length - a.length)[0] ?? [];
    const [low, high] = this.domain();
    if (step && longest.length) {
      event.preventDefault();
      const now = this.options.hover ?? (step > 0 ? low : high);
      const next = nearest(longest, now) + (this.options.hover === null ? 0 : step);
      hover(longest[Math.max(0, Math.min(longest.length - 1, next))]);
    } else if (event.key === "+" || event.key === "-") {
      const middle = this.options.hover ?? (low + high) / 2;
      const half = (high - low) / 2 * (event.key === "+" ? .5 : 2);
      this.zoomed([middle - half, middle + half]);
    } else if (event.key === "0" || event.key === "Escape") {
      this.zoomed(null);
    }
  }
}
