// Which page an address means, and how one leads to the next without loading everything again.

import { h, put } from "./dom.js";
import { failed, missing, waiting } from "./parts.js";

const PAGES = [
  [/^\/$/, "overview"],
  [/^\/jobs$/, "jobs"],
  [/^\/jobs\/([^/]+)$/, "job"],
  [/^\/runs$/, "runs"],
  [/^\/runs\/([^/]+)$/, "run"],
  [/^\/compare$/, "compare"],
  [/^\/models$/, "models"],
  [/^\/models\/([^/]+)$/, "model"],
  [/^\/cluster$/, "cluster"],
  [/^\/benchmarks$/, "benchmarks"],
  [/^\/benchmarks\/([^/]+)$/, "benchmarks"],
];
// Addresses that MLflow's clients print, and the pages here that show the same.
const MLFLOW = [
  [/^#\/experiments\/[^/]+\/runs\/([^/?]+)/, "/runs/"],
  [/^#\/models\/([^/?]+)/, "/models/"],
  [/^#\/experiments\b/, "/runs"],
];
let leaving = new AbortController();

/** Goes to an address of this server. */
export function go(address) {
  if (address !== location.pathname + location.search) history.pushState(null, "", address);
  return show();
}

/** The values of the address. What a page shows stands there, so that an address can be shared. */
export function values() {
  return new URLSearchParams(location.search);
}

/** Changes some values of the address, without going anywhere. Empty ones are taken out. */
export function keep(changes) {
  const next = values();
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined || value === false) next.delete(key);
    else next.set(key, value === true ? "1" : value);
  }
  const text = next.toString().replaceAll("%2C", ",");
  history.replaceState(history.state, "", text ? `?${text}` : location.pathname);
}

function mark(path) {
  for (const link of document.querySelectorAll("#nav a")) {
    const to = link.getAttribute("href");
    const here = to === "/" ? path === "/" : path.startsWith(to) || to === "/runs" && path === "/compare";
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Shows the page of the present address. */
export async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const main = document.getElementById("main");
  delete main.dataset.ready;
  mark(decodeURI(location.pathname));
  const found = PAGES.find(([shape]) => shape.test(location.pathname));
  if (!found) {
    document.title = "Not here – Lockstep";
    put(main, missing("There is no such page", h("code", {}, decodeURI(location.pathname))));
    main.dataset.ready = "missing";
    return;
  }
  const given = location.pathname.match(found[0]).slice(1).map(decodeURIComponent);
  const slow = setTimeout(() => put(main, waiting()), 150);
  try {
    const page = await import(`./pages/${found[1]}.js`);
    const content = h("div", {});
    await page.open({ main: content, signal, given, values: values() });
    if (signal.aborted) return;
    clearTimeout(slow);
    put(main, content);
    content.dispatchEvent(new Event("shown"));
    scrollTo(0, 0);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    document.title = error.status === 404 ? "Not here – Lockstep" : "Lockstep";
    put(main, error.status === 404 ? missing("This is not here", error.message) : failed(error));
  } finally {
    clearTimeout(slow);
  }
  main.dataset.ready = found[1];
}

/** Follows links of this server, and the browser's way back. */
export function start() {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest?.("a[href]");
    if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
    if (link.pathname.startsWith("/api/") || link.pathname.startsWith("/assets/") || link.pathname === "/login") return;
    if (link.getAttribute("href").startsWith("#")) return;
    event.preventDefault();
    go(link.pathname + link.search).then(() => document.getElementById("main").focus({ preventScroll: true }));
  });
  addEventListener("popstate", show);
  const printed = MLFLOW.find(([shape]) => shape.test(location.hash));
  if (printed) history.replaceState(null, "", printed[1] + (location.hash.match(printed[0])[1] ?? ""));
  show();
}
