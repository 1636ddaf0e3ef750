// Azurite for the tests; it ends with its standard input, so that no test leaves one behind.
//
//   node azurite.js MAIN ARGUMENTS...              runs Azurite's program
//   node azurite.js container ENDPOINT ACCOUNT KEY NAME   makes a container, signed as Azure asks for
const { createHmac } = require("node:crypto");

async function makeContainer(endpoint, account, key, name) {
  const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-08-06" };
  const signed = [
    `PUT${"\n".repeat(12)}x-ms-date:${headers["x-ms-date"]}`,
    `x-ms-version:${headers["x-ms-version"]}`,
    `/${account}/${account}/${name}`,
    "restype:container",
  ].join("\n");
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(signed).digest("base64");
  headers["Authorization"] = `SharedKey ${account}:${signature}`;
  const url = `${endpoint}/${account}/${name}?restype=container`;
  const answer = await fetch(url, { method: "PUT", headers });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}

const [first] = process.argv.splice(2, 1);
if (first === "container") {
  makeContainer(...process.argv.slice(2));
} else {
  process.stdin.on("end", () => process.exit()).resume();
  require(first);
}
