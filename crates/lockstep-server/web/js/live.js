// What the server pushes. There is one connection for a page, and none while nobody sees it: a hidden page catches up
// when it is shown again.

const events = new EventTarget();
const KINDS = ["jobs", "runs", "run", "points", "machine", "log"];
let wishes = "", source = null, seen = false;

function state(name, words) {
  const link = document.getElementById("link");
  link.dataset.state = name;
  link.textContent = "";
  const span = document.createElement("span");
  span.textContent = words;
  link.append(span);
  link.setAttribute("aria-label", words);
}

function open() {
  source?.close();
  if (document.hidden) {
    source = null;
    return;
  }
  source = new EventSource(`/api/v1/live?${wishes}`);
  source.addEventListener("hello", () => {
    state("on", "Live");
    // What happened in between was not heard.
    if (seen) events.dispatchEvent(new CustomEvent("again"));
    seen = true;
  });
  source.addEventListener("behind", () => events.dispatchEvent(new CustomEvent("again")));
  source.addEventListener("error", () => state("off", "Not connected"));
  for (const kind of KINDS) {
    source.addEventListener(kind, (event) => {
      events.dispatchEvent(new CustomEvent(kind, { detail: JSON.parse(event.data) }));
    });
  }
}

/** Begins to listen. */
export function start() {
  document.addEventListener("visibilitychange", open);
  addEventListener("pagehide", () => source?.close());
}

/** Says what the page wants to hear of beside what all do: `{ runs: [], job: "", machine: true }`. */
export function want({ runs = [], job = "", machine = false } = {}) {
  const values = new URLSearchParams();
  if (runs.length) values.set("runs", runs.join(","));
  if (job) values.set("job", job);
  if (machine) values.set("machine", "true");
  const next = values.toString();
  if (next === wishes && source && source.readyState !== EventSource.CLOSED) return;
  wishes = next;
  // A page that has just asked for everything needs nothing again.
  seen = false;
  open();
}

/** Hears events of a kind until the signal is aborted. `again` means that some may have been missed. */
export function on(kind, act, signal) {
  events.addEventListener(kind, (event) => act(event.detail), { signal });
}
