// A real Chromium, and what is checked of every page: no error in the console, no request that leaves the machine, and
// nothing serious that axe-core finds.

import { createRequire } from "node:module";
import fs from "node:fs";

const need = createRequire(`${process.env.BROWSER_MODULES}/`);
const { chromium } = need("playwright-core");
const axe = fs.readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");

/** Starts the browser. */
export async function start() {
  return chromium.launch({
    executablePath: process.env.BROWSER_PROGRAM,
    // A container has neither user namespaces nor much shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"],
  });
}

/** A page that keeps an account of what went wrong. */
export async function open(browser, base, { scheme = "light", width = 1360, height = 900, scale = 1, mobile = false } = {}) {
  const context = await browser.newContext({
    colorScheme: scheme, viewport: { width, height }, deviceScaleFactor: scale, hasTouch: mobile, baseURL: base,
  });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`script: ${error.message}`));
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (!["data:", "blob:"].includes(protocol) && origin !== new URL(base).origin) wrong.push(`a request to ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) wrong.push(`${response.status()} ${response.url()}`);
  });
  // A limit that is never reached, however busy the machine is.
  page.setDefaultTimeout(120000);
  return { page, wrong, close: () => context.close() };
}

/** Goes to a page and waits until it is drawn. */
export async function visit(page, path, name) {
  await page.goto(path);
  await page.waitForSelector(`main[data-ready="${name}"]`);
}

/** What axe-core finds that is serious or worse. */
export async function findings(page) {
  // Run by the debugger, which the page's policy does not bind.
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const bad = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  return bad.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} (${node.failureSummary.split("\n")[1]?.trim()})`).join("; ")}`);
}

/** Fails with these words unless something holds. */
export function must(holds, words) {
  if (!holds) throw new Error(words);
}
