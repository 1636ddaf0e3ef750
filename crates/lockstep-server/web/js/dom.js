// Elements from plain values. Text is always a text node, so what a user, a log or a run is called can never become markup.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "indeterminate", "selected", "open"]);

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false && !PROPERTIES.has(name)) continue;
    if (name === "on") {
      for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else if (name === "css") {
      for (const [key, worth] of Object.entries(value)) element.style.setProperty(key, worth);
    } else if (PROPERTIES.has(name)) {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  add(element, children);
  return element;
}

/** Puts children into an element: elements, texts, numbers, lists of these; nothing for null and false. */
export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An element of HTML. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An element of SVG. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Replaces what is in an element, and keeps the focus where it was, by `data-key`. */
export function put(element, ...children) {
  const held = element.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  element.textContent = "";
  add(element, children);
  if (held) element.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
}

/** Calls `act` once things have been quiet for `ms`. */
export function calm(ms, act) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), ms);
  };
}

/** Calls `act` at most every `ms`: at once, and once more at the end. */
export function spaced(ms, act) {
  let timer = 0, last = 0;
  return () => {
    const wait = last + ms - Date.now();
    if (wait <= 0) {
      last = Date.now();
      act();
    } else if (!timer) {
      timer = setTimeout(() => { timer = 0; last = Date.now(); act(); }, wait);
    }
  };
}
