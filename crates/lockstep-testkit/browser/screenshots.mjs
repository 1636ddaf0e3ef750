// Takes the pictures of the documents. Standard input has one JSON object: where the server is, what is there, and where
// the pictures go.

import fs from "node:fs";
import { must, open, start, visit } from "./browser.mjs";

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const [first, second, third] = told.runs;
const wide = { width: 1360, height: 860 };
const phone = { width: 390, height: 844, mobile: true };
// Name, path, kind of page, milliseconds until its curves are drawn, and what is wider or higher than usual.
const pages = [
  ["overview", "/", "overview", 2500],
  ["run", `/runs/${told.live}`, "run", 2500],
  ["runs", "/runs?columns=optimizer.lr,train.batch", "runs", 800],
  ["compare", `/compare?runs=${first},${second},${third}&smooth=0.6`, "compare", 1200],
  ["evaluation", `/runs/${first}?tab=evaluation`, "run", 1500, { height: 1240 }],
  ["jobs", "/jobs", "jobs", 800],
  ["log", `/jobs/${told.job}`, "job", 2000],
  ["cluster", "/cluster", "cluster", 4500],
  ["models", `/models/${told.model}`, "model", 800],
  ["benchmarks", `/benchmarks/${told.bench}`, "benchmarks", 800],
  ["login", "/login", null, 300],
];
const all = pages.flatMap(([name, path, kind, wait, more]) =>
  [["", { ...wide, ...more }], ["-phone", phone]].flatMap(([at, size]) =>
    ["light", "dark"].map((scheme) => {
      const file = `${name}${at}${scheme === "dark" ? "-dark" : ""}`;
      return [file, path, kind, scheme, size, wait];
    }),
  ),
);

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
