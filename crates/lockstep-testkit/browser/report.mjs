// A report opened from the disk: it asks nobody for anything, says nothing in the console, and can be read by everyone.

import fs from "node:fs";
import { findings, must, open, start } from "./browser.mjs";

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const browser = await start();
try {
  for (const scheme of ["light", "dark"]) {
    const { page, wrong, close } = await open(browser, "file:///", { scheme, width: 1000, height: 1200 });
    await page.goto(`file://${told.file}`);
    for (const words of told.words) must(await page.getByText(words).first().isVisible(), `${words} is not on the page`);
    must((await page.locator("svg").count()) >= told.pictures, "a picture is missing");
    const found = await findings(page);
    must(!found.length, found.join("\n"));
    must(!wrong.length, wrong.join("\n"));
    if (told.picture && scheme === "light") await page.screenshot({ path: told.picture, fullPage: true });
    await close();
  }
} finally {
  await browser.close();
}
