// Where everything begins.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { icon } from "./icons.js";
import * as keys from "./keys.js";
import * as live from "./live.js";
import { me } from "./me.js";
import { tick } from "./parts.js";
import * as router from "./router.js";
import * as theme from "./theme.js";

const PLACES = [
  ["/", "overview", "Overview"], ["/jobs", "jobs", "Jobs"], ["/runs", "runs", "Runs"],
  ["/models", "models", "Models"], ["/cluster", "cluster", "Cluster"], ["/benchmarks", "benchmarks", "Benchmarks"],
];

function count({ running }) {
  const link = document.querySelector('#nav a[href="/jobs"]');
  link.querySelector(".count")?.remove();
  if (running) link.append(h("span", { class: "count", "aria-label": `${running} running` }, running));
}

put(document.getElementById("nav"), PLACES.map(([href, picture, words]) => h("a", { href }, icon(picture), h("span", {}, words))));
theme.start();
keys.start();
live.start();
live.on("jobs", count);
router.start();
setInterval(tick, 1000);
me().then(({ name, role, has_token: token }) => {
  if (!token) return;
  document.querySelector(".side-end").prepend(h("form", { method: "post", action: "/logout", class: "who" },
    h("span", { class: "cut", title: `${name}, ${role}` }, name), h("button", { class: "plain small" }, "Log out")));
}, () => {});
get("jobs", { limit: 0 }).then(({ counts }) => count(counts), () => {});
