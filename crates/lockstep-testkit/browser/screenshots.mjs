// Takes the pictures of the documents. Standard input has one JSON object: where the server is, what is there, and where
// the pictures go.

import fs from "node:fs";
import { must, open, start, visit } from "./browser.mjs";

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const [first, second, third] = told.runs;
const desk = { width: 1360, height: 860 };
const phone = { width: 390, height: 844, mobile: true };
const compared = `/compare?runs=${first},${second},${third}`;
const all = [
  ["overview", "/", "overview", "light", desk, 6000],
  ["overview-phone", "/", "overview", "light", phone, 2500],
  ["run", `/runs/${told.live}`, "run", "dark", desk, 2500],
  ["run-phone", `/runs/${told.live}`, "run", "dark", phone, 2500],
  ["runs", "/runs?columns=optimizer.lr,train.batch", "runs", "light", desk, 800],
  ["runs-phone", "/runs", "runs", "light", phone, 800],
  ["compare", `${compared}&smooth=0.6`, "compare", "light", desk, 1200],
  ["compare-phone", compared, "compare", "dark", phone, 1200],
  ["evaluation", `/runs/${first}?tab=evaluation`, "run", "light", { ...desk, height: 1240 }, 1500],
  ["jobs", "/jobs", "jobs", "light", desk, 800],
  ["jobs-phone", "/jobs", "jobs", "light", phone, 800],
  ["log", `/jobs/${told.job}`, "job", "dark", desk, 2000],
  ["log-phone", `/jobs/${told.job}`, "job", "light", phone, 2000],
  ["cluster", "/cluster", "cluster", "light", desk, 4500],
  ["models", `/models/${told.model}`, "model", "dark", desk, 800],
  ["benchmarks", `/benchmarks/${told.bench}`, "benchmarks", "light", desk, 800],
  ["benchmarks-phone", `/benchmarks/${told.bench}`, "benchmarks", "dark", phone, 800],
  ["login", "/login", null, "light", { width: 680, height: 420 }, 300],
  ["login-dark", "/login", null, "dark", { width: 680, height: 420 }, 300],
];

const browser = await start();
try {
  for (const [name, path, kind, scheme, size, wait] of all) {
    if (told.only && !told.only.split(",").includes(name)) continue;
    const { page, wrong, close } = await open(browser, told.url, { scheme, ...size });
    await (kind ? visit(page, path, kind) : page.goto(path));
    await page.waitForTimeout(wait);
    await page.screenshot({ path: `${told.out}/${name}.png` });
    must(!wrong.length, `${name}: ${wrong.join("\n")}`);
    await close();
    console.log(`${name}.png`);
  }
} finally {
  await browser.close();
}
