// Drives the dashboard as a person would. Standard input has one JSON object: where the server is, and what is there.

import fs from "node:fs";
import { findings, must, open, start, visit } from "./browser.mjs";

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const [first, second] = told.runs;

async function submit(page, entrypoint) {
  const answer = await page.request.post("/api/jobs/", { data: { entrypoint }, headers: { "x-lockstep": "1" } });
  must(answer.ok(), `a job was refused: ${await answer.text()}`);
  return (await answer.json()).submission_id;
}

/** Every page, in both colour schemes and on a phone: it is drawn, and nothing serious is found on it. */
async function pages(browser) {
  const all = [
    ["/", "overview", "Overview"], ["/jobs", "jobs", "Jobs"], ["/runs", "runs", "Runs"], [`/runs/${first}`, "run", "small"],
    [`/runs/${first}?tab=parameters`, "run", "optimizer"], [`/runs/${first}?tab=evaluation`, "run", "Confusion"],
    [`/runs/${first}?tab=system`, "run", "Samples a second"], [`/runs/${first}?tab=logs`, "run", "Follow"],
    [`/runs/${first}?tab=about`, "run", "Learned numbers"], [`/runs/${first}?tab=files`, "run", "events.jsonl"],
    [`/compare?runs=${first},${second}`, "compare", "2 runs compared"], ["/models", "models", told.model],
    [`/models/${told.model}`, "model", "Versions"], ["/cluster", "cluster", "Workers by job"],
    ["/benchmarks", "benchmarks", told.bench], [`/benchmarks/${told.bench}`, "benchmarks", "1.90×"], [`/jobs/${told.job}`, "job", "Log"],
  ];
  for (const [scheme, width] of [["light", 1360], ["dark", 1360], ["light", 390]]) {
    const { page, wrong, close } = await open(browser, told.url, { scheme, width, height: 860 });
    for (const [path, name, words] of all) {
      await visit(page, path, name);
      await page.getByText(words).first().waitFor();
      must(await page.evaluate(() => document.documentElement.dataset.theme) === scheme, `${path} is not ${scheme}`);
      const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      must(sideways <= 0, `${path} is ${sideways} pixels wider than a screen of ${width}`);
      const cut = await page.evaluate(() => [...document.querySelectorAll("main .scroll")]
        .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth && !one.querySelector(".confusion")).length);
      must(!cut, `${path}: a table does not fit into a screen of ${width}`);
      const found = await findings(page);
      must(!found.length, `${scheme}, ${width}: ${path}: ${found.join("\n")}`);
    }
    must(!wrong.length, `${scheme}, ${width}: ${wrong.join("\n")}`);
    await close();
  }
}

/** Numbers, times and ticks in words, and an address that nothing is at. */
async function words(browser) {
  const { page, wrong, close } = await open(browser, told.url);
  await visit(page, "/nowhere/at/all", "missing");
  await page.getByText("There is no such page").waitFor();
  // As MLflow's clients print it.
  await page.goto(`${told.url}/#/experiments/1/runs/nobody`);
  await page.waitForURL("**/runs/nobody");
  await page.locator("#nav").getByText("Runs").click();
  await page.waitForSelector('main[data-ready="runs"]');
  must(wrong.splice(0).every((one) => one.includes("404")), "an address that nothing is at does more than say so");
  const said = await page.evaluate(async () => {
    const [format, scale] = [await import("/assets/js/format.js"), await import("/assets/js/curve/scale.js")];
    return [
      format.count(-.2), format.plural(1, "line"), format.ago(10, 100), format.named("test.accuracy", null), format.duration(245),
      format.shortened("a-name-that-ends-with-128", 15), scale.ticks(0, 300, 4, "seconds"), scale.ticks(0, 2, 8, "count"), scale.ticks(0, 3e6, 4, "bytes"),
    ].map(String);
  });
  const right = ["0", "1 line", "1 min ago", "–", "4 min 05 s", "a-name-…ith-128", "0,120,240", "0,1,2", "0,1048576,2097152"];
  right.forEach((one, at) => must(said[at] === one, `${said[at]} should be ${one}`));
  await close();
}

/** What can be done from pages is done after a question: a model is registered and promoted, a run is removed. */
async function deeds(browser) {
  const { page, wrong, close } = await open(browser, told.url);
  await visit(page, `/runs/${first}`, "run");
  await page.getByRole("button", { name: "Register model" }).click();
  await page.fill("#model-name", told.model);
  await page.locator("dialog button.first", { hasText: "Register" }).click();
  await page.waitForSelector('main[data-ready="model"]');
  await page.click('[data-key="promote-2"]');
  await page.click('[data-key="confirm"]');
  await page.getByText("Version 2 · champion").waitFor();
  await page.getByText(`--model ${told.model}@champion`).waitFor();
  await visit(page, `/runs/${second}`, "run");
  await page.click('[data-key="remove"]');
  await page.click('[data-key="confirm"]');
  await page.waitForSelector('main[data-ready="runs"]');
  await page.waitForSelector(`tr[data-row="${first}"]`);
  must(await page.locator(`tr[data-row="${second}"]`).count() === 0, "a run that was removed is listed");
  must(!wrong.length, wrong.join("\n"));
  await close();
}

/** The switch of colours, and the keyboard. */
async function hands(browser) {
  const { page, wrong, close } = await open(browser, told.url);
  await visit(page, `/runs/${first}?tab=files`, "run");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "result.json" }).click()]);
  must(file.suggestedFilename() === "result.json" && !(await file.failure()), "a file of a run cannot be had");
  await visit(page, "/", "overview");
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  await page.click("#theme");
  await page.click("#theme");
  must(await theme() === "dark", "the switch does not lead to dark");
  await page.reload();
  must(await theme() === "dark", "the choice of colours is forgotten");
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.waitForSelector('main[data-ready="runs"]');
  await page.waitForSelector(`tr[data-row="${first}"]`);
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByText("Compare 2").click();
  await page.waitForSelector('main[data-ready="compare"]');
  await page.goBack();
  await page.waitForSelector('main[data-ready="runs"]');
  await page.keyboard.press("/");
  await page.keyboard.type("lr > 0.06");
  await page.getByText("1 of ").waitFor();
  must(page.url().includes("filter=lr"), "the filter does not stand in the address");
  await page.fill("[data-search]", "no such thing >");
  await page.getByText("cannot be understood").waitFor();
  // The refusal is what was asked for.
  must(wrong.every((one) => one.includes("400")), wrong.join("\n"));
  await close();
}

/** A run that is submitted appears, and its curve grows while somebody looks. */
async function growth(browser) {
  const { page, wrong, close } = await open(browser, told.url);
  await visit(page, "/", "overview");
  const job = await submit(page, told.slow);
  const card = page.locator("a.going");
  await card.first().waitFor();
  await card.first().click();
  await page.waitForSelector('main[data-ready="run"]');
  const curve = page.locator('[data-chart="loss"] canvas');
  await curve.waitFor();
  const end = async () => Number((await curve.getAttribute("aria-label")).match(/to ([\d,]+):/)?.[1].replaceAll(",", "") ?? 0);
  const began = await end();
  await page.waitForFunction((before) => {
    const label = document.querySelector('[data-chart="loss"] canvas')?.getAttribute("aria-label") ?? "";
    return Number(label.match(/to ([\d,]+):/)?.[1].replaceAll(",", "") ?? 0) > before + 10;
  }, began);
  must(!wrong.length, wrong.join("\n"));
  await close();
  return job;
}

/** A log is followed as it is written, searched, and seen by level; then the job is stopped by its button. */
async function log(browser, slow) {
  const { page, wrong, close } = await open(browser, told.url);
  const job = await submit(page, "for i in $(seq 1 2000); do echo \"[rank $((i % 2))] line $i <b>not bold</b>\"; "
    + "[ $((i % 10)) = 0 ] && echo \"[rank 0] ERROR number $i\"; sleep 0.05; done");
  await visit(page, `/jobs/${job}`, "job");
  await page.getByText(/line 20 </).waitFor();
  await page.getByText(/line 60 </).waitFor();
  must(await page.locator(".log b").count() === 0, "a log became markup");
  await page.fill(".log-view [data-search]", "number 30");
  await page.getByText("1 found").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForSelector(".log li.found mark");
  await page.fill(".log-view [data-search]", "");
  await page.locator(".levels button", { hasText: "info" }).click();
  await page.waitForFunction(() => [...document.querySelectorAll(".log li")].every((line) => line.dataset.level === "error"));
  must(await page.evaluate(() => getComputedStyle(document.querySelector(".log li")).borderTopWidth) === "0px", "a line of a log is a box");
  await page.locator(".levels button", { hasText: "info" }).click();
  await page.selectOption('select[aria-label="Rank"]', "1");
  await page.waitForFunction(() => [...document.querySelectorAll(".log li")].every((line) => line.textContent.startsWith("[rank 1]")));
  await page.locator("main button", { hasText: "Stop" }).click();
  await page.click('[data-key="confirm"]');
  await page.locator("h1 .state.stopped").waitFor();
  // The run that grew is stopped with others, from the list.
  await visit(page, "/jobs?status=RUNNING", "jobs");
  await page.check(`tr[data-row="${slow}"] input`);
  await page.locator(".bulk button", { hasText: "Stop" }).click();
  await page.click('[data-key="confirm"]');
  await page.waitForSelector(`tr[data-row="${slow}"]`, { state: "detached" });
  must(!wrong.length, wrong.join("\n"));
  await close();
}

/** Events in the log of a job are told as in a terminal, beside other lines; as they were written, they are a click away. */
async function events(browser) {
  const { page, wrong, close } = await open(browser, told.url);
  await visit(page, `/jobs/${told.job}`, "job");
  const lines = page.locator(".log li");
  await lines.filter({ hasText: `run ${first}` }).first().waitFor();
  await lines.filter({ hasText: /^ *epoch +train loss/ }).waitFor();
  await lines.filter({ hasText: /^\d+ epochs? in .*: accuracy [01]\.\d{4}, loss/ }).waitFor();
  await lines.filter({ hasText: "ERROR: not really" }).waitFor();
  must(await lines.filter({ hasText: '{"' }).count() === 0, "an event is shown as JSON");
  await page.getByRole("button", { name: "Raw lines" }).click();
  await lines.filter({ hasText: '"event":"result"' }).waitFor();
  must(!wrong.length, wrong.join("\n"));
  await close();
}

/** Two runs over each other, with what differs marked, and an address that shows the same again. */
async function compare(browser) {
  const { page, wrong, close } = await open(browser, told.url);
  await visit(page, `/compare?runs=${first},${second}`, "compare");
  const row = page.locator("tr", { hasText: "train.optimizer.lr" });
  must((await row.innerText()).includes("0.1"), "the difference is not shown");
  await page.getByText("Only what differs").click();
  await page.locator("tr.differs", { hasText: "train.optimizer.lr" }).waitFor();
  must(await page.locator("tr:not(.differs)", { hasText: "train.batch" }).count() > 0, "what is the same is not shown");
  await page.getByRole("button", { name: "Log scale" }).click();
  await page.getByRole("button", { name: "Time", exact: true }).click();
  const box = await page.locator('[data-chart="loss"] canvas').boundingBox();
  await page.mouse.move(box.x + box.width * .4, box.y + 80);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * .8, box.y + 90, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(() => location.search.includes("zoom="));
  must(/log=1/.test(page.url()) && /x=time/.test(page.url()), `the choices do not stand in ${page.url()}`);
  await page.locator(".readout:not([hidden])").first().waitFor();
  await page.reload();
  await page.getByText("Show everything").waitFor();
  must(!wrong.length, wrong.join("\n"));
  await close();
}

const browser = await start();
try {
  for (const [name, act] of Object.entries({ pages, words, hands, events, compare })) {
    if (told.only && !told.only.includes(name)) continue;
    const began = Date.now();
    await act(browser);
    console.log(`${name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
  }
  if (!told.only || told.only.includes("live")) {
    await log(browser, await growth(browser));
    console.log("live: done");
  }
  if (!told.only || told.only.includes("deeds")) await deeds(browser);
} finally {
  await browser.close();
}
